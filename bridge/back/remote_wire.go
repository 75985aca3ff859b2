package back

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// carrier is one of the ways in which messages travel over HTTP: what differs between the transports.
type carrier interface {
	// request carries a request and delivers what comes back, to its end. p.ctx ends when nobody wants the answer any more.
	request(p *parcel)
	// oneWay carries a notification or an answer.
	oneWay(p *parcel)
	// cancel carries the cancellation of a request that may be under way (translation 10).
	cancel(p *parcel, request int64)
	// goodbye tells the server that nothing will follow, within ctx.
	goodbye(ctx context.Context)
}

// parcel is one message on its way to the server.
type parcel struct {
	m    *framing.Message
	id   int64 // of a request
	ctx  context.Context
	stop context.CancelCauseFunc
	// before is closed when what has to reach the server first has been carried; nil if nothing has to.
	before <-chan struct{}
	done   chan struct{} // of a notification: closed when it has been carried
}

// delivery is one thing for the core, in the order in which it came.
type delivery struct {
	request int64 // on whose stream it came, 0 for none
	m       *framing.Message
	raw     []byte // with err: what is no message
	err     error
	failed  *bridge.Error // the end of request without an answer
}

// wire is the upstream of a remote server: it gives every message a goroutine and a stream of its own, as many requests and as many
// others as RemoteConfig.Streams, and brings together what comes back. Requests may overtake each other, as HTTP has it; notifications and
// what depends on them may not.
type wire struct {
	remote *Remote
	carry  carrier
	ctx    context.Context
	end    context.CancelCauseFunc
	in     chan delivery
	ready  chan struct{} // closed when core is set
	core   bridge.StreamReceiver
	wg     sync.WaitGroup

	mu   sync.Mutex
	open map[int64]*parcel // requests under way

	requests, others lane

	closed  bool
	last    chan struct{} // done of the last notification
	greeted chan struct{} // done of notifications/initialized, nil before
}

func newWire(r *Remote) *wire {
	w := &wire{remote: r, in: make(chan delivery), ready: make(chan struct{}), open: map[int64]*parcel{}}
	w.ctx, w.end = context.WithCancelCause(context.Background())
	return w
}

// Send implements bridge.Upstream.
func (w *wire) Send(ctx context.Context, f framing.Frame, _ bool) error {
	m, err := framing.Scan(f.Bytes())
	if err != nil {
		return err
	}
	p := &parcel{m: m}
	p.ctx, p.stop = context.WithCancelCause(w.ctx)
	if err := w.enter(ctx, p); err != nil {
		p.stop(err)
		return err
	}
	return nil
}

// startLocked begins the journey of a parcel.
func (w *wire) startLocked(p *parcel) {
	job := w.carry.oneWay
	switch {
	case p.m.Kind == framing.Request:
		p.id, _ = strconv.ParseInt(string(p.m.Bytes(p.m.ID)), 10, 64)
		p.before = w.greeted
		w.open[p.id] = p
		job = w.carry.request
	case p.m.MethodIs(mcp.Cancelled):
		id, _ := strconv.ParseInt(string(p.m.Bytes(p.m.Param("requestId"))), 10, 64)
		job = func(p *parcel) { w.carry.cancel(p, id) }
	case p.m.Kind == framing.Notification:
		p.before, p.done = w.last, make(chan struct{})
		w.last = p.done
		if p.m.MethodIs(mcp.Initialized) {
			w.greeted = p.done
		}
	}
	w.wg.Go(func() {
		defer w.leave(p)
		if p.before != nil {
			select {
			case <-p.before:
			case <-p.ctx.Done():
				return
			}
		}
		job(p)
	})
}

func (w *wire) leave(p *parcel) {
	p.stop(nil)
	if p.done != nil {
		close(p.done)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[p.id] == p {
		delete(w.open, p.id)
	}
	l := w.laneOf(p)
	l.slots--
	l.bytes -= len(p.m.Raw)
	l.wake()
}

// errCancelled ends the stream of a request that nobody wants answered any more.
var errCancelled = errors.New("the request was cancelled")

// drop ends the stream of a request.
func (w *wire) drop(request int64) {
	w.mu.Lock()
	p := w.open[request]
	w.mu.Unlock()
	if p != nil {
		p.stop(errCancelled)
	}
}

// underway reports whether a request still has its stream.
func (w *wire) underway(request int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open[request] != nil
}

// Serve implements bridge.Upstream. Failures of single requests do not end the connection.
func (w *wire) Serve(r bridge.Receiver) error {
	w.core = r.(bridge.StreamReceiver)
	close(w.ready)
	for {
		select {
		case d := <-w.in:
			w.give(d)
		case <-w.ctx.Done():
			return context.Cause(w.ctx)
		}
	}
}

func (w *wire) give(d delivery) {
	switch {
	case d.failed != nil:
		w.core.Fail(d.request, d.failed)
	case d.err != nil:
		w.core.Malformed(d.raw, d.err)
	case d.request != 0:
		w.core.MessageOn(d.request, d.m)
	default:
		w.core.Message(d.m)
	}
}

// deliver hands something to the core. It is dropped when the connection has ended, or nobody waits for it.
func (w *wire) deliver(ctx context.Context, d delivery) {
	select {
	case w.in <- d:
	case <-ctx.Done():
	}
}

// each returns what takes the messages of a stream that come before the answer.
func (w *wire) each(p *parcel) func(*framing.Message, []byte, error) {
	return func(m *framing.Message, raw []byte, err error) {
		w.deliver(p.ctx, delivery{request: p.id, m: m, raw: raw, err: err})
	}
}

// conclude delivers the outcome of a request. final answers it, whatever its own id.
func (w *wire) conclude(p *parcel, final *framing.Message, err error) {
	switch {
	case p.ctx.Err() != nil: // nobody waits
	case err != nil:
		w.deliver(p.ctx, delivery{request: p.id, failed: w.remote.failure(err)})
	default:
		w.deliver(p.ctx, delivery{request: p.id, m: withID(final, p.m.Bytes(p.m.ID))})
	}
}

// withID is a response under the id of the request it answers.
func withID(m *framing.Message, id []byte) *framing.Message {
	if string(m.Bytes(m.ID)) == string(id) {
		return m
	}
	all := framing.Span{End: uint32(len(m.Raw))}
	own, err := framing.Scan(framing.Rewrite(m.Raw, framing.EditObject(nil, m.Raw, all, m.TopMembers(),
		framing.Op{Name: "id", Value: id})).Bytes())
	if err != nil {
		return m
	}
	return own
}

// Close implements bridge.Upstream.
func (w *wire) Close(ctx context.Context) error {
	w.finish(errGone)
	bye, stop := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTime)
	defer stop()
	w.carry.goodbye(bye)
	done := make(chan struct{})
	go func() { // ends with the goroutines it waits for
		w.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finish ends the connection: nothing is sent or delivered any more.
func (w *wire) finish(why error) {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.end(why)
}

// begin starts a job of the connection, unless it has ended.
func (w *wire) begin(job func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.wg.Go(job)
	}
}
