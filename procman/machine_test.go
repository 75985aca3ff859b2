package procman_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"mcpbridge/procman"
)

// Whatever happens in whatever order: at most one process lives, no move is outside the table (which would panic), after
// Close nothing is left, and the breaker lets the next start through, at the latest after a pause.
func TestSupervisorUnderRandomEvents(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ops := rapid.SliceOfN(rapid.IntRange(0, 10), 1, 40).Draw(rt, "ops")
		synctest.Test(t, func(t *testing.T) { randomLife(t, rt, ops) })
	})
}

func randomLife(t *testing.T, rt *rapid.T, ops []int) {
	var procs procList
	sp := newFakeSpawner(func(n int) (procman.Process, error) {
		time.Sleep(time.Duration(n%3) * 10 * time.Millisecond)
		for _, p := range procs.all() {
			select {
			case <-p.Done():
			default:
				rt.Errorf("process %d still lives when %d starts", p.pid, n)
			}
		}
		switch n % 5 {
		case 3:
			return nil, errNoSuchFile
		case 4:
			return nil, errors.New("try again")
		}
		p := newFakeProc(n, map[string]time.Duration{"terminate": time.Duration(n%4) * time.Second, "kill": 0})
		procs.add(p)
		return p, nil
	})
	breaker := procman.NewBreaker(2, 0, time.Second)
	s := procman.NewSupervisor(procman.Spec{Name: "files"}, procman.Policy{Breaker: breaker}, sp, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for i, op := range ops {
		act(ctx, s, procs.all(), op)
		synctest.Wait()
		time.Sleep(time.Duration(i%4) * 300 * time.Millisecond)
	}
	if err := s.Close(t.Context()); err != nil {
		rt.Errorf("close: %v", err)
	}
	for _, p := range procs.all() {
		if !isDone(p) {
			rt.Errorf("process %d outlived its supervisor", p.pid)
		}
	}
	cancel()
	synctest.Wait()
	time.Sleep(time.Second)
	next := procman.NewSupervisor(procman.Spec{Name: "files"}, procman.Policy{Breaker: breaker}, newFakeSpawner(always), nil)
	if _, err := next.Start(t.Context()); err != nil {
		rt.Errorf("the breaker is stuck: %v", err)
	}
	if err := next.Close(t.Context()); err != nil {
		rt.Errorf("close: %v", err)
	}
}

func act(ctx context.Context, s *procman.Supervisor, procs []*fakeProc, op int) {
	var last *fakeProc
	if len(procs) > 0 {
		last = procs[len(procs)-1]
	}
	switch {
	case op <= 2:
		go func() { _, _ = s.Start(ctx) }()
	case op == 3:
		go func() { _ = s.Halt(ctx) }()
	case op == 4 && last != nil:
		last.crash()
	case op == 5 && last != nil:
		s.Forgive(last)
	case op == 6:
		s.State()
	case op == 7:
		go func() { _ = s.Halt(ctx); _, _ = s.Start(ctx) }()
	case op == 8 && last != nil:
		s.Healthy(last)
	case op == 9 && last != nil:
		s.Reject(last, errors.New("no good"))
	case op == 10:
		go func() { _, _ = s.Ahead(ctx) }()
	}
}

// procList is what the spawner made, for the test to look at from another goroutine.
type procList struct {
	mu   sync.Mutex
	list []*fakeProc
}

func (l *procList) add(p *fakeProc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, p)
}

func (l *procList) all() []*fakeProc {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

func isDone(p procman.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}
