package procman_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/procman"
)

// steady has no jitter, so that times are exact, and has Start wait out every rest.
var steady = procman.Policy{Jitter: -1, Patience: time.Hour}

var errNoSuchFile = &procman.StartError{Spec: procman.Spec{Name: "files", Command: "nosuch"}, Permanent: true, Err: fs.ErrNotExist}

// supervised runs f in a bubble with a supervisor whose spawner follows make, and closes it afterwards.
func supervised(t *testing.T, pol procman.Policy, make func(n int) (procman.Process, error), f func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sp, r := newFakeSpawner(make), &recorder{}
		s := procman.NewSupervisor(procman.Spec{Name: "files"}, pol, sp, r.add)
		f(t, s, sp, r)
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if state, _ := s.State(); state != procman.Closed {
			t.Errorf("state after close is %v", state)
		}
	})
}

func mustStart(t *testing.T, s *procman.Supervisor) *fakeProc {
	t.Helper()
	p, err := s.Start(t.Context())
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return p.(*fakeProc)
}

func wantState(t *testing.T, s *procman.Supervisor, want procman.State) procman.Status {
	t.Helper()
	state, status := s.State()
	if state != want {
		t.Errorf("state %v, want %v", state, want)
	}
	return status
}

func always(n int) (procman.Process, error) { return obedient(100 + n), nil }

func TestStartIsLazyAndShared(t *testing.T) {
	slow := func(n int) (procman.Process, error) { time.Sleep(25 * time.Second); return always(n) }
	supervised(t, steady, slow, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		wantState(t, s, procman.Idle)
		if len(sp.times()) != 0 {
			t.Fatal("started before anybody asked")
		}
		procs := make([]procman.Process, 5)
		var callers sync.WaitGroup
		for i := range procs {
			callers.Go(func() { procs[i], _ = s.Start(t.Context()) })
		}
		synctest.Wait()
		wantState(t, s, procman.Starting)
		callers.Wait()
		for _, p := range procs {
			if p == nil || p != procs[0] {
				t.Fatalf("callers got %v (case 28)", procs)
			}
		}
		if n := len(sp.times()); n != 1 {
			t.Errorf("%d starts, want 1", n)
		}
		if status := wantState(t, s, procman.Running); status.Pid != 101 {
			t.Errorf("pid %d, want 101", status.Pid)
		}
	})
}

// One caller that gives up does not take the start away from the others.
func TestStartOutlivesTheCallerThatBeganIt(t *testing.T) {
	slow := func(n int) (procman.Process, error) { time.Sleep(10 * time.Second); return always(n) }
	supervised(t, steady, slow, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Start(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the deadline", err)
		}
		mustStart(t, s)
		if n := len(sp.times()); n != 1 {
			t.Errorf("%d starts, want 1", n)
		}
	})
}

// STD-04, case 24: intervals grow to the cap and count from start to start.
func TestCrashLoopBacksOff(t *testing.T) {
	dead := func(n int) (procman.Process, error) { p := obedient(n); p.crash(); return p, nil }
	pol := procman.Policy{Jitter: -1, Max: 3 * time.Second, Patience: time.Hour}
	supervised(t, pol, dead, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		for range 6 {
			<-mustStart(t, s).Done()
		}
		want := []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 3500 * time.Millisecond, 6500 * time.Millisecond, 9500 * time.Millisecond}
		if got := sp.times(); !slices.Equal(got, want) {
			t.Errorf("starts at %v, want %v", got, want)
		}
		status := wantState(t, s, procman.Backoff)
		if status.Restarts != 5 {
			t.Errorf("%d restarts, want 5", status.Restarts)
		}
		if status.LastExit == nil || status.LastExit.Code != 3 {
			t.Errorf("last exit %v", status.LastExit)
		}
		if wait := time.Until(status.NextStart); wait != 3*time.Second {
			t.Errorf("next start in %v, want 3s", wait)
		}
	})
}

// A server that lived longer than its interval is served again at once: only in-flight calls notice.
func TestCrashAfterLongerThanTheIntervalRestartsAtOnce(t *testing.T) {
	supervised(t, steady, always, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		p := mustStart(t, s)
		time.Sleep(500 * time.Millisecond)
		p.crash()
		mustStart(t, s)
		if want := []time.Duration{0, 500 * time.Millisecond}; !slices.Equal(sp.times(), want) {
			t.Errorf("starts at %v, want %v", sp.times(), want)
		}
	})
}

