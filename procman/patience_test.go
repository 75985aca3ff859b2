package procman_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/procman"
)

// A rest of up to Patience is waited out; of a longer one the caller has the reason at once.
func TestPatience(t *testing.T) {
	for _, tt := range []struct {
		name     string
		patience time.Duration // 0: the default
		rest     time.Duration
		waits    bool
	}{
		{"default, as long", 0, time.Second, true},
		{"default, longer", 0, time.Second + 1, false},
		{"two seconds, as long", 2 * time.Second, 2 * time.Second, true},
		{"two seconds, longer", 2 * time.Second, 2*time.Second + 1, false},
		{"none", -1, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pol := procman.Policy{Jitter: -1, Initial: tt.rest, Patience: tt.patience}
			supervised(t, pol, diesUntil(2), func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
				mustStart(t, s)
				synctest.Wait()
				began := time.Now()
				_, err := s.Start(t.Context())
				took := time.Since(began)
				if tt.waits {
					if err != nil || took != tt.rest {
						t.Errorf("after %v: %v; want a process after %v", took, err, tt.rest)
					}
					return
				}
				held, ok := errors.AsType[*procman.HeldError](err)
				if !ok || took != 0 || held.Loop || held.RetryAfter() != tt.rest || held.Exit == nil || held.Exit.Code != 3 {
					t.Errorf("after %v: %v, %+v", took, err, held)
				}
			})
		})
	}
}

// Patience is for all rests of one Start together: two failures in a row do not double it.
func TestPatienceIsSpent(t *testing.T) {
	busy := errors.New("resource temporarily unavailable")
	never := func(int) (procman.Process, error) { return nil, busy }
	supervised(t, procman.Policy{Jitter: -1, Multiplier: 1, Initial: 600 * time.Millisecond}, never, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		began := time.Now()
		_, err := s.Start(t.Context())
		held, ok := errors.AsType[*procman.HeldError](err)
		if took := time.Since(began); took != 600*time.Millisecond || !ok || !errors.Is(err, busy) {
			t.Errorf("after %v: %v", took, err)
		}
		if want := "cannot start files yet: resource temporarily unavailable; it is tried again in 600ms"; err.Error() != want {
			t.Errorf("it reads %q, want %q", err, want)
		}
		if status := wantState(t, s, procman.Backoff); status.Held == nil || status.Held.Error() != held.Error() || status.NextStart != held.Until {
			t.Errorf("status %+v", status)
		}
	})
}

// A spawn that takes its time is waited for, whatever the patience: it is no rest.
func TestPatienceIsNotForSpawns(t *testing.T) {
	slow := func(n int) (procman.Process, error) { time.Sleep(25 * time.Second); return always(n) }
	supervised(t, procman.Policy{Jitter: -1}, slow, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		mustStart(t, s)
	})
}

// After the rest the server is started again for whoever asks then.
func TestRefusedStartsHeal(t *testing.T) {
	supervised(t, procman.Policy{Jitter: -1}, diesUntil(4), func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		begun := time.Now()
		for time.Since(begun) < time.Minute {
			if p, err := s.Start(t.Context()); err == nil && !isDone(p) {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		want := []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 3500 * time.Millisecond}
		if got := sp.times(); !slices.Equal(got, want) {
			t.Errorf("starts at %v, want %v", got, want)
		}
	})
}
