package procman_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/procman"
)

// After the pause one start is let through. The others wait for what comes of it: they are served if it comes up.
func TestTrialThatWorks(t *testing.T) {
	slow := func(n int) (procman.Process, error) {
		if n > 5 {
			time.Sleep(500 * time.Millisecond)
		}
		return diesUntil(6)(n)
	}
	housed(t, slow, func(t *testing.T, h *house) {
		h.fail(5)
		time.Sleep(30*time.Second - 400*time.Millisecond)
		var sessions sync.WaitGroup
		for range 10 {
			s := h.supervisor()
			sessions.Go(func() {
				began := time.Now()
				p, err := s.Start(t.Context())
				if err != nil {
					t.Errorf("start: %v", err)
					return
				}
				s.Healthy(p)
				// The pause's last 400 ms, the trial's 500, and the session's own spawn.
				if took := time.Since(began); took > 1400*time.Millisecond {
					t.Errorf("started after %v", took)
				}
			})
		}
		time.Sleep(400*time.Millisecond - 1)
		synctest.Wait()
		if n := len(h.spawner.times()); n != 5 {
			t.Errorf("%d starts before the pause was over", n)
		}
		time.Sleep(400 * time.Millisecond)
		if n := len(h.spawner.times()); n != 6 {
			t.Errorf("%d starts while one is tried, want one", n-5)
		}
		sessions.Wait()
		if n := len(h.spawner.times()); n != 15 {
			t.Errorf("%d starts, want one for each session", n-5)
		}
	})
}

// If the trial fails, there is another pause, and nobody else has started the server.
func TestTrialThatFails(t *testing.T) {
	for _, took := range []time.Duration{0, 500 * time.Millisecond, 10 * time.Second} {
		t.Run(took.String(), func(t *testing.T) {
			slow := func(n int) (procman.Process, error) {
				if n > 5 {
					time.Sleep(took)
				}
				return dying(n)
			}
			housed(t, slow, func(t *testing.T, h *house) {
				h.fail(5)
				time.Sleep(30 * time.Second)
				tries := h.supervisor()
				go func() { _, _ = tries.Start(t.Context()) }()
				synctest.Wait()
				var sessions sync.WaitGroup
				for range 10 {
					s := h.supervisor()
					sessions.Go(func() {
						held := h.refused(s)
						if known := took <= time.Second; known != !held.Until.IsZero() {
							t.Errorf("until %v", held.Until)
						}
						if held.Until.IsZero() && held.RetryAfter() != time.Second {
							t.Errorf("retry after %v", held.RetryAfter())
						}
					})
				}
				sessions.Wait()
				if took > time.Second {
					if state, status := h.supervisor().State(); state != procman.CrashLoop || !status.NextStart.IsZero() || !strings.Contains(h.breaker.Why(), "under way") {
						t.Errorf("during the trial: %v, %+v, %q", state, status, h.breaker.Why())
					}
				}
				time.Sleep(took)
				if n := len(h.spawner.times()); n != 6 {
					t.Errorf("%d starts, want the trial alone", n-5)
				}
				if held := h.refused(h.supervisor()); held.Until.Sub(h.spawner.begun) != 60*time.Second+took {
					t.Errorf("refused until %v, want a pause from the end of the trial", held.Until.Sub(h.spawner.begun))
				}
			})
		})
	}
}

// A start that is cut short proves nothing: the next one is let through.
func TestTrialCutShort(t *testing.T) {
	ends := map[string]func(*procman.Supervisor) error{
		"halt":  func(s *procman.Supervisor) error { return s.Halt(context.Background()) },
		"close": func(s *procman.Supervisor) error { return s.Close(context.Background()) },
	}
	for name, end := range ends {
		for _, spawning := range []bool{false, true} {
			t.Run(fmt.Sprint(name, spawning), func(t *testing.T) {
				slow := func(n int) (procman.Process, error) {
					if n == 6 && spawning {
						time.Sleep(time.Second)
						return nil, errors.New("interrupted")
					}
					return diesUntil(6)(n)
				}
				housed(t, slow, func(t *testing.T, h *house) {
					h.fail(5)
					time.Sleep(30 * time.Second)
					s := h.supervisor()
					ctx, stop := context.WithCancel(t.Context())
					go func() { _, _ = s.Start(ctx) }()
					synctest.Wait()
					stop()
					if err := end(s); err != nil {
						t.Error(err)
					}
					other := h.supervisor()
					other.Healthy(mustStart(t, other))
					if why := h.breaker.Why(); why != "" {
						t.Errorf("still open: %s", why)
					}
				})
			})
		}
	}
}

// A start that waits for the breaker ends with its context and with its supervisor.
func TestWaitingForTheBreakerEnds(t *testing.T) {
	housed(t, diesUntil(6), func(t *testing.T, h *house) {
		h.fail(5)
		h.policy.Patience = time.Hour
		s := h.supervisor()
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err := s.Start(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "exited with status 3") {
			t.Errorf("error %v", err)
		}
		got := make(chan error)
		go func() { _, err := s.Start(t.Context()); got <- err }()
		synctest.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-got; !errors.Is(err, procman.ErrClosed) {
			t.Errorf("error %v", err)
		}
		if n := len(h.spawner.times()); n != 5 {
			t.Errorf("%d starts", n)
		}
	})
}
