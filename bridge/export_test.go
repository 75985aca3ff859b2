package bridge

// Size is the number of bytes the stream holds.
func (s *Stream) Size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unsent + s.kept
}