// Case 24: the reset comes with sustained uptime, at exactly ResetAfter, and not with the start.
func TestBackOffResetsAfterAHealthyRun(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  time.Duration
		want time.Duration // of the interval after the short run that follows
	}{
		{"one tick short", 30*time.Second - 1, 16 * time.Second},
		{"long enough", 30 * time.Second, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pol := procman.Policy{Jitter: -1, Max: time.Hour, Patience: time.Hour}
			supervised(t, pol, always, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
				for range 4 { // 0.5, 1, 2, 4
					mustStart(t, s).crash()
				}
				p := mustStart(t, s)
				time.Sleep(tt.run)
				p.crash() // 8, or 0.5 again
				mustStart(t, s).crash()
				synctest.Wait()
				if delay := r.last().Delay; delay != tt.want {
					t.Errorf("delay %v, want %v", delay, tt.want)
				}
			})
		})
	}
}

func TestIntervalsStayInTheirBounds(t *testing.T) {
	dead := func(n int) (procman.Process, error) { p := obedient(n); p.crash(); return p, nil }
	pol := procman.Policy{Initial: time.Second, Max: 10 * time.Second, Jitter: 0.5, Patience: time.Hour}
	supervised(t, pol, dead, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		for range 40 {
			mustStart(t, s)
		}
		at := sp.times()
		distinct := map[time.Duration]bool{}
		for i := 1; i < len(at); i++ {
			gap := at[i] - at[i-1]
			distinct[gap] = true
			if gap < 500*time.Millisecond || gap > 10*time.Second {
				t.Errorf("gap %d is %v", i, gap)
			}
			if i == 1 && gap > 1500*time.Millisecond {
				t.Errorf("first gap is %v, want at most 1.5s", gap)
			}
		}
		if len(distinct) < 5 {
			t.Errorf("only %d distinct gaps: no jitter", len(distinct))
		}
	})
}

// Never dead for good: backoff's own limit of 15 minutes must not come through.
func TestTwoHoursOfCrashes(t *testing.T) {
	dead := func(n int) (procman.Process, error) { p := obedient(n); p.crash(); return p, nil }
	supervised(t, procman.Policy{Patience: time.Hour}, dead, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		begin := time.Now()
		for time.Since(begin) < 2*time.Hour {
			mustStart(t, s)
		}
		if n := len(sp.times()); n < 240 {
			t.Errorf("%d starts in two hours, want one at least every 30s", n)
		}
	})
}

func TestStartWaitsForTheBackOffAtMostAsLongAsItsContext(t *testing.T) {
	dead := func(n int) (procman.Process, error) { p := obedient(n); p.crash(); return p, nil }
	supervised(t, steady, dead, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		mustStart(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), 499*time.Millisecond)
		defer cancel()
		_, err := s.Start(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "exited with status 3") {
			t.Errorf("error %v must say what it waited for", err)
		}
		if n := len(sp.times()); n != 1 {
			t.Errorf("%d starts, want 1", n)
		}
	})
}

// Case 24, second half: a missing binary is reported at once and heals.
func TestPermanentFailure(t *testing.T) {
	fixed := false
	heals := func(n int) (procman.Process, error) {
		if !fixed {
			return nil, errNoSuchFile
		}
		return always(n)
	}
	supervised(t, steady, heals, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		begin := time.Now()
		for range 3 {
			if _, err := s.Start(t.Context()); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("error %v", err)
			}
		}
		if time.Since(begin) != 0 || len(sp.times()) != 1 {
			t.Errorf("%v and %d tries, want none and one an interval", time.Since(begin), len(sp.times()))
		}
		if status := wantState(t, s, procman.Backoff); status.LastErr != errNoSuchFile {
			t.Errorf("status has %v", status.LastErr)
		}
		fixed = true
		time.Sleep(500*time.Millisecond - 1)
		if _, err := s.Start(t.Context()); err == nil {
			t.Error("tried again before the interval was over")
		}
		time.Sleep(time.Nanosecond)
		mustStart(t, s)
		if status := wantState(t, s, procman.Running); status.LastErr != nil || status.Restarts != 0 {
			t.Errorf("status %+v after the start", status)
		}
		if want := []string{procman.EventStartFailed, procman.EventStarted}; !slices.Equal(r.names(), want) {
			t.Errorf("events %v, want %v", r.names(), want)
		}
	})
}

// A failed spawn that took longer than the interval still belongs to the callers that waited for it.
func TestPermanentFailureOfASlowSpawn(t *testing.T) {
	slow := func(n int) (procman.Process, error) { time.Sleep(time.Minute); return nil, errNoSuchFile }
	supervised(t, steady, slow, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		if _, err := s.Start(t.Context()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v", err)
		}
		if n := len(sp.times()); n != 1 {
			t.Errorf("%d tries, want 1", n)
		}
	})
}

