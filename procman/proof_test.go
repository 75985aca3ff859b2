package procman_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/procman"
)

// A start that is stopped before it has come up is no failure either.
func TestStopsAreNoFailures(t *testing.T) {
	housed(t, always, func(t *testing.T, h *house) {
		for range 10 {
			s := h.supervisor()
			mustStart(t, s)
			if err := s.Halt(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustStart(t, s)
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if why := h.breaker.Why(); why != "" {
			t.Error(why)
		}
	})
}

// A process that came up and crashes later is no reason to stop other sessions. Its own supervisor stops after five.
func TestCrashesAfterHealthStopOneSupervisorOnly(t *testing.T) {
	housed(t, always, func(t *testing.T, h *house) {
		h.policy.Patience = time.Hour
		s := h.supervisor()
		for i := range 5 {
			if state, _ := s.State(); state == procman.CrashLoop {
				t.Fatalf("open after %d crashes", i)
			}
			p := mustStart(t, s)
			s.Healthy(p)
			p.crash()
			synctest.Wait()
		}
		if h.breaker.Why() != "" {
			t.Errorf("the others are stopped: %s", h.breaker.Why())
		}
		mustStart(t, h.supervisor())
		state, status := s.State()
		if state != procman.CrashLoop || time.Until(status.NextStart) != 30*time.Second || h.events.last().Name != procman.EventStarted {
			t.Errorf("state %v, next start %v", state, status.NextStart)
		}
		if n := len(h.events.named(procman.EventCrashLoop)); n != 1 {
			t.Errorf("%d openings reported", n)
		}
		p := mustStart(t, s)
		s.Healthy(p)
		if state, _ := s.State(); state != procman.Running {
			t.Errorf("state %v", state)
		}
	})
}

// Halt is also how an operator restarts a server: its own breaker starts afresh.
func TestHaltClosesTheOwnBreaker(t *testing.T) {
	housed(t, always, func(t *testing.T, h *house) {
		h.policy.Patience = time.Hour
		s := h.supervisor()
		for range 5 {
			p := mustStart(t, s)
			s.Healthy(p)
			p.crash()
		}
		wantState(t, s, procman.CrashLoop)
		if err := s.Halt(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		mustStart(t, s)
		if took := time.Since(began); took != 0 {
			t.Errorf("started after %v", took)
		}
	})
}

// VER-24 and the breaker: a forgiven end is no failure, whenever it is forgiven, and takes the pause back that it began.
func TestForgivenEndsDoNotCount(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			housed(t, always, func(t *testing.T, h *house) {
				forgiven := func() {
					s := h.supervisor()
					p := mustStart(t, s)
					if when == "before" {
						s.Forgive(p)
					}
					p.crash()
					synctest.Wait()
					if when == "after" {
						s.Forgive(p)
					}
				}
				failed := func() { mustStart(t, h.supervisor()).crash(); synctest.Wait() }
				for range 10 {
					forgiven()
				}
				for range 4 {
					failed()
				}
				forgiven() // for a moment the fifth
				if why := h.breaker.Why(); why != "" {
					t.Errorf("open: %s", why)
				}
				failed()
				if h.breaker.Why() == "" {
					t.Error("five failures, but it is not open")
				}
				time.Sleep(30 * time.Second)
				forgiven() // the trial
				if why := h.breaker.Why(); why != "" {
					t.Errorf("a forgiven trial began a pause: %s", why)
				}
				failed()
				h.refused(h.supervisor())
			})
		})
	}
}

// A failure that came while the breaker was open keeps it open when the one that opened it is forgiven.
func TestForgivenOpenerWithOthers(t *testing.T) {
	housed(t, always, func(t *testing.T, h *house) {
		late := h.supervisor()
		last := mustStart(t, late)
		opener := h.supervisor()
		p := mustStart(t, opener)
		for range 4 {
			mustStart(t, h.supervisor()).crash()
			synctest.Wait()
		}
		p.crash()
		synctest.Wait()
		last.crash()
		synctest.Wait()
		opener.Forgive(p)
		if h.breaker.Why() == "" {
			t.Error("five others have failed, but it is not open")
		}
	})
}

// A process can end before word of its health arrives: the word counts.
func TestHealthyAfterTheEnd(t *testing.T) {
	housed(t, always, func(t *testing.T, h *house) {
		for range 10 {
			s := h.supervisor()
			p := mustStart(t, s)
			p.crash()
			synctest.Wait()
			s.Healthy(p)
			s.Healthy(p)
		}
		if why := h.breaker.Why(); why != "" {
			t.Errorf("open: %s", why)
		}
		s := h.supervisor()
		for i := range 5 {
			h.policy.Patience = time.Hour
			if i == 4 {
				wantState(t, s, procman.Idle)
			}
			p := mustStart(t, s)
			p.crash()
			synctest.Wait()
			s.Healthy(p)
			time.Sleep(5 * time.Second)
		}
		wantState(t, s, procman.CrashLoop)
	})
}

