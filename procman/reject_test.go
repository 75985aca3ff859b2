package procman_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/procman"
)

var errRefused = errors.New("it refused initialize: no")

// A process that is no good is ended by the ladder, and the next start waits, from the end of it on.
func TestReject(t *testing.T) {
	slow := func(n int) (procman.Process, error) {
		return newFakeProc(n, map[string]time.Duration{"terminate": 0}), nil
	}
	supervised(t, procman.Policy{Jitter: -1}, slow, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		p := mustStart(t, s)
		time.Sleep(time.Minute) // as long as a start may take; that it lived is no merit
		s.Reject(p, errRefused)
		wantState(t, s, procman.Stopping)
		<-p.Done()
		synctest.Wait()
		if want := []string{"eof@1m0s", "terminate@1m2s"}; !slices.Equal(p.did(), want) {
			t.Errorf("steps %v, want %v", p.did(), want)
		}
		status := wantState(t, s, procman.Backoff)
		if wait := time.Until(status.NextStart); wait != 500*time.Millisecond || status.LastErr != errRefused || status.LastExit == nil {
			t.Errorf("next start in %v, status %+v", wait, status)
		}
		if want := "cannot start files yet: it refused initialize: no; it is tried again in 500ms"; status.Held.Error() != want {
			t.Errorf("held: %q, want %q", status.Held, want)
		}
		s.Reject(mustStart(t, s), errRefused)
		synctest.Wait()
		time.Sleep(3 * time.Second)
		if e := r.last(); e.Name != procman.EventStopped || e.Delay != time.Second || e.State != procman.Backoff {
			t.Errorf("event %+v, want a rest of 1s", e)
		}
		want := []string{"started", "rejected", "stopping", "stopped", "started", "rejected", "stopping", "stopped"}
		if !slices.Equal(r.names(), want) {
			t.Errorf("events %v, want %v", r.names(), want)
		}
		if e := r.named(procman.EventRejected)[0]; e.Err != errRefused || e.Pid != p.Pid() {
			t.Errorf("event %+v", e)
		}
	})
}

// Who asks while a stubborn process is on the ladder has the reason within a second.
func TestRejectTellsAtOnce(t *testing.T) {
	hard := func(n int) (procman.Process, error) {
		return newFakeProc(n, map[string]time.Duration{"kill": 0}), nil
	}
	supervised(t, procman.Policy{Jitter: -1}, hard, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		s.Reject(mustStart(t, s), errRefused)
		began := time.Now()
		_, err := s.Start(t.Context())
		held, ok := errors.AsType[*procman.HeldError](err)
		if took := time.Since(began); took > time.Second || !ok || !errors.Is(err, errRefused) {
			t.Errorf("after %v: %v", took, err)
		}
		if ok && (!held.Until.IsZero() || held.RetryAfter() != time.Second) {
			t.Errorf("held %+v", held)
		}
	})
}

// After one that had come up the next is to follow: who asks meanwhile waits for the ladder, however long.
func TestRejectOfAHealthyProcessIsWaitedFor(t *testing.T) {
	hard := func(n int) (procman.Process, error) {
		return newFakeProc(n, map[string]time.Duration{"kill": 0}), nil
	}
	supervised(t, procman.Policy{Jitter: -1}, hard, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		p := mustStart(t, s)
		s.Healthy(p)
		s.Reject(p, errRefused)
		if next := mustStart(t, s); next == p || time.Since(p.begun) != 5*time.Second {
			t.Errorf("the next one started after %v, want it behind the ladder", time.Since(p.begun))
		}
	})
}

// Rejected processes count for the breaker, with the reason.
func TestRejectCounts(t *testing.T) {
	housed(t, always, func(t *testing.T, h *house) {
		for range 5 {
			s := h.supervisor()
			s.Reject(mustStart(t, s), errRefused)
			synctest.Wait()
		}
		held := h.refused(h.supervisor())
		if !held.Loop || held.Err != errRefused || held.Exit != nil {
			t.Errorf("held %+v", held)
		}
		if n := len(h.events.named(procman.EventCrashLoop)); n != 1 {
			t.Errorf("%d openings reported", n)
		}
		time.Sleep(30 * time.Second)
		s := h.supervisor()
		s.Reject(mustStart(t, s), errRefused)
		if held := h.refused(h.supervisor()); held.RetryAfter() != 30*time.Second {
			t.Errorf("after a rejected trial: %+v", held)
		}
	})
}

