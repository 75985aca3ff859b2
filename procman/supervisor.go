package procman

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrClosed is what Start returns after Close.
var ErrClosed = errors.New("supervisor is closed")

// Supervisor keeps at most one process of a spec alive on demand. All methods may be called at the same time.
type Supervisor struct {
	spec    Spec
	policy  Policy
	spawner Spawner
	emit    func(Event)
	tasks   sync.WaitGroup // spawns, watchers and ladders

	mu      sync.Mutex
	st      machine       // guarded by mu
	changed chan struct{} // guarded by mu; closed and replaced at each change of st
	queue   []Event       // guarded by mu; not delivered yet
	busy    bool          // guarded by mu; somebody delivers the queue
}

// machine is all that changes in a supervisor.
type machine struct {
	state    State
	since    time.Time
	started  time.Time // of the last attempt to spawn
	next     time.Time // earliest next start, in Backoff
	pace     pacer
	proc     Process // in Running and Stopping
	forgiven bool    // the end of proc is expected
	closing  bool    // Close was called
	halting  bool    // Halt was called while Starting
	restarts int
	crashed  bool     // the last process ended unexpectedly
	attempt  *attempt // the one under way, or the last one
	lastExit *Exit
	lastErr  error
	haltErr  error // of the last ladder
	undo     *undo
}

// undo is what Forgive needs when the end of its process has already been taken for a crash.
type undo struct {
	proc Process
	pace pacer
}

// NewSupervisor returns an idle supervisor. events receives what happens, in order, one call at a time, and may call the
// supervisor except for the methods that wait; it may be nil.
func NewSupervisor(spec Spec, pol Policy, sp Spawner, events func(Event)) *Supervisor {
	if events == nil {
		events = func(Event) {}
	}
	pol = pol.withDefaults()
	return &Supervisor{
		spec: spec, policy: pol, spawner: sp, emit: events,
		st:      machine{since: time.Now(), pace: newPacer(pol)},
		changed: make(chan struct{}),
	}
}

