package session

import "slices"

// Subscriptions lists the resource URIs the client has subscribed to, as raw JSON strings, oldest first.
func (s *Session) Subscriptions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.subscriptions)
}

// NoteSubscription remembers a URI the client has subscribed to or released, within Limits.Subscriptions. uri is a raw JSON string.
func (s *Session) NoteSubscription(uri []byte, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.subscriptions, string(uri))
	switch {
	case on && i < 0 && s.roomForLocked(len(uri)):
		s.subscriptions = append(s.subscriptions, string(uri))
	case !on && i >= 0:
		s.subscriptions = slices.Delete(s.subscriptions, i, i+1)
	default:
		return
	}
	s.changed = true
	s.note()
}

// roomForLocked reports whether another URI of so many bytes can be remembered.
func (s *Session) roomForLocked(n int) bool {
	for _, uri := range s.subscriptions {
		n += len(uri)
	}
	limits := &s.store.cfg.Session
	return len(s.subscriptions) < limits.Subscriptions && n <= limits.SubscriptionBytes
}