func TestPassingFailureIsTriedAgain(t *testing.T) {
	busy := func(n int) (procman.Process, error) {
		if n < 3 {
			return nil, &procman.StartError{Spec: procman.Spec{Name: "files"}, Err: errors.New("resource temporarily unavailable")}
		}
		return always(n)
	}
	supervised(t, steady, busy, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		mustStart(t, s)
		if want := []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond}; !slices.Equal(sp.times(), want) {
			t.Errorf("tries at %v, want %v", sp.times(), want)
		}
	})
}

// VER-24: before or after the end, forgiven is forgiven, and the next crash finds the back-off as it was.
func TestForgive(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			supervised(t, steady, always, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
				p := mustStart(t, s)
				if when == "before" {
					s.Forgive(p)
				}
				p.end(procman.Exit{})
				synctest.Wait()
				if when == "after" {
					wantState(t, s, procman.Backoff)
					s.Forgive(p)
				}
				status := wantState(t, s, procman.Idle)
				if status.LastExit == nil {
					t.Error("the exit is a fact, forgiven or not")
				}
				next := mustStart(t, s)
				if want := []time.Duration{0, 0}; !slices.Equal(sp.times(), want) {
					t.Errorf("starts at %v, want %v", sp.times(), want)
				}
				s.Forgive(p) // of another process: nothing
				next.crash()
				synctest.Wait()
				if status := wantState(t, s, procman.Backoff); status.Restarts != 0 || r.last().Delay != 500*time.Millisecond {
					t.Errorf("%d restarts, delay %v; want none and the first interval", status.Restarts, r.last().Delay)
				}
			})
		})
	}
}

func TestHaltReturnsToIdle(t *testing.T) {
	stubborn := func(n int) (procman.Process, error) {
		return newFakeProc(n, map[string]time.Duration{"terminate": 0}), nil
	}
	supervised(t, steady, stubborn, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		if err := s.Halt(t.Context()); err != nil {
			t.Fatalf("halt of nothing: %v", err)
		}
		p := mustStart(t, s)
		go func() { _ = s.Halt(t.Context()) }()
		synctest.Wait()
		wantState(t, s, procman.Stopping)
		next := mustStart(t, s) // waits for the ladder
		if next == p || time.Since(p.begun) != 2*time.Second {
			t.Errorf("start during the ladder got the process being stopped")
		}
		if err := s.Halt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if status := wantState(t, s, procman.Idle); status.Pid != 0 || status.Restarts != 0 {
			t.Errorf("status %+v after halt", status)
		}
		want := []string{"started", "stopping", "stopped", "started", "stopping", "stopped"}
		if !slices.Equal(r.names(), want) {
			t.Errorf("events %v, want %v", r.names(), want)
		}
	})
}

// The policy's graces are those of the ladder, also where they are none.
func TestHaltTakesThePolicysGraces(t *testing.T) {
	hard := func(n int) (procman.Process, error) { return newFakeProc(n, map[string]time.Duration{"kill": 0}), nil }
	pol := procman.Policy{Grace: procman.Grace{EOF: -1, Term: time.Second}}
	supervised(t, pol, hard, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		p := mustStart(t, s)
		if err := s.Halt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"eof@0s", "terminate@0s", "kill@1s"}; !slices.Equal(p.did(), want) {
			t.Errorf("steps %v, want %v", p.did(), want)
		}
	})
}

func TestHaltClearsTheBackOff(t *testing.T) {
	supervised(t, steady, always, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		mustStart(t, s).crash()
		mustStart(t, s).crash()
		waiting := make(chan error)
		go func() { _, err := s.Start(t.Context()); waiting <- err }()
		synctest.Wait()
		wantState(t, s, procman.Backoff)
		begin := time.Now()
		if err := s.Halt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-waiting; err != nil || time.Since(begin) != 0 {
			t.Errorf("the waiting start got %v after %v, want a process at once", err, time.Since(begin))
		}
	})
}

func TestHaltDuringAStart(t *testing.T) {
	slow := func(n int) (procman.Process, error) { time.Sleep(time.Second); return always(n) }
	supervised(t, steady, slow, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		got := make(chan procman.Process)
		go func() { p, _ := s.Start(t.Context()); got <- p }()
		synctest.Wait()
		if err := s.Halt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p := <-got; p.Pid() != 102 {
			t.Errorf("the caller got process %d, want the second one", p.Pid())
		}
	})
}

