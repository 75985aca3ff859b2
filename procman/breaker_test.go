package procman_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/procman"
)

// Case 24: the breaker opens with the fifth failure within the window, whoever's failures they are, and not before.
func TestBreakerOpens(t *testing.T) {
	for _, tt := range []struct {
		name  string
		count int
		gap   time.Duration
		fails int
		open  bool
	}{
		{"defaults, four", 0, 0, 4, false},
		{"defaults, five", 0, 0, 5, true},
		{"one", 1, 0, 1, true},
		{"two of three", 3, 0, 2, false},
		{"three of three", 3, 0, 3, true},
		{"as far apart as the window is long", 3, 30 * time.Second, 3, true},
		{"further apart", 3, 30*time.Second + 1, 3, false},
		{"further apart for long", 3, 30*time.Second + 1, 30, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			housed(t, dying, func(t *testing.T, h *house) {
				h.breaker = procman.NewBreaker(tt.count, 0, 0)
				h.policy.Breaker = h.breaker
				for i := range tt.fails {
					if i > 0 {
						time.Sleep(tt.gap)
					}
					h.fail(1)
				}
				s := h.supervisor()
				state, _ := s.State()
				if open := state == procman.CrashLoop; open != tt.open || (h.breaker.Why() != "") != tt.open {
					t.Errorf("state %v, why %q; want open %v", state, h.breaker.Why(), tt.open)
				}
				if _, err := s.Start(t.Context()); (err != nil) != tt.open {
					t.Errorf("start: %v", err)
				}
			})
		})
	}
}

// What a refused start says, at once: why, and until when. So do the status and the breaker.
func TestBreakerTells(t *testing.T) {
	lastWords := func(n int) (procman.Process, error) {
		p := obedient(n)
		p.end(procman.Exit{Code: 3, Stderr: []string{"first", "no module named nosuch"}})
		return p, nil
	}
	housed(t, lastWords, func(t *testing.T, h *house) {
		opened := time.Now()
		h.fail(5)
		time.Sleep(10 * time.Second)
		began := time.Now()
		s := h.supervisor()
		held := h.refused(s)
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v", took)
		}
		if !held.Loop || held.Since != opened || held.Until != opened.Add(30*time.Second) || held.RetryAfter() != 20*time.Second {
			t.Errorf("held %+v", held)
		}
		if held.Exit == nil || held.Exit.Code != 3 || held.Failures != 5 || held.Window != time.Minute {
			t.Errorf("held %+v", held)
		}
		want := "cannot start files yet: it failed 5 times within 1m, at last: it exited with status 3 after 0s; it is tried again in 20s"
		if held.Error() != want {
			t.Errorf("it reads %q, want %q", held, want)
		}
		why := "it failed 5 times within 1m, at last: it exited with status 3 after 0s; its last words: no module named nosuch; it is tried again in 20s"
		if got := h.breaker.Why(); got != why {
			t.Errorf("the breaker says %q, want %q", got, why)
		}
		state, status := s.State()
		if state.String() != "crash-loop" || status.Since != opened || status.NextStart != held.Until || status.Held == nil || status.Held.Error() != want {
			t.Errorf("state %v, %+v", state, status)
		}
	})
}

// The supervisor whose failure opens the breaker reports it once; so does the one that closes it.
func TestBreakerEvents(t *testing.T) {
	housed(t, diesUntil(7), func(t *testing.T, h *house) {
		h.fail(5)
		if e := h.events.last(); e.Name != procman.EventCrashLoop || e.Delay != 30*time.Second {
			t.Errorf("event %+v", e)
		}
		time.Sleep(30 * time.Second)
		h.fail(1) // the trial: one more crash of the loop that is known
		if e := h.events.last(); e.Name != procman.EventCrashed || e.Delay != 30*time.Second {
			t.Errorf("event %+v", e)
		}
		time.Sleep(30 * time.Second)
		s := h.supervisor()
		s.Healthy(mustStart(t, s))
		if e := h.events.last(); e.Name != procman.EventRecovered {
			t.Errorf("event %+v", e)
		}
		if n := len(h.events.named(procman.EventCrashLoop)); n != 1 {
			t.Errorf("%d openings reported", n)
		}
	})
}

// Failed spawns count. Who asks is told what the last one failed of, and the cause can be looked at.
func TestFailedSpawnsCount(t *testing.T) {
	missing := func(int) (procman.Process, error) { return nil, errNoSuchFile }
	housed(t, missing, func(t *testing.T, h *house) {
		for range 5 {
			if _, err := h.supervisor().Start(t.Context()); err != errNoSuchFile {
				t.Fatalf("error %v", err)
			}
		}
		held := h.refused(h.supervisor())
		if !held.Loop || !errors.Is(held, fs.ErrNotExist) {
			t.Errorf("held %+v", held)
		}
		if want := "at last: file does not exist; it is tried again in 30s"; !strings.HasSuffix(held.Error(), want) {
			t.Errorf("it reads %q, want %q at the end", held, want)
		}
		if _, err := h.all[0].Start(t.Context()); err != errNoSuchFile {
			t.Errorf("in its own back-off a supervisor says %v, want what is permanent", err)
		}
	})
}

// A back-off that lasts longer than the pause is what a supervisor names.
func TestBackOffBeyondThePause(t *testing.T) {
	housed(t, dying, func(t *testing.T, h *house) {
		h.policy.Initial, h.policy.Max = 50*time.Second, 50*time.Second
		h.fail(5)
		state, status := h.all[4].State()
		if wait := time.Until(status.NextStart); state != procman.CrashLoop || wait != 50*time.Second {
			t.Errorf("state %v, next start in %v", state, wait)
		}
		_, status = h.supervisor().State()
		if wait := time.Until(status.NextStart); wait != 30*time.Second {
			t.Errorf("another supervisor's next start in %v", wait)
		}
	})
}

// Reset is for who has mended the server and will not wait.
func TestBreakerReset(t *testing.T) {
	housed(t, diesUntil(6), func(t *testing.T, h *house) {
		h.fail(5)
		waiting := make(chan error)
		s := h.supervisor()
		h.policy.Patience = time.Hour
		patient := h.supervisor()
		go func() { _, err := patient.Start(t.Context()); waiting <- err }()
		synctest.Wait()
		h.breaker.Reset()
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		mustStart(t, s)
		if h.breaker.Why() != "" {
			t.Error(h.breaker.Why())
		}
		var none *procman.Breaker
		none.Reset()
		if none.Why() != "" {
			t.Error("no breaker is an open one")
		}
	})
}

// Without a breaker the back-off alone holds a start up.
func TestNoBreaker(t *testing.T) {
	supervised(t, steady, dying, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		for range 20 {
			mustStart(t, s)
		}
		status := wantState(t, s, procman.Backoff)
		if status.Held == nil || status.Held.Loop || status.Held.Until != status.NextStart {
			t.Errorf("held %+v", status.Held)
		}
		if slices.Contains(r.names(), procman.EventCrashLoop) {
			t.Errorf("events %v", r.names())
		}
	})
}
