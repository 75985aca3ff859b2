package framing

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
)

// ErrWriterClosed is what writing to a closed [Writer] gives.
var ErrWriterClosed = errors.New("cannot write message: writer is closed")

// errAborted stands in for a nil cause of Abort.
var errAborted = errors.New("cannot write message: writer was aborted")

const (
	directMax   = 4 << 10   // largest frame the calling goroutine may write itself
	coalesceMax = 256 << 10 // most bytes of small frames joined in one write
	wholeMin    = 64 << 10  // size from which a frame is written from its own memory
	spareMax    = 64 << 10  // largest buffer kept for reuse
)

// tryWriter is a stream that can try to write without blocking: n may be short, even 0, with a nil error when it is full.
type tryWriter interface {
	TryWrite(p []byte) (n int, err error)
}

// Writer writes frames to a stream, one line each, from many goroutines (FRM-03, FRM-04, FRM-05). Frames reach the stream in the
// order in which Write accepted them, each whole. One goroutine of the Writer does the blocking writes; it ends with Close,
// Abort or the first write error.
type Writer struct {
	w     io.Writer
	try   tryWriter // nil if the stream has none
	limit int
	wake  chan struct{} // one token: the goroutine has something to look at
	done  chan struct{}

	mu      sync.Mutex
	queue   []chunk
	bytes   int       // queued and not yet written, line ends included
	waiting []*waiter // blocked Writes in order; nobody may overtake them
	busy    bool      // someone is writing to the stream
	closed  bool
	err     error  // first failure
	spare   []byte // buffer for the next chunk
	direct  []byte // line of the calling goroutine that is busy
}

// chunk is a piece of the queue: joined small lines, or one large frame.
type chunk struct {
	lines []byte
	frame Frame
}

// waiter is a Write that waits for room.
type waiter struct {
	frame Frame
	ready chan struct{} // closed when the frame is queued or err is set
	err   error
}

// NewWriter starts a Writer to w. limit is the number of bytes that may be queued before Write blocks.
func NewWriter(w io.Writer, limit int) *Writer {
	q := &Writer{w: w, limit: limit, wake: make(chan struct{}, 1), done: make(chan struct{})}
	q.try, _ = w.(tryWriter)
	go q.run()
	return q
}

// Write queues a frame, which must be valid JSON, as one line: raw CR and LF become spaces, one LF is added. It blocks only
// while the frame would bring the queue above its limit, until there is room, ctx ends (the error is ctx.Err() and the frame is not
// queued) or the Writer fails or is closed (that error). A frame larger than the limit is accepted by an empty queue. An
// empty frame is ignored. The memory of the frame may be referred to until it is written, and not longer.
func (q *Writer) Write(ctx context.Context, f Frame) error { return q.accept(ctx, f, q.try != nil) }

// Queue is Write for a frame that others are likely to follow at once: it is left to the Writer's goroutine, which first
// lets whoever is ready add to the same write.
func (q *Writer) Queue(ctx context.Context, f Frame) error { return q.accept(ctx, f, false) }

func (q *Writer) accept(ctx context.Context, f Frame, direct bool) error {
	size := f.Len()
	if size == 0 {
		return nil
	}
	q.mu.Lock()
	if err := q.refusal(); err != nil {
		q.mu.Unlock()
		return err
	}
	switch {
	case direct && size <= directMax && q.idle():
		return q.writeDirect(f, size)
	case len(q.waiting) == 0 && q.hasRoom(size):
		q.enqueue(f, size)
		q.mu.Unlock()
		return nil
	}
	wt := &waiter{frame: f, ready: make(chan struct{})}
	q.waiting = append(q.waiting, wt)
	q.mu.Unlock()
	select {
	case <-wt.ready:
		return wt.err
	case <-ctx.Done():
		return q.giveUp(ctx, wt)
	}
}

// giveUp takes a waiter out of the line unless its turn has just come.
func (q *Writer) giveUp(ctx context.Context, wt *waiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, wt)
	if i < 0 {
		return wt.err
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	q.admit()
	return ctx.Err()
}

func (q *Writer) refusal() error {
	if q.err != nil {
		return q.err
	}
	if q.closed {
		return ErrWriterClosed
	}
	return nil
}

func (q *Writer) idle() bool { return !q.busy && len(q.queue) == 0 && len(q.waiting) == 0 }

func (q *Writer) hasRoom(size int) bool { return q.bytes == 0 || size+1 <= q.limit-q.bytes }

// enqueue adds a frame at the end of the queue. The caller holds mu.
func (q *Writer) enqueue(f Frame, size int) {
	q.bytes += size + 1
	if size >= wholeMin {
		q.queue = append(q.queue, chunk{frame: f})
	} else {
		c := q.open(size + 1)
		c.lines = appendLine(c.lines, f)
	}
	if !q.busy {
		q.signal()
	}
}

// open returns a chunk at the end of the queue that can take size more bytes of lines.
func (q *Writer) open(size int) *chunk {
	if n := len(q.queue); n > 0 && q.queue[n-1].lines != nil && len(q.queue[n-1].lines)+size <= coalesceMax {
		return &q.queue[n-1]
	}
	lines := q.spare[:0]
	if q.spare = nil; lines == nil {
		lines = make([]byte, 0, max(size, 512))
	}
	q.queue = append(q.queue, chunk{lines: lines})
	return &q.queue[len(q.queue)-1]
}

// appendLine appends the frame as one line.
func appendLine(dst []byte, f Frame) []byte {
	n := len(dst)
	dst = f.Append(dst)
	blankBreaks(dst[n:])
	return append(dst, '\n')
}

// signal makes the goroutine look again.
func (q *Writer) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// admit queues waiting frames as far as there is room. The caller holds mu.
func (q *Writer) admit() {
	n := 0
	for _, wt := range q.waiting {
		size := wt.frame.Len()
		if !q.hasRoom(size) {
			break
		}
		q.enqueue(wt.frame, size)
		close(wt.ready)
		n++
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
}

// fail makes err final: what is queued is dropped, what waits is refused. The caller holds mu.
func (q *Writer) fail(err error) {
	if q.err == nil {
		q.err = err
	}
	q.queue, q.bytes, q.spare = nil, 0, nil
	q.refuseWaiting(q.err)
	q.signal()
}

func (q *Writer) refuseWaiting(err error) {
	for _, wt := range q.waiting {
		wt.err = err
		close(wt.ready)
	}
	q.waiting = nil
}

// Close refuses new frames and blocked ones, waits until what is queued has been written, and returns the first failure. It does not
// close the stream; on a stream that does not take the bytes it waits until someone does that or calls Abort and the
// stream's Write returns.
func (q *Writer) Close() error {
	q.mu.Lock()
	q.closed = true
	q.refuseWaiting(ErrWriterClosed)
	q.signal()
	q.mu.Unlock()
	<-q.done
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// Abort drops what is queued and fails blocked and later calls of Write with err. It does not wait for a Write of the stream
// that is under way.
func (q *Writer) Abort(err error) {
	if err == nil {
		err = errAborted
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fail(err)
}

// Done is closed when writing has ended, after Close, Abort or a write error: nothing is written afterwards. After Abort that
// takes until a Write of the stream that is under way returns.
func (q *Writer) Done() <-chan struct{} { return q.done }