func TestHaltNamesWhatWouldNotEnd(t *testing.T) {
	var immortal *fakeProc
	spawn := func(int) (procman.Process, error) { immortal = newFakeProc(7, nil); return immortal, nil }
	supervised(t, steady, spawn, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		mustStart(t, s)
		if err := s.Halt(t.Context()); err == nil || !strings.Contains(err.Error(), "process 7") {
			t.Errorf("error %v, want one that names process 7", err)
		}
		if r.last().Name != procman.EventStopped || r.last().Err == nil {
			t.Errorf("event %+v hides the failure", r.last())
		}
		immortal.crash() // so that close finds nothing
		if err := s.Halt(t.Context()); err != nil {
			t.Errorf("halt of nothing after a failed one: %v", err)
		}
	})
}

func TestHaltEndsWithItsContextAndTheLadderGoesOn(t *testing.T) {
	supervised(t, steady, func(n int) (procman.Process, error) {
		return newFakeProc(n, map[string]time.Duration{"kill": 0}), nil
	}, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		p := mustStart(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Halt(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		<-p.Done()
		if time.Since(p.begun) != 5*time.Second {
			t.Errorf("ended after %v, want the whole ladder", time.Since(p.begun))
		}
	})
}

func TestClose(t *testing.T) {
	supervised(t, steady, always, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		p := mustStart(t, s)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p.did(), []string{"eof@0s"}) {
			t.Errorf("steps %v", p.did())
		}
		if _, err := s.Start(t.Context()); !errors.Is(err, procman.ErrClosed) {
			t.Errorf("start after close: %v", err)
		}
		if want := []string{"started", "stopping", "stopped", "closed"}; !slices.Equal(r.names(), want) {
			t.Errorf("events %v, want %v", r.names(), want)
		}
	})
}

func TestCloseWakesWhoWaits(t *testing.T) {
	supervised(t, steady, always, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		mustStart(t, s).crash()
		got := make(chan error)
		go func() { _, err := s.Start(t.Context()); got <- err }()
		synctest.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-got; !errors.Is(err, procman.ErrClosed) {
			t.Errorf("error %v", err)
		}
	})
}

// A process that a start brings after the close is stopped, not lost.
func TestCloseDuringAStart(t *testing.T) {
	var p *fakeProc
	slow := func(int) (procman.Process, error) { time.Sleep(time.Second); p = obedient(1); return p, nil }
	supervised(t, steady, slow, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		got := make(chan error)
		go func() { _, err := s.Start(t.Context()); got <- err }()
		synctest.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-got; !errors.Is(err, procman.ErrClosed) {
			t.Errorf("error %v", err)
		}
		select {
		case <-p.Done():
		default:
			t.Error("the process outlived its supervisor")
		}
	})
}

func TestCloseKillsWhenItsContextEnds(t *testing.T) {
	supervised(t, steady, func(n int) (procman.Process, error) {
		return newFakeProc(n, map[string]time.Duration{"kill": 0}), nil
	}, func(t *testing.T, s *procman.Supervisor, sp *fakeSpawner, r *recorder) {
		p := mustStart(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		<-p.Done()
		if want := []string{"eof@0s", "kill@1s"}; !slices.Equal(p.did(), want) {
			t.Errorf("steps %v, want %v", p.did(), want)
		}
	})
}

// Events come in order and their receiver may look at the supervisor.
func TestEventsMayAskTheSupervisor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *procman.Supervisor
		var names []string
		s = procman.NewSupervisor(procman.Spec{}, steady, newFakeSpawner(always), func(e procman.Event) {
			names = append(names, e.Name)
			s.State()
		})
		mustStart(t, s).crash()
		mustStart(t, s)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"started", "crashed", "started", "stopping", "stopped", "closed"}; !slices.Equal(names, want) {
			t.Errorf("events %v, want %v", names, want)
		}
	})
}

// A slow receiver gets one event after the other, and holds nobody up but the one who delivers.
func TestEventsComeOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		inside := false
		s := procman.NewSupervisor(procman.Spec{}, steady, newFakeSpawner(always), func(e procman.Event) {
			if inside {
				t.Error("two events at once")
			}
			inside = true
			time.Sleep(time.Second)
			names = append(names, e.Name)
			inside = false
		})
		mustStart(t, s).crash()
		synctest.Wait()
		mustStart(t, s).crash()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := []string{"started", "crashed", "started", "crashed", "closed"}; !slices.Equal(names, want) {
			t.Errorf("events %v, want %v", names, want)
		}
	})
}
