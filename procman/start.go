package procman

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Start returns the running process, or starts one; concurrent callers share one start and its outcome (case 28), also
// when the process has ended again meanwhile, so that each of them can tell its user why (case 22). A spawn under way is
// waited for until ctx has ended. After a failure the next start has to wait for the back-off, and for the breaker if that
// is open (STD-04): up to Policy.Patience in all Start waits too, for more it returns a [*HeldError] at once. A permanent
// [*StartError] is returned at once, also for the rest of its back-off interval; the first Start after that tries again
// (case 24). After Close it returns [ErrClosed].
func (s *Supervisor) Start(ctx context.Context) (Process, error) {
	return s.start(ctx, s.policy.Patience, false)
}

// Ahead is Start for a process that nobody wants to use yet; who does calls Start and gets it. It waits for the back-off
// and for the breaker without limit, until ctx has ended, and starts nothing while the breaker is open. Until Start has
// asked for the process, its end is no failure (case 24 is about servers that are used): neither the breaker counts it nor
// Status.Restarts, and the back-off that follows holds up Ahead only.
func (s *Supervisor) Ahead(ctx context.Context) (Process, error) {
	return s.start(ctx, math.MaxInt64, true)
}

func (s *Supervisor) start(ctx context.Context, patience time.Duration, ahead bool) (Process, error) {
	for {
		s.mu.Lock()
		step := s.stepLocked(patience, ahead)
		s.mu.Unlock()
		s.deliver()
		if step.proc != nil || step.err != nil {
			return step.proc, step.err
		}
		began := time.Now()
		if err := s.await(ctx, step); err != nil {
			return nil, err
		}
		if step.rest {
			patience -= time.Since(began)
		}
		if a := step.attempt; a != nil && (a.proc != nil || isPermanent(a.err)) {
			return a.proc, a.err
		}
	}
}

// attempt is one spawn that callers of Start share. proc and err are written before done is closed; both are nil when
// the process is wanted no more.
type attempt struct {
	done chan struct{}
	proc Process
	err  error
}

// step is what a caller of Start has to do next: return, or wait for an attempt, for a change, or for a time.
type step struct {
	proc    Process
	err     error
	attempt *attempt
	wake    <-chan struct{}
	also    <-chan struct{} // a second one, may be nil
	atMost  time.Duration   // 0: without limit
	rest    bool            // the time counts as patience
}

func (s *Supervisor) stepLocked(patience time.Duration, ahead bool) step {
	s.settleLocked(time.Now())
	if s.st.closing {
		return step{err: s.closedError()}
	}
	if !ahead {
		s.wantedLocked()
	}
	switch s.st.state {
	case Running:
		return step{proc: s.st.proc}
	case Idle:
		return s.enterLocked(patience, ahead)
	case Starting:
		return s.joinLocked()
	case Backoff:
		if isPermanent(s.st.lastErr) {
			return step{err: s.st.lastErr}
		}
		held, changed := s.heldLocked()
		return s.restLocked(held, changed, patience)
	default: // Stopping: the ladder ends in Idle, or in Backoff
		if held, changed := s.heldLocked(); held != nil {
			return s.restLocked(held, changed, patience)
		}
		return step{wake: s.changed}
	}
}

// wantedLocked tells that somebody wants to use the process: what happened before nobody did is over.
func (s *Supervisor) wantedLocked() {
	s.st.ahead = false
	if !s.st.early {
		return
	}
	s.st.early = false
	s.st.pace.reset()
	if s.st.state == Backoff {
		s.moveLocked(Idle)
	}
}

// enterLocked starts a process if the breakers allow it.
func (s *Supervisor) enterLocked(patience time.Duration, ahead bool) step {
	own, refused := s.own.enter(ahead)
	if refused == nil {
		var shared *pass
		if shared, refused = s.policy.Breaker.enter(ahead); refused == nil {
			s.spawnLocked(leave{shared: shared, own: own}, ahead)
			return s.joinLocked()
		}
		s.own.void(own)
	}
	if ahead { // not to be woken by time: it starts nothing before the breaker is closed
		return step{wake: s.changed, also: refused.changed}
	}
	return s.restLocked(refused.told(s.spec.Name), refused.changed, patience)
}

func (s *Supervisor) joinLocked() step {
	return step{attempt: s.st.attempt, wake: s.st.attempt.done}
}

