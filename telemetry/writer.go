package telemetry

import (
	"fmt"
	"time"
)

const (
	// holdTime is how long a cut line waits for its rest, and how often the goroutine looks after what is unfinished.
	holdTime = 200 * time.Millisecond
	// writeBytes is what is written at once, about.
	writeBytes = 64 << 10
	timeFormat = "2006-01-02T15:04:05.000Z"
)

// run is the goroutine that writes.
func (l *ServerLog) run() {
	defer close(l.done)
	defer l.files.close()
	w := &writer{log: l, join: joiner{mask: l.mask}}
	for {
		batch, more, closed := l.take(time.Now())
		w.write(batch, closed)
		switch {
		case closed:
			return
		case more || w.join.holds():
			l.wait(time.NewTimer(holdTime))
		default:
			<-l.wake
		}
	}
}

// wait waits for work or the timer.
func (l *ServerLog) wait(t *time.Timer) {
	defer t.Stop()
	select {
	case <-l.wake:
	case <-t.C:
	}
}

// take empties the queue. more tells that lines were left out which have to be told of when the second is over.
func (l *ServerLog) take(now time.Time) (batch []entry, more, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if note := l.flood.settle(now, l.closed); note != "" {
		l.enqueue(entry{at: now, text: note, note: true})
	}
	if l.late > 0 {
		l.enqueue(entry{at: now, text: fmt.Sprintf("mcpbridge: %d lines left out: the disk is too slow for them", l.late), note: true})
		l.late = 0
	}
	batch, l.queue, l.cost = l.queue, nil, 0
	return batch, l.flood.left > 0, l.closed
}

// writer turns entries into lines of the file.
type writer struct {
	log     *ServerLog
	join    joiner
	buf     []byte
	lines   int // in buf
	missing int // lines that could not be written
	err     error
}

// write writes a batch; all of it, also what was held back, if it is the last one.
func (w *writer) write(batch []entry, last bool) {
	for _, e := range batch {
		w.join.add(e, w.line)
	}
	until := time.Now().Add(-holdTime)
	if last {
		until = time.Now()
	}
	w.join.flush(until, w.line)
	w.flush()
	if cap(w.buf) > 2*writeBytes {
		w.buf = nil // a server that was loud once does not keep the memory
	}
}

// line adds one line.
func (w *writer) line(at time.Time, process, text string) {
	if w.missing > 0 {
		w.retell(at)
	}
	w.buf = at.UTC().AppendFormat(w.buf, timeFormat)
	if process != "" {
		w.buf = append(append(append(w.buf, " ["...), Printable(process)...), ']')
	}
	w.buf = append(append(append(w.buf, ' '), text...), '\n')
	w.lines++
	if len(w.buf) >= writeBytes {
		w.flush()
	}
}

// retell says how many lines could not be written.
func (w *writer) retell(at time.Time) {
	w.buf = at.UTC().AppendFormat(w.buf, timeFormat)
	w.buf = fmt.Appendf(w.buf, " mcpbridge: %d lines left out: %s\n", w.missing, Printable(w.err.Error()))
	w.lines += w.missing
	w.missing = 0
}

func (w *writer) flush() {
	if len(w.buf) == 0 {
		return
	}
	err := w.log.files.write(w.buf)
	if err != nil {
		w.missing, w.err = w.lines, err
	}
	w.log.setError(err)
	w.buf, w.lines = w.buf[:0], 0
}

func (l *ServerLog) setError(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}
