package procman

import "sync"

// ring keeps the last bytes written to it.
type ring struct {
	mu   sync.Mutex
	buf  []byte // guarded by mu; grows up to size, so that a silent child costs nothing
	size int
	at   int // guarded by mu; where the next byte goes once buf has its size
}

func newRing(size int) *ring { return &ring{size: size} }

func (r *ring) write(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p = p[max(0, len(p)-r.size):]
	if room := r.size - len(r.buf); room > 0 {
		n := min(room, len(p))
		r.buf = append(r.buf, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(r.buf[r.at:], p)
		r.at = (r.at + n) % r.size
		p = p[n:]
	}
}

// tail returns a copy of what is kept, oldest byte first.
func (r *ring) tail() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]byte, 0, len(r.buf))
	out = append(out, r.buf[r.at:]...)
	return append(out, r.buf[:r.at]...)
}
