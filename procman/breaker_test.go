package procman_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
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
				p, err := s.Start(t.Context())
				if err != nil {
					t.Errorf("start: %v", err)
					return
				}
				s.Healthy(p)
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
