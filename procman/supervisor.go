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
	own     *Breaker       // counts the crashes of processes that had come up, which are no other supervisor's business
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
	leave    leave   // for the process, or for the attempt under way
	proc     Process // in Running and Stopping
	forgiven bool    // the end of proc is expected
	healthy  bool    // proc has come up
	rejected bool    // proc is no good, in Stopping
	ahead    bool    // nobody has asked for proc, or for the attempt, yet
	early    bool    // the back-off is that of processes nobody had asked for: it holds nobody else up
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

// leave is what the two breakers gave for one start: the shared one, and the supervisor's own.
type leave struct{ shared, own *pass }

// undo is what Forgive and Healthy need when the end of their process has already been taken for a failure.
type undo struct {
	proc    Process
	pace    pacer
	leave   leave
	healthy bool
	why     cause
}

// NewSupervisor returns an idle supervisor. events receives what happens, in order, one call at a time, and may call the
// supervisor except for the methods that wait; it may be nil.
func NewSupervisor(spec Spec, pol Policy, sp Spawner, events func(Event)) *Supervisor {
	if events == nil {
		events = func(Event) {}
	}
	pol = pol.withDefaults()
	return &Supervisor{
		spec: spec, policy: pol, spawner: sp, emit: events, own: pol.Breaker.fresh(),
		st:      machine{since: time.Now(), pace: newPacer(pol)},
		changed: make(chan struct{}),
	}
}

// State returns the state and what is known about the process.
func (s *Supervisor) State() (State, Status) {
	s.mu.Lock()
	s.settleLocked(time.Now())
	state, st := s.st.state, Status{
		Restarts: s.st.restarts, LastExit: s.st.lastExit, LastErr: s.st.lastErr,
		Since: s.st.since,
	}
	if s.st.proc != nil {
		st.Pid = s.st.proc.Pid()
	}
	if state == Idle || state == Backoff {
		if st.Held, _ = s.heldLocked(); st.Held != nil {
			st.NextStart = st.Held.Until
			if st.Held.Loop {
				state, st.Since = CrashLoop, st.Held.Since
			}
		}
	}
	s.mu.Unlock()
	s.deliver()
	return state, st
}

// Gone waits until there is no process, and changes nothing.
func (s *Supervisor) Gone(ctx context.Context) error {
	for {
		s.mu.Lock()
		s.settleLocked(time.Now())
		busy := s.st.state == Starting || s.st.state == Running || s.st.state == Stopping
		changed := s.changed
		s.mu.Unlock()
		s.deliver()
		if !busy {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for %s to end: %w", s.spec.Name, context.Cause(ctx))
		}
	}
}
