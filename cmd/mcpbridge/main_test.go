package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The version set by the linker is the one shown.
func TestLinkedVersion(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: the version the linker sets is checked on a program built for it, which takes seconds; run go test -run TestLinkedVersion ./cmd/mcpbridge")
	}
	program := filepath.Join(t.TempDir(), "mcpbridge.exe")
	if out, err := exec.Command("go", "build", "-ldflags", "-X main.version=1.2.3", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program, "version").Output()
	if err != nil || !strings.HasPrefix(string(out), "mcpbridge 1.2.3 (go1.") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestRunReturnsCodes(t *testing.T) {
	config := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(config, []byte(`{"auth":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want int
	}{{"version", exitOK}, {"", exitOK}, {"--help", exitOK}, {"nope", exitUsage}, {"version --nope", exitUsage}, {"version x", exitUsage},
		{"--log-keep x version", exitUsage}, {"check a b", exitUsage}, {"check --config " + config, exitConfig}, {"check " + config + ".none", exitConfig}} {
		var out, errOut strings.Builder
		if got := run(strings.Fields(c.args), strings.NewReader(""), &out, &errOut); got != c.want {
			t.Errorf("%q: %d, want %d; %s", c.args, got, c.want, errOut.String())
		}
		if lines := strings.Count(errOut.String(), "\n"); c.want != exitOK && lines != 1 {
			t.Errorf("%q: %d lines on stderr: %s", c.args, lines, errOut.String())
		}
	}
}
