package procman_test

import (
	"context"
	"testing"
	"time"

	"mcpbridge/procman"
)

// ends are the ways in which a supervisor ends its process.
var ends = map[string]func(ctx context.Context, s *procman.Supervisor, p procman.Process) error{
	"stop": func(ctx context.Context, _ *procman.Supervisor, p procman.Process) error {
		return procman.Stop(ctx, p, quick)
	},
	"halt":  func(ctx context.Context, s *procman.Supervisor, _ procman.Process) error { return s.Halt(ctx) },
	"close": func(ctx context.Context, s *procman.Supervisor, _ procman.Process) error { return s.Close(ctx) },
	"reject": func(ctx context.Context, s *procman.Supervisor, p procman.Process) error {
		s.Reject(p, errRefused)
		return s.Gone(ctx)
	},
	"close in a hurry": func(ctx context.Context, s *procman.Supervisor, p procman.Process) error {
		soon, stop := context.WithTimeout(ctx, time.Millisecond)
		defer stop()
		_ = s.Close(soon)
		<-p.Done()
		return nil
	},
}

// STD-01: whatever hides behind whatever, nothing of it is left, however it is ended.
func TestNothingIsLeftOfATree(t *testing.T) {
	for _, kind := range kinds {
		for name, end := range ends {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				mark := testMark(t)
				nothingIsLeft(t, kindSpec(kind, mark), mark, end)
			})
		}
	}
}

// Without a mark the group is what is found.
func TestNothingIsLeftWithoutAMark(t *testing.T) {
	for _, kind := range []string{"shells", "npx"} {
		t.Run(kind, func(t *testing.T) { nothingIsLeft(t, kindSpec(kind, ""), "none", ends["halt"]) })
	}
}

func nothingIsLeft(t *testing.T, spec procman.Spec, mark string, end func(context.Context, *procman.Supervisor, procman.Process) error) {
	s := procman.NewSupervisor(spec, procman.Policy{Grace: quick}, procman.OS(), nil)
	p, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pid := pidLine(t, firstLine(t, p))
	if err := end(t.Context(), s, p); err != nil {
		t.Errorf("end: %v", err)
	}
	if lives(pid) {
		t.Errorf("process %d survived", pid)
	}
	if left := marked(mark); len(left) > 0 {
		t.Errorf("survivors %v", left)
	}
	awaitEnd(t, p)
	readAll(t, p)
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}
