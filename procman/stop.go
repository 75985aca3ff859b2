package procman

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Grace is how long each rung of the stop ladder waits. A zero field means its default, a negative one means no wait.
type Grace struct {
	EOF  time.Duration // after closing stdin; default 2s
	Term time.Duration // after Terminate; default 3s
	Kill time.Duration // after Kill; default 2s
}

// Defaults of [Grace].
const (
	DefaultGraceEOF  = 2 * time.Second
	DefaultGraceTerm = 3 * time.Second
	DefaultGraceKill = 2 * time.Second
)

func (g Grace) withDefaults() Grace {
	return Grace{
		EOF:  orDefault(g.EOF, DefaultGraceEOF),
		Term: orDefault(g.Term, DefaultGraceTerm),
		Kill: orDefault(g.Kill, DefaultGraceKill),
	}
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return max(d, 0)
}

// stopper is what a process that has a tree adds to [Process]: it is told that its end is wanted and how patient to be
// with descendants that outlive the leader.
type stopper interface{ expectStop(g Grace) }

// Stop walks the ladder (STD-01, case 26): close stdin and wait Grace.EOF, Terminate the group and wait Grace.Term,
// Kill the group and wait Grace.Kill. It returns as soon as the process and its group are gone, or when ctx has ended;
// then the process stays on the rung it had reached. Descendants that could not be ended are named in the error. It may
// be called more than once, also for a process that has ended.
func Stop(ctx context.Context, p Process, g Grace) error {
	g = g.withDefaults()
	if s, ok := p.(stopper); ok {
		s.expectStop(g)
	}
	_ = p.Stdin().Close() // a second close, or a broken pipe, is no reason to stop stopping
	rungs := []struct {
		wait time.Duration
		act  func() error
	}{
		{g.EOF, func() error { return nil }},
		{g.Term, func() error { return p.Signal(Terminate) }},
		{g.Kill, func() error { return p.Signal(Kill) }},
	}
	var failed error
	for _, r := range rungs {
		if err := r.act(); errors.Is(err, errors.ErrUnsupported) {
			continue
		} else if err != nil {
			failed = err
		}
		gone, err := awaitDone(ctx, p, r.wait)
		if err != nil {
			return fmt.Errorf("cannot wait for process %d to stop: %w", p.Pid(), err)
		}
		if gone {
			return leftovers(p)
		}
	}
	return notStopped(p.Pid(), failed)
}

func notStopped(pid int, failed error) error {
	if failed != nil {
		return fmt.Errorf("cannot stop process %d: it is still there after the kill: %w", pid, failed)
	}
	return fmt.Errorf("cannot stop process %d: it is still there after the kill", pid)
}

// leftovers turns what outlived a process that is gone into an error.
func leftovers(p Process) error {
	if s := p.Exit().Survivors; len(s) > 0 {
		return fmt.Errorf("cannot stop everything process %d started: still there: %v", p.Pid(), s)
	}
	return nil
}

// awaitDone waits for the end of p, at most d. A process that is gone wins over an ended context.
func awaitDone(ctx context.Context, p Process, d time.Duration) (bool, error) {
	select {
	case <-p.Done():
		return true, nil
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.Done():
		return true, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
