package procman

import (
	"context"
	"fmt"
	"time"
)

// Halt stops the current process by the ladder, if there is one, and returns to Idle with a fresh back-off: for idle
// stop and restart. Callers waiting in Start get the next process. When ctx ends first, the ladder goes on without the
// caller. What could not be ended is named in the error.
func (s *Supervisor) Halt(ctx context.Context) error {
	for first := true; ; first = false {
		s.mu.Lock()
		waiting, err := s.haltStepLocked(first)
		changed := s.changed
		s.mu.Unlock()
		s.deliver()
		if !waiting {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for %s to stop: %w", s.spec.Name, context.Cause(ctx))
		}
	}
}

// haltStepLocked begins the halt when first is set, and tells whether there is something left to wait for.
func (s *Supervisor) haltStepLocked(first bool) (waiting bool, err error) {
	s.settleLocked(time.Now())
	if !first {
		busy := s.st.state == Stopping || s.st.state == Starting && s.st.halting
		return busy, s.st.haltErr
	}
	s.st.haltErr = nil
	switch s.st.state {
	case Running:
		s.ladderLocked()
		return true, nil
	case Starting:
		s.st.halting = true
		return true, nil
	case Stopping:
		return true, nil
	case Backoff:
		s.idleLocked()
	case Idle:
		s.st.pace.reset()
	}
	return false, nil
}

// idleLocked leaves Backoff with a fresh back-off.
func (s *Supervisor) idleLocked() {
	s.st.pace.reset()
	s.moveLocked(Idle)
}

// ladderLocked begins to stop the running process. The ladder bounds itself by its graces, so it needs no caller.
func (s *Supervisor) ladderLocked() {
	p := s.st.proc
	s.moveLocked(Stopping)
	s.noteLocked(Event{Name: EventStopping, Pid: p.Pid()})
	s.tasks.Go(func() {
		err := Stop(context.Background(), p, s.policy.Grace)
		s.mu.Lock()
		s.stoppedLocked(p, err)
		s.mu.Unlock()
		s.deliver()
	})
}

func (s *Supervisor) stoppedLocked(p Process, err error) {
	event := Event{Name: EventStopped, Pid: p.Pid(), Err: err}
	if ended(p) {
		exit := p.Exit()
		s.st.lastExit, event.Exit = &exit, &exit
	}
	s.st.proc, s.st.haltErr = nil, err
	s.st.pace.reset()
	if !s.st.closing {
		s.moveLocked(Idle)
		s.noteLocked(event)
		return
	}
	s.moveLocked(Closed)
	s.noteLocked(event)
	s.noteLocked(Event{Name: EventClosed})
}

// Close halts for good; Start then fails with [ErrClosed]. It waits for the ladder and for the supervisor's goroutines.
// When ctx ends first, the process is killed and Close returns without waiting further.
func (s *Supervisor) Close(ctx context.Context) error {
	s.beginClose()
	done := make(chan struct{})
	go func() { // ends with the tasks it waits for
		s.tasks.Wait()
		close(done)
	}()
	select {
	case <-done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.st.haltErr
	case <-ctx.Done():
		return s.closeNow(context.Cause(ctx))
	}
}

func (s *Supervisor) beginClose() {
	s.mu.Lock()
	s.settleLocked(time.Now())
	if !s.st.closing {
		s.st.closing = true
		s.notifyLocked()
		switch s.st.state {
		case Running:
			s.ladderLocked()
		case Idle, Backoff:
			s.moveLocked(Closed)
			s.noteLocked(Event{Name: EventClosed})
		}
	}
	s.mu.Unlock()
	s.deliver()
}

func (s *Supervisor) closeNow(cause error) error {
	s.mu.Lock()
	p := s.st.proc
	s.mu.Unlock()
	if p != nil {
		_ = p.Signal(Kill) // the error below says that nobody waited for the outcome
	}
	return fmt.Errorf("cannot wait for %s to stop: %w", s.spec.Name, cause)
}
