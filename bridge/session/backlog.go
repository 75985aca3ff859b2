package session

import (
	"slices"

	"mcpbridge/bridge"
	"mcpbridge/framing"
)

// note is a message for a stream of the session's own.
type note struct {
	frame framing.Frame
	key   string
	ask   *ask // of a question
}

func (n note) put(st *bridge.Stream) {
	if n.ask != nil {
		st.Ask(n.frame)
		return
	}
	st.Notify(n.frame, n.key)
}

// Notify implements bridge.Session: the message goes on exactly one stream of the session's own, the newest (HTTP-L-12,
// case 50), or waits for one.
func (s *Session) Notify(f framing.Frame, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliverLocked(note{frame: f, key: key})
}

func (s *Session) deliverLocked(n note) {
	if i := len(s.standing); i > 0 {
		n.put(s.standing[i-1])
		return
	}
	s.keepLocked(n)
}

// keepLocked makes a message wait for a stream (HTTP-L-32).
func (s *Session) keepLocked(n note) {
	switch {
	case s.ended:
		return
	case n.ask != nil:
		s.backlog = append(s.backlog, n)
		return
	case n.key != "":
		if i := slices.IndexFunc(s.backlog, func(o note) bool { return o.key == n.key }); i >= 0 {
			s.waiting += n.frame.Len() - s.backlog[i].frame.Len()
			s.backlog[i] = n
			s.boundLocked(i)
			return
		}
	}
	s.backlog = append(s.backlog, n)
	s.waiting += n.frame.Len()
	s.boundLocked(len(s.backlog) - 1)
}

// boundLocked drops the oldest notifications beyond the limits, but not the one at newest.
func (s *Session) boundLocked(newest int) {
	count := 0
	for i := range s.backlog {
		if s.backlog[i].ask == nil {
			count++
		}
	}
	for i := 0; i < len(s.backlog) && (count > s.store.cfg.Session.Backlog || s.waiting > s.store.cfg.Session.BacklogBytes); {
		if s.backlog[i].ask != nil || i == newest {
			i++
			continue
		}
		s.waiting -= s.backlog[i].frame.Len()
		s.backlog = slices.Delete(s.backlog, i, i+1)
		count--
		newest--
	}
}

// dropAskLocked takes a question out of the backlog and reports whether it was there.
func (s *Session) dropAskLocked(a *ask) bool {
	n := len(s.backlog)
	s.backlog = slices.DeleteFunc(s.backlog, func(o note) bool { return o.ask == a })
	return len(s.backlog) < n
}

// flushLocked gives a stream what has been waiting.
func (s *Session) flushLocked(st *bridge.Stream) {
	for _, n := range s.backlog {
		n.put(st)
	}
	s.backlog, s.waiting = nil, 0
}
