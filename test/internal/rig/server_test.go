package rig

import (
	"strings"
	"testing"
)

func TestStartTellsWhyAProgramCannotBeUsed(t *testing.T) {
	_, err := start(func(string) []string { return []string{"go", "no-such-subcommand"} })
	if err == nil || !strings.Contains(err.Error(), "exited") || !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("got %v, want the exit and what the program said", err)
	}
	if _, err = start(func(string) []string { return []string{"/no/such/program"} }); err == nil {
		t.Error("a program that does not exist was started")
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	l := &tail{}
	for range 5 {
		l.Write([]byte(strings.Repeat("x", tailBytes/2)))
	}
	l.Write([]byte("end"))
	if got := l.String(); len(got) != tailBytes || !strings.HasSuffix(got, "xend") {
		t.Errorf("kept %d bytes ending in %q", len(got), got[len(got)-4:])
	}
}
