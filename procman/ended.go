package procman

import "time"

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
	event := Event{Name: EventCrashed, Pid: p.Pid(), Exit: &exit}
	if s.st.forgiven {
		s.voidLocked()
		s.moveLocked(Idle)
		event.Name = EventEnded
		s.noteLocked(event)
		return
	}
	if s.st.ahead {
		event.Name = EventEnded
	} else {
		s.st.crashed = true
		s.rememberLocked(p, cause{exit: &exit})
	}
	var opened bool
	event.Delay, opened = s.failedLocked(cause{exit: &exit})
	s.noteLocked(event)
	s.loopLocked(opened, event.Delay)
}

// rememberLocked keeps what Forgive and Healthy need to take a failure back that is about to be counted.
func (s *Supervisor) rememberLocked(p Process, why cause) {
	s.st.undo = &undo{proc: p, pace: s.st.pace, leave: s.st.leave, healthy: s.st.healthy, why: why}
}

// failedLocked moves to Backoff, has the breakers count the failure, and returns how long the next start has to wait.
func (s *Supervisor) failedLocked(why cause) (delay time.Duration, opened bool) {
	now := time.Now()
	delay = s.st.pace.after(now.Sub(s.st.started))
	s.moveLocked(Backoff)
	s.st.next = now.Add(delay)
	opened = s.countLocked(why)
	return max(delay, s.pauseLocked()), opened
}

// countLocked has the right breaker count the end of a process or of an attempt: the shared one, if it did not come up.
func (s *Supervisor) countLocked(why cause) (opened bool) {
	l := s.st.leave
	switch {
	case s.st.ahead:
		s.st.early = true
		s.voidLocked()
		return false
	case s.st.halting:
		s.voidLocked()
		return false
	case s.st.healthy && time.Since(s.st.started) >= s.policy.Proof:
		s.st.leave = leave{}
		return s.own.fail(l.own, why)
	case s.st.healthy: // it came up and served nobody for long: other supervisors need to know as well
		s.st.leave = leave{}
		one, all := s.own.fail(l.own, why), s.policy.Breaker.fail(l.shared, why)
		return one || all
	}
	s.st.leave = leave{}
	s.own.void(l.own)
	return s.policy.Breaker.fail(l.shared, why)
}

// voidLocked ends the leave of a process whose end proves nothing.
func (s *Supervisor) voidLocked() {
	s.policy.Breaker.void(s.st.leave.shared)
	s.own.void(s.st.leave.own)
	s.st.leave = leave{}
}

// pauseLocked is how long the breakers hold the next start up.
func (s *Supervisor) pauseLocked() time.Duration {
	if h, _ := s.heldLocked(); h != nil && h.Loop && !h.Until.IsZero() {
		return h.RetryAfter()
	}
	return 0
}

func (s *Supervisor) loopLocked(opened bool, delay time.Duration) {
	if opened {
		s.noteLocked(Event{Name: EventCrashLoop, Delay: delay})
	}
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
// probe). It may be called before and after the end, and after Reject, as long as no other process has been started since.
func (s *Supervisor) Forgive(p Process) {
	s.mu.Lock()
	if s.st.proc == p {
		s.st.forgiven = true
	}
	if s.st.undo != nil && s.st.undo.proc == p {
		s.forgiveEndLocked(p)
	}
	s.mu.Unlock()
	s.deliver()
}

// forgiveEndLocked takes back the failure of p, which is over or on the ladder.
func (s *Supervisor) forgiveEndLocked(p Process) {
	u := s.st.undo
	s.st.pace, s.st.crashed, s.st.rejected, s.st.undo = u.pace, false, false, nil
	s.own.forgive(u.leave.own)
	s.policy.Breaker.forgive(u.leave.shared)
	if s.st.state == Backoff {
		s.moveLocked(Idle)
	}
	s.noteLocked(Event{Name: EventForgiven, Pid: p.Pid()})
}

// Healthy tells that p has come up: whoever started it has found that it does what it is for. Its end will not count
// against other supervisors of the server, and a breaker that is open closes. It may be called before and after the end,
// as long as no other process has been started since.
func (s *Supervisor) Healthy(p Process) {
	s.mu.Lock()
	switch u := s.st.undo; {
	case s.st.proc == p && !s.st.healthy:
		s.st.healthy = true
		s.workedLocked(s.st.leave, p)
	case u != nil && u.proc == p && !u.healthy:
		u.healthy = true
		s.policy.Breaker.forgive(u.leave.shared)
		s.workedLocked(u.leave, p)
		s.own.fail(u.leave.own, u.why)
	}
	s.mu.Unlock()
	s.deliver()
}

func (s *Supervisor) workedLocked(l leave, p Process) {
	s.own.worked(l.own)
	if s.policy.Breaker.worked(l.shared) {
		s.noteLocked(Event{Name: EventRecovered, Pid: p.Pid()})
	}
}