// restLocked waits for a rest that is short enough, or for one of unknown length as long as there is patience.
func (s *Supervisor) restLocked(held *HeldError, changed <-chan struct{}, patience time.Duration) step {
	wait := patience
	if !held.Until.IsZero() {
		wait = max(time.Until(held.Until), 1)
	}
	if wait > patience || wait <= 0 {
		return step{err: held}
	}
	return step{wake: s.changed, also: changed, atMost: wait, rest: true}
}

// heldLocked tells why no start may begin now, nil if one may, and what is closed when a breaker changes.
func (s *Supervisor) heldLocked() (held *HeldError, changed <-chan struct{}) {
	failing := s.st.state == Stopping && s.st.rejected && !s.st.healthy
	if s.st.state == Backoff || failing {
		held = &HeldError{Name: s.spec.Name, Since: s.st.since, Until: s.st.next, Err: s.st.lastErr}
		if held.Err == nil {
			held.Exit = s.st.lastExit
		}
	}
	if s.st.state == Stopping && !failing {
		return nil, nil // a process that had come up will be followed by another one
	}
	for _, b := range []*Breaker{s.own, s.policy.Breaker} {
		h := b.peek()
		if h == nil {
			continue
		}
		loop := h.told(s.spec.Name)
		if held != nil && !loop.Until.IsZero() && held.Until.After(loop.Until) {
			loop.Until = held.Until
		}
		held, changed = loop, h.changed
	}
	return held, changed
}

// isPermanent tells a start that cannot succeed without a change.
func isPermanent(err error) bool {
	start, ok := errors.AsType[*StartError](err)
	return ok && start.Permanent
}

func (s *Supervisor) closedError() error {
	return fmt.Errorf("cannot start %s: %w", s.spec.Name, ErrClosed)
}

// await waits for what the step says, or for ctx.
func (s *Supervisor) await(ctx context.Context, next step) error {
	var timeout <-chan time.Time
	if next.atMost > 0 {
		timer := time.NewTimer(next.atMost)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-next.wake:
		return nil
	case <-next.also:
		return nil
	case <-timeout:
		return nil
	case <-ctx.Done():
		return s.gaveUp(context.Cause(ctx))
	}
}

// gaveUp explains a Start that ended with its context.
func (s *Supervisor) gaveUp(cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held, _ := s.heldLocked(); held != nil {
		return fmt.Errorf("%w: %w", held, cause)
	}
	return fmt.Errorf("cannot start %s: %w", s.spec.Name, cause)
}

// spawnLocked begins a start in a goroutine of its own, so that no caller's context cuts it short for the others.
func (s *Supervisor) spawnLocked(l leave, ahead bool) {
	a := &attempt{done: make(chan struct{})}
	s.moveLocked(Starting)
	s.st.started, s.st.attempt, s.st.leave, s.st.ahead, s.st.healthy = time.Now(), a, l, ahead, false
	s.tasks.Go(func() {
		p, err := s.spawner.Spawn(s.spec)
		s.mu.Lock()
		if err != nil {
			a.err = err
			s.startFailedLocked(err)
		} else {
			s.startedLocked(p, a)
		}
		close(a.done)
		s.mu.Unlock()
		s.deliver()
	})
}

func (s *Supervisor) startFailedLocked(err error) {
	s.st.lastErr = err
	if s.st.closing {
		s.voidLocked()
		s.moveLocked(Closed)
		s.noteLocked(Event{Name: EventClosed})
		return
	}
	delay, opened := s.failedLocked(cause{err: err})
	s.noteLocked(Event{Name: EventStartFailed, Err: err, Delay: delay})
	s.loopLocked(opened, delay)
	if s.st.halting {
		s.st.halting = false
		s.idleLocked()
	}
}

func (s *Supervisor) startedLocked(p Process, a *attempt) {
	if s.st.crashed {
		s.st.restarts++
	}
	s.st.proc, s.st.forgiven, s.st.rejected = p, false, false
	s.st.crashed, s.st.lastErr, s.st.undo = false, nil, nil
	s.moveLocked(Running)
	s.noteLocked(Event{Name: EventStarted, Pid: p.Pid()})
	s.tasks.Go(func() { s.watch(p) })
	if s.st.closing || s.st.halting {
		s.st.halting = false
		s.ladderLocked()
		return
	}
	a.proc = p
}