// Start returns the running process, or starts one; concurrent callers share one start and its outcome (case 28), also
// when the process has ended again meanwhile, so that each of them can tell its user why (case 22). After an unexpected
// end the next start waits until the back-off has run out, and so does Start, until ctx has ended (STD-04). A permanent
// [*StartError] is returned at once, also for the rest of its back-off interval; the first Start after that tries again
// (case 24). After Close it returns [ErrClosed].
func (s *Supervisor) Start(ctx context.Context) (Process, error) {
	for {
		s.mu.Lock()
		step := s.stepLocked()
		s.mu.Unlock()
		s.deliver()
		if step.proc != nil || step.err != nil {
			return step.proc, step.err
		}
		if err := s.await(ctx, step); err != nil {
			return nil, err
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
	until   time.Time
}

func (s *Supervisor) stepLocked() step {
	s.settleLocked(time.Now())
	if s.st.closing {
		return step{err: s.closedError()}
	}
	switch s.st.state {
	case Running:
		return step{proc: s.st.proc}
	case Idle:
		s.spawnLocked()
		return step{attempt: s.st.attempt, wake: s.st.attempt.done}
	case Starting:
		return step{attempt: s.st.attempt, wake: s.st.attempt.done}
	case Backoff:
		if isPermanent(s.st.lastErr) {
			return step{err: s.st.lastErr}
		}
		return step{wake: s.changed, until: s.st.next}
	default: // Stopping: the ladder ends in Idle
		return step{wake: s.changed}
	}
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
	if !next.until.IsZero() {
		timer := time.NewTimer(time.Until(next.until))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-next.wake:
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
	why := ""
	switch {
	case s.st.state != Backoff:
	case s.st.lastErr != nil:
		why = fmt.Sprintf(", waiting %s to try again after: %v", s.waitLocked(), s.st.lastErr)
	case s.st.lastExit != nil:
		why = fmt.Sprintf(", waiting %s to start it again: it %s", s.waitLocked(), s.st.lastExit)
	}
	return fmt.Errorf("cannot start %s%s: %w", s.spec.Name, why, cause)
}

func (s *Supervisor) waitLocked() time.Duration {
	return max(time.Until(s.st.next), 0).Round(time.Millisecond)
}

// spawnLocked begins a start in a goroutine of its own, so that no caller's context cuts it short for the others.
func (s *Supervisor) spawnLocked() {
	a := &attempt{done: make(chan struct{})}
	s.moveLocked(Starting)
	s.st.started, s.st.attempt = time.Now(), a
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
		s.moveLocked(Closed)
		s.noteLocked(Event{Name: EventClosed})
		return
	}
	delay := s.backOffLocked()
	s.noteLocked(Event{Name: EventStartFailed, Err: err, Delay: delay})
	if s.st.halting {
		s.st.halting = false
		s.idleLocked()
	}
}

func (s *Supervisor) startedLocked(p Process, a *attempt) {
	if s.st.crashed {
		s.st.restarts++
	}
	s.st.proc, s.st.forgiven, s.st.crashed, s.st.lastErr, s.st.undo = p, false, false, nil, nil
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

// watch waits for the end of p. An end on the ladder is the ladder's business.
func (s *Supervisor) watch(p Process) {
	<-p.Done()
	s.mu.Lock()
	if s.st.state == Running && s.st.proc == p {
		s.endedLocked(p)
	}
	s.mu.Unlock()
	s.deliver()
}

// endedLocked takes the end of the running process p into account.
func (s *Supervisor) endedLocked(p Process) {
	exit := p.Exit()
	s.st.proc, s.st.lastExit = nil, &exit
	if s.st.forgiven {
		s.moveLocked(Idle)
		s.noteLocked(Event{Name: EventEnded, Pid: p.Pid(), Exit: &exit})
		return
	}
	s.st.undo, s.st.crashed = &undo{proc: p, pace: s.st.pace}, true
	delay := s.backOffLocked()
	s.noteLocked(Event{Name: EventCrashed, Pid: p.Pid(), Exit: &exit, Delay: delay})
}

// backOffLocked moves to Backoff and returns how long it lasts.
func (s *Supervisor) backOffLocked() time.Duration {
	now := time.Now()
	delay := s.st.pace.after(now.Sub(s.st.started))
	s.moveLocked(Backoff)
	s.st.next = now.Add(delay)
	return delay
}

// settleLocked does what time alone does, and does not wait for the watcher where the end is known already.
func (s *Supervisor) settleLocked(now time.Time) {
	if s.st.state == Running && ended(s.st.proc) {
		s.endedLocked(s.st.proc)
	}
	if s.st.state == Backoff && !now.Before(s.st.next) {
		s.moveLocked(Idle)
	}
}

func ended(p Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// Forgive marks the end of p as expected: no back-off, not counted as a crash (VER-24: servers that exit on the era
// probe). It may be called before and after the end, as long as no other process has been started since.
func (s *Supervisor) Forgive(p Process) {
	s.mu.Lock()
	switch {
	case s.st.proc == p:
		s.st.forgiven = true
	case s.st.undo != nil && s.st.undo.proc == p:
		s.forgiveEndLocked(p)
	}
	s.mu.Unlock()
	s.deliver()
}

func (s *Supervisor) forgiveEndLocked(p Process) {
	s.st.pace, s.st.crashed, s.st.undo = s.st.undo.pace, false, nil
	if s.st.state == Backoff {
		s.moveLocked(Idle)
	}
	s.noteLocked(Event{Name: EventForgiven, Pid: p.Pid()})
}

// State returns the state and what is known about the process.
func (s *Supervisor) State() (State, Status) {
	s.mu.Lock()
	s.settleLocked(time.Now())
	st := Status{
		Restarts: s.st.restarts, LastExit: s.st.lastExit, LastErr: s.st.lastErr,
		Since: s.st.since,
	}
	if s.st.proc != nil {
		st.Pid = s.st.proc.Pid()
	}
	if s.st.state == Backoff {
		st.NextStart = s.st.next
	}
	state := s.st.state
	s.mu.Unlock()
	s.deliver()
	return state, st
}
