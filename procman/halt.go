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
	s.own.Reset()
	switch s.st.state {
	case Running:
		s.ladderLocked()
		return true, nil
	case Starting:
		s.st.halting = true
		return true, nil
	case Stopping:
		s.st.rejected = false // whoever asks for an end wants no back-off after it
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
	s.st.early = false
	s.moveLocked(Idle)
}

// Reject ends a process that is no good, for instance because it refuses the handshake or does not answer it, by the
// ladder, and counts it as one that has failed: the back-off and the breaker hold up the next start. Of one that has not
// come up the interval counts from its end. why is told to those who ask for a start meanwhile: mask secrets in it. Reject
// does not wait. A process that has ended, or that is being stopped, is left as it is.
func (s *Supervisor) Reject(p Process, why error) {
	s.mu.Lock()
	s.settleLocked(time.Now())
	if s.st.state == Running && s.st.proc == p {
		s.rejectLocked(p, why)
	}
	s.mu.Unlock()
	s.deliver()
}

func (s *Supervisor) rejectLocked(p Process, why error) {
	s.noteLocked(Event{Name: EventRejected, Pid: p.Pid(), Err: why})
	if s.st.forgiven {
		s.ladderLocked()
		return
	}
	s.st.rejected, s.st.lastErr = true, why
	s.rememberLocked(p, cause{err: why})
	opened := s.countLocked(cause{err: why})
	s.ladderLocked()
	s.loopLocked(opened, s.pauseLocked())
}

// ladderLocked begins to stop the running process. The ladder bounds itself by its graces, so it needs no caller.
func (s *Supervisor) ladderLocked() {
	p := s.st.proc
	s.voidLocked()
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
	switch {
	case s.st.closing:
		s.moveLocked(Closed)
		s.noteLocked(event)
		s.noteLocked(Event{Name: EventClosed})
	case s.st.rejected:
		event.Delay = s.rejectedDelayLocked()
		s.moveLocked(Backoff)
		s.st.next = time.Now().Add(event.Delay)
		s.noteLocked(event)
	default:
		s.idleLocked()
		s.noteLocked(event)
	}
}

// rejectedDelayLocked is the back-off after a rejection. Of a process that had come up the interval counts as after a crash;
// one that has not gains nothing by having taken long to fail.
func (s *Supervisor) rejectedDelayLocked() time.Duration {
	if s.st.healthy {
		return s.st.pace.after(time.Since(s.st.started))
	}
	return s.st.pace.interval()
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
