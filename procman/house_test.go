package procman_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/procman"
)

// house is a server with one supervisor for each client's session, all behind one breaker.
type house struct {
	t       *testing.T
	breaker *procman.Breaker
	spawner *fakeSpawner
	events  *recorder
	take    func(procman.Event) // events keeps them, unless a test is too long for that
	policy  procman.Policy
	all     []*procman.Supervisor
}

// housed runs f in a bubble with a house whose spawner follows make, and closes it afterwards.
func housed(t *testing.T, make func(n int) (procman.Process, error), f func(t *testing.T, h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &house{t: t, breaker: procman.NewBreaker(0, 0, 0), spawner: newFakeSpawner(make), events: &recorder{}}
		h.take = h.events.add
		h.policy = procman.Policy{Jitter: -1, Breaker: h.breaker}
		f(t, h)
		for _, s := range h.all {
			if err := s.Close(t.Context()); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	})
}

// supervisor is that of one more session.
func (h *house) supervisor() *procman.Supervisor {
	s := procman.NewSupervisor(procman.Spec{Name: "files"}, h.policy, h.spawner, h.take)
	h.all = append(h.all, s)
	return s
}

// fail has new sessions start a server that ends at once.
func (h *house) fail(times int) {
	h.t.Helper()
	for range times {
		if _, err := h.supervisor().Start(h.t.Context()); err != nil {
			h.t.Fatalf("start: %v", err)
		}
		synctest.Wait()
	}
}

// refused wants a start to be refused within a second, and returns the refusal.
func (h *house) refused(s *procman.Supervisor) *procman.HeldError {
	h.t.Helper()
	began := time.Now()
	_, err := s.Start(h.t.Context())
	if took := time.Since(began); took > time.Second {
		h.t.Errorf("the reason came after %v", took)
	}
	held, ok := errors.AsType[*procman.HeldError](err)
	if !ok {
		h.t.Fatalf("error %v, want a held start", err)
	}
	return held
}

func dying(n int) (procman.Process, error) { p := obedient(n); p.crash(); return p, nil }

// diesUntil makes processes that die at once, and good ones from n on.
func diesUntil(n int) func(int) (procman.Process, error) {
	return func(i int) (procman.Process, error) {
		if i < n {
			return dying(i)
		}
		return always(i)
	}
}
