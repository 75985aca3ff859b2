package framing

import (
	"io"
	"runtime"
)

// writeDirect writes a small frame from the calling goroutine when nothing is queued or being written. What the stream does
// not take at once goes to the head of the queue. The caller holds mu, which is released.
func (q *Writer) writeDirect(f Frame, size int) error {
	q.busy = true
	q.bytes += size + 1
	q.mu.Unlock()

	q.direct = appendLine(q.direct[:0], f)
	n, err := q.try.TryWrite(q.direct)

	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy = false
	rest := q.direct[n:]
	switch {
	case q.err != nil: // aborted meanwhile
		q.signal()
		if len(rest) > 0 {
			return q.err
		}
		return nil
	case err != nil:
		q.fail(err)
		return err
	case len(rest) > 0:
		q.queue = append([]chunk{{lines: append([]byte(nil), rest...)}}, q.queue...)
	}
	q.bytes -= n
	q.admit()
	if len(q.queue) > 0 || q.closed {
		q.signal()
	}
	return nil
}

// run is the goroutine of the Writer.
func (q *Writer) run() {
	defer close(q.done)
	for {
		c, ok := q.next()
		if !ok {
			return
		}
		err := q.write(c)
		q.wrote(c, err)
	}
}

// next waits for a chunk and claims the stream; ok is false when there will be none.
func (q *Writer) next() (c chunk, ok bool) {
	for {
		q.mu.Lock()
		switch {
		case q.busy: // a direct write signals when it is through
		case q.err != nil, q.closed && len(q.queue) == 0:
			q.mu.Unlock()
			return c, false
		case len(q.queue) > 0:
			c = q.queue[0]
			q.queue[0] = chunk{}
			if q.queue = q.queue[1:]; len(q.queue) == 0 {
				q.queue = nil
			}
			q.busy = true
			q.mu.Unlock()
			return c, true
		}
		q.mu.Unlock()
		<-q.wake
		runtime.Gosched() // frames that are about to be queued go into the same write
	}
}

// wrote gives the stream back.
func (q *Writer) wrote(c chunk, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy = false
	if err != nil {
		q.fail(err)
	}
	if q.err != nil {
		return
	}
	if q.spare == nil && c.lines != nil && cap(c.lines) <= spareMax {
		q.spare = c.lines[:0]
	}
	q.admit()
}

// write writes one chunk to the stream.
func (q *Writer) write(c chunk) error {
	if c.lines != nil {
		return q.put(c.lines)
	}
	var small []byte
	for _, p := range c.frame.Parts() {
		if len(p) < partMin {
			small = append(small, oneLine(p)...)
			continue
		}
		if err := q.put(small); err != nil {
			return err
		}
		small = small[:0]
		if err := q.put(oneLine(p)); err != nil {
			return err
		}
	}
	return q.put(append(small, '\n'))
}

// put writes p whole and counts it as written.
func (q *Writer) put(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	n, err := q.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil { // aborted: nothing is queued any more
		return q.err
	}
	q.bytes -= n
	q.admit()
	return err
}
