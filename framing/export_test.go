package framing

// Queued is the number of bytes queued and not yet written, line ends included.
func (q *Writer) Queued() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}
