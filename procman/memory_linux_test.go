package procman_test

import (
	"bytes"
	"os"
	"testing"

	"mcpbridge/procman"
)

// Memory is that of the whole tree: what hides behind a shell, and what made a session of its own.
func TestMemory(t *testing.T) {
	mark := testMark(t)
	for name, spec := range map[string]procman.Spec{"in the group": kindSpec("npx", ""), "in a session of its own": kindSpec("daemon", mark)} {
		t.Run(name, func(t *testing.T) {
			p := spawn(t, spec)
			pid := pidLine(t, firstLine(t, p))
			eventually(t, patience, "it is up", func() bool { return bytes.Contains(p.Tail(), []byte("up")) })
			own, ok1 := procman.Resident(p.Pid())
			other, ok2 := procman.Resident(pid)
			all, ok3 := procman.Memory(p.Pid())
			if !ok1 || !ok2 || !ok3 || own < 1<<20 || other < 1<<20 {
				t.Fatalf("own %d, descendant %d, all %d", own, other, all)
			}
			if all < own+other/2 || all > 2*(own+other) {
				t.Errorf("the tree has %d bytes, want about %d and %d", all, own, other)
			}
			_ = p.Signal(procman.Kill)
			awaitEnd(t, p)
			if size, ok := procman.Memory(p.Pid()); ok {
				t.Errorf("%d bytes of a process that is gone", size)
			}
		})
	}
}

// A process has memory if it exists.
func TestResident(t *testing.T) {
	if size, ok := procman.Resident(os.Getpid()); !ok || size < 1<<20 {
		t.Errorf("this process has %d bytes, %v", size, ok)
	}
	for _, pid := range []int{0, -1, 1 << 30} {
		if size, ok := procman.Resident(pid); ok || size != 0 {
			t.Errorf("process %d has %d bytes", pid, size)
		}
		if size, ok := procman.Memory(pid); ok || size != 0 {
			t.Errorf("process %d and its tree have %d bytes", pid, size)
		}
	}
}