// Whichever process comes up is proof, also one that was started before the breaker opened.
func TestAnyHealthyProcessClosesTheBreaker(t *testing.T) {
	housed(t, func(n int) (procman.Process, error) {
		if n == 1 {
			return always(n)
		}
		return dying(n)
	}, func(t *testing.T, h *house) {
		slow := h.supervisor()
		p := mustStart(t, slow)
		h.fail(5)
		if h.breaker.Why() == "" {
			t.Fatal("not open")
		}
		slow.Healthy(p)
		if why := h.breaker.Why(); why != "" {
			t.Errorf("open: %s", why)
		}
		h.fail(4)
		if why := h.breaker.Why(); why != "" {
			t.Errorf("old failures count: %s", why)
		}
	})
}

// Of a process that came up and ended before word of it arrived nothing is left in the count.
func TestLateHealthIsNoFailure(t *testing.T) {
	housed(t, always, func(t *testing.T, h *house) {
		for range 4 {
			s := h.supervisor()
			p := mustStart(t, s)
			p.crash()
			synctest.Wait()
			s.Healthy(p)
		}
		mustStart(t, h.supervisor()).crash()
		synctest.Wait()
		if why := h.breaker.Why(); why != "" {
			t.Errorf("one failure opened it: %s", why)
		}
	})
}

// A crash that is forgiven is taken back from the supervisor's own count too.
func TestForgivenCrashAfterHealth(t *testing.T) {
	housed(t, always, func(t *testing.T, h *house) {
		h.policy.Patience = time.Hour
		s := h.supervisor()
		for i := range 5 {
			p := mustStart(t, s)
			s.Healthy(p)
			p.crash()
			synctest.Wait()
			if i == 0 {
				s.Forgive(p)
			}
		}
		if state, _ := s.State(); state == procman.CrashLoop {
			t.Error("open after four crashes that count")
		}
	})
}

// That the last process came up says nothing about a spawn that fails.
func TestFailedSpawnAfterHealth(t *testing.T) {
	housed(t, func(n int) (procman.Process, error) {
		if n%2 == 0 {
			return nil, errNoSuchFile
		}
		return always(n)
	}, func(t *testing.T, h *house) {
		for range 5 {
			s := h.supervisor()
			p := mustStart(t, s)
			s.Healthy(p)
			time.Sleep(time.Second)
			p.crash()
			if _, err := s.Start(t.Context()); err == nil {
				t.Fatal("started")
			}
		}
		if h.breaker.Why() == "" {
			t.Error("five failed spawns, and it is closed")
		}
	})
}

// One breaker that refuses takes nothing from the other.
func TestBothBreakersOpen(t *testing.T) {
	housed(t, func(n int) (procman.Process, error) {
		if n > 5 && n <= 10 {
			return dying(n)
		}
		return always(n)
	}, func(t *testing.T, h *house) {
		h.policy.Patience = time.Hour
		s := h.supervisor()
		for range 5 {
			p := mustStart(t, s)
			s.Healthy(p)
			p.crash()
			synctest.Wait()
		}
		h.policy.Patience = 0
		time.Sleep(20 * time.Second)
		h.fail(5)
		time.Sleep(10 * time.Second)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := s.Start(ctx); err == nil {
			t.Fatal("started although the shared breaker is open")
		}
		h.breaker.Reset()
		mustStart(t, s)
	})
}

// A process that comes up and ends at once counts for all supervisors; one that ran for as long as it has to for its own alone.
func TestProof(t *testing.T) {
	for _, tt := range []struct {
		run  time.Duration
		open bool
	}{{time.Second - 1, true}, {time.Second, false}} {
		housed(t, always, func(t *testing.T, h *house) {
			h.policy.Proof = time.Second
			for i := range 5 {
				if why := h.breaker.Why(); why != "" {
					t.Fatalf("open after %d: %s", i, why)
				}
				s := h.supervisor()
				p := mustStart(t, s)
				s.Healthy(p)
				time.Sleep(tt.run)
				p.crash()
				synctest.Wait()
			}
			if open := h.breaker.Why() != ""; open != tt.open {
				t.Errorf("after runs of %v open is %v", tt.run, open)
			}
		})
	}
}
