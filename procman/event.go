package procman

import (
	"fmt"
	"slices"
	"time"
)

// moveLocked changes the state. A move that is not in the table is a mistake in this package.
func (s *Supervisor) moveLocked(to State) {
	if !slices.Contains(transitions[s.st.state], to) {
		panic(fmt.Sprintf("procman: move from %v to %v", s.st.state, to))
	}
	s.st.state, s.st.since, s.st.next = to, time.Now(), time.Time{}
	s.notifyLocked()
}

// notifyLocked wakes all who wait for a change.
func (s *Supervisor) notifyLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// noteLocked queues an event for deliver.
func (s *Supervisor) noteLocked(e Event) {
	e.State = s.st.state
	s.queue = append(s.queue, e)
}

// deliver hands queued events to the receiver without the lock held, in order: whoever finds somebody at it leaves the
// rest to them.
func (s *Supervisor) deliver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return
	}
	s.busy = true
	for len(s.queue) > 0 {
		batch := s.queue
		s.queue = nil
		s.mu.Unlock()
		for _, e := range batch {
			s.emit(e)
		}
		s.mu.Lock()
	}
	s.busy = false
}