// A rejection is no crash of a process that served: its interval counts from the start, and others go on.
func TestRejectOfAHealthyProcess(t *testing.T) {
	housed(t, always, func(t *testing.T, h *house) {
		for range 10 {
			s := h.supervisor()
			p := mustStart(t, s)
			s.Healthy(p)
			time.Sleep(500 * time.Millisecond)
			s.Reject(p, errors.New("it takes no input any more"))
			synctest.Wait()
			began := time.Now()
			mustStart(t, s)
			if took := time.Since(began); took != 0 {
				t.Errorf("served again after %v", took)
			}
		}
		if why := h.breaker.Why(); why != "" {
			t.Error(why)
		}
	})
}

// What is over, or ending anyway, cannot be rejected; what is rejected can be forgiven, halted and closed.
func TestRejectAndOthers(t *testing.T) {
	stubborn := func(n int) (procman.Process, error) {
		return newFakeProc(n, map[string]time.Duration{"terminate": 0}), nil
	}
	tests := []struct {
		name   string
		do     func(t *testing.T, s *procman.Supervisor, p *fakeProc)
		state  procman.State
		counts bool
	}{
		{"alone", func(t *testing.T, s *procman.Supervisor, p *fakeProc) {
			s.Reject(p, errRefused)
		}, procman.Backoff, true},
		{"twice", func(t *testing.T, s *procman.Supervisor, p *fakeProc) {
			s.Reject(p, errRefused)
			s.Reject(p, errRefused)
		}, procman.Backoff, true},
		{"after its end", func(t *testing.T, s *procman.Supervisor, p *fakeProc) {
			p.crash()
			s.Reject(p, errRefused)
		}, procman.Backoff, true},
		{"while halted", func(t *testing.T, s *procman.Supervisor, p *fakeProc) {
			go func() { _ = s.Halt(t.Context()) }()
			synctest.Wait()
			s.Reject(p, errRefused)
		}, procman.Idle, false},
		{"then halted: no back-off", func(t *testing.T, s *procman.Supervisor, p *fakeProc) {
			s.Reject(p, errRefused)
			if err := s.Halt(t.Context()); err != nil {
				t.Error(err)
			}
		}, procman.Idle, true},
		{"then closed", func(t *testing.T, s *procman.Supervisor, p *fakeProc) {
			s.Reject(p, errRefused)
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}, procman.Closed, true},
		{"forgiven before", func(t *testing.T, s *procman.Supervisor, p *fakeProc) {
			s.Forgive(p)
			s.Reject(p, errRefused)
		}, procman.Idle, false},
		{"forgiven on the ladder", func(t *testing.T, s *procman.Supervisor, p *fakeProc) {
			s.Reject(p, errRefused)
			s.Forgive(p)
		}, procman.Idle, false},
		{"forgiven after the ladder", func(t *testing.T, s *procman.Supervisor, p *fakeProc) {
			s.Reject(p, errRefused)
			<-p.Done()
			synctest.Wait()
			s.Forgive(p)
		}, procman.Idle, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			housed(t, stubborn, func(t *testing.T, h *house) {
				h.breaker = procman.NewBreaker(1, 0, 0)
				h.policy.Breaker = h.breaker
				s := h.supervisor()
				p := mustStart(t, s)
				tt.do(t, s, p)
				<-p.Done()
				synctest.Wait()
				if counted := h.breaker.Why() != ""; counted != tt.counts {
					t.Errorf("counted: %v, want %v", counted, tt.counts)
				}
				h.breaker.Reset()
				wantState(t, s, tt.state)
			})
		})
	}
}
