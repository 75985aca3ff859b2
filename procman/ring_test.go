package procman

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The ring holds exactly the last size bytes, however they were cut.
func TestRingKeepsTheTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 40).Draw(t, "size")
		r := newRing(size)
		var all []byte
		for _, p := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 90)).Draw(t, "writes") {
			r.write(p)
			all = append(all, p...)
			if want := all[max(0, len(all)-size):]; !bytes.Equal(r.tail(), want) {
				t.Fatalf("tail %v, want %v", r.tail(), want)
			}
		}
	})
}

func TestLineCutter(t *testing.T) {
	const limit = 8
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{"a\nb\r\n\nc", []string{"a", "b", "", "c"}},
		{"12345678\n", []string{"12345678"}},
		{"123456789\n", []string{"12345678", "9"}},
		{"12345678", []string{"12345678"}},
		{"", nil},
		{"\n", []string{""}},
	} {
		for step := 1; step <= len(tt.in)+1; step++ {
			var got []string
			c := lineCutter{max: limit, emit: func(b []byte) { got = append(got, string(b)) }}
			for part := range slices.Chunk([]byte(tt.in), step) {
				c.write(part)
			}
			c.close()
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q in steps of %d: %q, want %q", tt.in, step, got, tt.want)
			}
		}
	}
}

// Case 101: the last 20 lines, not 21.
func TestLastLines(t *testing.T) {
	var text strings.Builder
	for n := range MaxExitLines + 1 {
		fmt.Fprintf(&text, "line %d\r\n\n", n)
	}
	lines := lastLines([]byte(text.String()+"\xff"), MaxExitLines)
	if len(lines) != MaxExitLines || lines[0] != "line 2" || lines[MaxExitLines-1] != "\uFFFD" {
		t.Errorf("got %d lines: %q", len(lines), lines)
	}
}

func TestMarkerRoundTrip(t *testing.T) {
	m, ok := parseMarker(newMarker("state:dir"))
	if !ok || m.mark != "state:dir" || m.pid == 0 {
		t.Errorf("got %+v, %v", m, ok)
	}
	if first, second := newMarker("a"), newMarker("a"); first == second {
		t.Error("two children have the same marker")
	}
	for _, s := range []string{"", "1:2:3:4", "x:2:3:4:m", "1:x:3:4:m"} {
		if _, ok := parseMarker(s); ok {
			t.Errorf("%q is no marker", s)
		}
	}
}

// The table is complete: each state has a name, and each that a supervisor moves to has a row.
func TestTransitionTable(t *testing.T) {
	if len(transitions) != int(Closed)+1 || len(stateNames) != int(CrashLoop)+1 || CrashLoop.String() != "crash-loop" {
		t.Fatalf("%d rows, %d names", len(transitions), len(stateNames))
	}
	if len(transitions[Closed]) != 0 {
		t.Error("closed is for good")
	}
}
