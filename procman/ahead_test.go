package procman_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/procman"
)

// A process started ahead is the one that Start gets.
func TestAhead(t *testing.T) {
	supervised(t, steady, always, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		early, err := s.Ahead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p := mustStart(t, s); p != early || len(sp.times()) != 1 {
			t.Errorf("%d starts", len(sp.times()))
		}
	})
}

// keepAhead starts processes ahead until ctx ends.
func keepAhead(ctx context.Context, s *procman.Supervisor) {
	for {
		p, err := s.Ahead(ctx)
		if err != nil {
			return
		}
		select {
		case <-p.Done():
		case <-ctx.Done():
			return
		}
	}
}

// Nobody used it, so its end is nobody's failure: the breaker does not count it, and the back-off is for starts ahead only.
func TestEndsAheadAreNoFailures(t *testing.T) {
	housed(t, diesUntil(12), func(t *testing.T, h *house) {
		h.policy.Patience = -1
		s := h.supervisor()
		ctx, stop := context.WithCancel(t.Context())
		go keepAhead(ctx, s)
		time.Sleep(150 * time.Second)
		stop()
		synctest.Wait()
		want := []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 3500 * time.Millisecond,
			7500 * time.Millisecond, 15500 * time.Millisecond, 31500 * time.Millisecond, 61500 * time.Millisecond, 91500 * time.Millisecond, 121500 * time.Millisecond}
		if got := h.spawner.times(); !slices.Equal(got, want) {
			t.Errorf("starts at %v, want %v", got, want)
		}
		if why := h.breaker.Why(); why != "" {
			t.Error(why)
		}
		status := wantState(t, s, procman.Backoff)
		if status.Restarts != 0 || len(h.events.named(procman.EventCrashed)) != 0 {
			t.Errorf("%d restarts, events %v", status.Restarts, h.events.names())
		}
		if e := h.events.last(); e.Name != procman.EventEnded || e.Delay != 30*time.Second {
			t.Errorf("event %+v", e)
		}
		mustStart(t, s) // at once
		synctest.Wait()
		if e := h.events.last(); e.Name != procman.EventCrashed || e.Delay != 500*time.Millisecond {
			t.Errorf("event %+v, want a crash and the first interval", e)
		}
	})
}

// The back-off of starts ahead is forgotten also once it has run out.
func TestBackOffAheadIsForgotten(t *testing.T) {
	supervised(t, steady, dying, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		keepAhead(ctx, s)
		time.Sleep(time.Hour)
		mustStart(t, s)
		synctest.Wait()
		if e := r.last(); e.Delay != 500*time.Millisecond {
			t.Errorf("event %+v", e)
		}
	})
}

// From the moment somebody wants the process its end counts, also if it is only being spawned then.
func TestTakenAheadCounts(t *testing.T) {
	for _, spawning := range []bool{false, true} {
		slow := func(n int) (procman.Process, error) {
			if spawning {
				time.Sleep(time.Second)
			}
			return always(n)
		}
		housed(t, slow, func(t *testing.T, h *house) {
			for range 5 {
				s := h.supervisor()
				go func() { _, _ = s.Ahead(t.Context()) }()
				synctest.Wait()
				mustStart(t, s).crash()
				synctest.Wait()
			}
			if h.breaker.Why() == "" || len(h.spawner.times()) != 5 {
				t.Errorf("not open after %d processes", len(h.spawner.times()))
			}
		})
	}
}

// Nothing is started ahead of a server that does not come up. It is once it does.
func TestAheadWaitsForTheBreaker(t *testing.T) {
	housed(t, diesUntil(6), func(t *testing.T, h *house) {
		h.fail(5)
		s := h.supervisor()
		ahead := make(chan error)
		go func() { _, err := s.Ahead(t.Context()); ahead <- err }()
		time.Sleep(time.Hour)
		if n := len(h.spawner.times()); n != 5 {
			t.Fatalf("%d started ahead", n-5)
		}
		other := h.supervisor()
		p := mustStart(t, other)
		synctest.Wait()
		if n := len(h.spawner.times()); n != 6 {
			t.Fatalf("%d started ahead beside the trial", n-6)
		}
		other.Healthy(p)
		if err := <-ahead; err != nil {
			t.Error(err)
		}
	})
}

// Ahead ends with its context, with its supervisor, and with what cannot succeed.
func TestAheadEnds(t *testing.T) {
	housed(t, diesUntil(6), func(t *testing.T, h *house) {
		h.fail(5)
		s := h.supervisor()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if _, err := s.Ahead(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		ahead := make(chan error)
		go func() { _, err := s.Ahead(t.Context()); ahead <- err }()
		synctest.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-ahead; !errors.Is(err, procman.ErrClosed) {
			t.Errorf("error %v", err)
		}
	})
	missing := func(int) (procman.Process, error) { return nil, errNoSuchFile }
	supervised(t, steady, missing, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		for range 2 {
			if _, err := s.Ahead(t.Context()); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("error %v", err)
			}
		}
		if n := len(sp.times()); n != 1 {
			t.Errorf("%d tries", n)
		}
	})
}

// Gone waits for a process to end, by itself or by the ladder, and starts and stops nothing.
func TestGone(t *testing.T) {
	slow := func(n int) (procman.Process, error) {
		time.Sleep(time.Second)
		return newFakeProc(n, map[string]time.Duration{"terminate": 0}), nil
	}
	supervised(t, steady, slow, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		gone := make(chan error)
		wait := func() { go func() { gone <- s.Gone(t.Context()) }(); synctest.Wait() }
		for _, end := range []func(p *fakeProc){func(p *fakeProc) { p.crash() }, func(*fakeProc) { _ = s.Halt(t.Context()) }} {
			if err := s.Gone(t.Context()); err != nil {
				t.Errorf("nothing there: %v", err)
			}
			go func() { _, _ = s.Start(t.Context()) }()
			synctest.Wait()
			wait()
			p := mustStart(t, s)
			select {
			case err := <-gone:
				t.Fatalf("gone while it runs: %v", err)
			default:
			}
			end(p)
			if err := <-gone; err != nil || !isDone(p) {
				t.Errorf("error %v", err)
			}
		}
		mustStart(t, s)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := s.Gone(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}
