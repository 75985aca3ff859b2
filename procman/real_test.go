package procman_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/procman"
)

// patience is how long a test waits for something that should take milliseconds.
const patience = 20 * time.Second

// spawn starts a real process and sees to its end.
func spawn(t *testing.T, spec procman.Spec) procman.Process {
	t.Helper()
	p, err := procman.OS().Spawn(spec)
	if err != nil {
		t.Fatalf("spawn: %v", err)
	}
	t.Cleanup(func() {
		_ = p.Signal(procman.Kill)
		awaitEnd(t, p)
		if c, ok := p.Stdout().(io.Closer); ok {
			_ = c.Close()
		}
	})
	return p
}

func awaitEnd(t *testing.T, p procman.Process) procman.Exit {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(patience):
		t.Fatalf("process %d has not ended", p.Pid())
	}
	return p.Exit()
}

func readAll(t *testing.T, p procman.Process) string {
	t.Helper()
	data, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return string(data)
}

func firstLine(t *testing.T, p procman.Process) string {
	t.Helper()
	line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
	if err != nil {
		t.Fatalf("first line: %v", err)
	}
	return strings.TrimRight(line, "\r\n")
}

func TestEcho(t *testing.T) {
	p := spawn(t, roleSpec("echo", ""))
	if _, err := p.Stdin().Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	if line := firstLine(t, p); line != "hello" {
		t.Errorf("got %q", line)
	}
	if exit := p.Exit(); exit.Runtime != 0 {
		t.Errorf("exit %+v before the end", exit)
	}
	if err := procman.Stop(t.Context(), p, procman.Grace{EOF: patience}); err != nil {
		t.Fatal(err)
	}
	if exit := p.Exit(); exit.Code != 0 || !exit.Requested || exit.Runtime <= 0 {
		t.Errorf("exit %+v", exit)
	}
	if err := p.Signal(procman.Terminate); err == nil {
		t.Error("a signal after the end reports success")
	}
}

// Case 22: the status and the reason, from stderr.
func TestExitExplains(t *testing.T) {
	exit := awaitEnd(t, spawn(t, roleSpec("exit3", "")))
	if exit.Code != 3 || exit.Signal != "" || exit.Requested {
		t.Errorf("exit %+v", exit)
	}
	if want := []string{"first", "no module named nosuch"}; !slices.Equal(exit.Stderr, want) {
		t.Errorf("stderr %q, want %q", exit.Stderr, want)
	}
	if !strings.Contains(exit.Report(), "status 3") || !strings.Contains(exit.Report(), "nosuch") {
		t.Errorf("report %q", exit.Report())
	}
}

// STD-07: 10 MB of stderr neither block the child nor are they kept.
func TestStderrIsDrainedAndBounded(t *testing.T) {
	spec := roleSpec("noisy", "")
	spec.StderrRing = 4096
	p := spawn(t, spec)
	if out := readAll(t, p); strings.TrimSpace(out) != "done" {
		t.Errorf("stdout %q", out)
	}
	exit := awaitEnd(t, p)
	if tail := p.Tail(); len(tail) != 4096 || !bytes.HasSuffix(tail, []byte("last line\n")) {
		t.Errorf("tail has %d bytes and ends in %q", len(tail), tail[max(0, len(tail)-20):])
	}
	if n := len(exit.Stderr); n == 0 || exit.Stderr[n-1] != "last line" {
		t.Errorf("%d last lines", n)
	}
}

func TestStderrLines(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	spec := roleSpec("lines", "")
	spec.Stderr = func(_ int, line []byte) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, string(line))
	}
	awaitEnd(t, spawn(t, spec))
	want := []string{"one", "", strings.Repeat("y", procman.MaxStderrLine), "y", "tail"}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(lines, want) {
		t.Errorf("%d lines, want %d: %.60q", len(lines), len(want), lines)
	}
}

// Case 12: what was written before the exit is read after it.
func TestOutputAfterTheExit(t *testing.T) {
	p := spawn(t, roleSpec("last", ""))
	if exit := awaitEnd(t, p); exit.Code != 0 {
		t.Fatalf("exit %v", exit)
	}
	if out := readAll(t, p); len(out) != 60_007 || !strings.HasSuffix(out, "the end") {
		t.Errorf("read %d bytes", len(out))
	}
	if n, err := p.Stdout().Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("read after the end: %d, %v", n, err)
	}
}

// Case 83, STD-11: the child has what it was given, one entry a name, and the mark.
func TestChildEnvironment(t *testing.T) {
	t.Setenv("MCPBRIDGE_TOKEN", "x")
	t.Setenv("FOO", "1")
	spec := roleSpec("env", "m:1")
	spec.Env = append(spec.Env, "BAR=1", "BAR=2", procman.MarkVar+"=forged")
	env := strings.Split(readAll(t, spawn(t, spec)), "\n")
	var marks, bars []string
	for _, kv := range env {
		switch name, value, _ := strings.Cut(strings.TrimSpace(kv), "="); name {
		case "MCPBRIDGE_TOKEN", "FOO":
			t.Errorf("the child got %s", name)
		case procman.MarkVar:
			marks = append(marks, value)
		case "BAR":
			bars = append(bars, value)
		}
	}
	if !slices.Equal(bars, []string{"2"}) {
		t.Errorf("BAR is %q", bars)
	}
	if len(marks) != 1 || !strings.HasSuffix(marks[0], ":m:1") {
		t.Errorf("marks %q", marks)
	}
}

// A supervisor over real processes: crash, restart, close.
func TestSupervisorOverRealProcesses(t *testing.T) {
	s := procman.NewSupervisor(roleSpec("echo", ""), procman.Policy{Initial: time.Millisecond}, procman.OS(), nil)
	first, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Signal(procman.Kill); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, first)
	second, err := s.Start(t.Context())
	if err != nil || second.Pid() == first.Pid() {
		t.Fatalf("second start: %v, %v", second, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, second)
	for _, p := range []procman.Process{first, second} {
		_ = p.Stdout().(io.Closer).Close()
	}
}

func TestNothingKeepsRunningFiles(t *testing.T) {
	spec := roleSpec("echo", "")
	spec.Dir = t.TempDir()
	p := spawn(t, spec)
	if err := procman.Stop(t.Context(), p, procman.Grace{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(spec.Dir); err != nil {
		t.Errorf("the directory is still in use: %v", err)
	}
}
