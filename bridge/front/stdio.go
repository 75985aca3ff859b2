package front

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

const (
	// hostGrace is how long requests may still be answered after the host has closed our input.
	hostGrace = 5 * time.Second
	// hostOutput is how many bytes may wait for a host that does not read. Then streams stand still, and bound themselves.
	hostOutput = 4 << 20
	// hostRequests is how many requests of a host may be open; one more is refused.
	hostRequests = 10_000
	// hostQueue is how many messages of the legacy half wait for their turn before the host is not read from.
	hostQueue = 64
	// batchWait is how long the answers of a batch are waited for, to be one array (translation 17.4).
	batchWait = 5 * time.Second
)

// Host serves one host over a pair of byte streams, as stdin and stdout of a process: both eras, which may alternate from message to
// message (STD-12, translation 1.1). Nothing but protocol is written.
//
// One goroutine reads. It answers what needs no server and hands answers, cancellations and modern requests on at once; what
// belongs to the legacy half goes to a second goroutine, which keeps its order. Each open request has a goroutine that writes
// what comes back.
type Host struct {
	handler *Handler
	who     bridge.Principal
	line    int // longest line, in bytes
	out     *framing.Writer
	life    context.Context
	end     context.CancelFunc
	wg      sync.WaitGroup
	legacy  chan func()

	mu      sync.Mutex
	session Session                // guarded by mu; nil before the handshake
	shaking chan struct{}          // guarded by mu; closed at the end of the handshake under way, nil if none is
	open    map[string]*hostCall   // guarded by mu; by raw id
	waiting map[chan struct{}]bool // guarded by mu; closed when nothing is open
}

// hostCall is an open request of the host.
type hostCall struct {
	modern bool
	listen bool
	cancel context.CancelFunc
}

// NewHost returns the front of a host whose user is who. line is the longest message taken, in bytes.
func NewHost(cfg Config, who bridge.Principal, line int) *Host {
	return &Host{handler: NewHandler(cfg), who: who, line: line, open: map[string]*hostCall{}, legacy: make(chan func(), hostQueue),
		waiting: map[chan struct{}]bool{}}
}

// Serve serves until in ends, ctx ends, or out fails, which is the error. When in ends, what has been asked may still be answered for
// a few seconds; listens end at once.
func (h *Host) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	h.start(ctx, out)
	return h.run(ctx, in)
}

// start makes the host ready for messages.
func (h *Host) start(ctx context.Context, out io.Writer) {
	h.life, h.end = context.WithCancel(context.WithoutCancel(ctx))
	h.out = framing.NewWriter(out, hostOutput)
	h.wg.Go(h.work)
}

func (h *Host) run(ctx context.Context, in io.Reader) error {
	read := make(chan error, 1)
	go func() { read <- h.read(in) }() // a read from a terminal cannot be given up; it ends with the program
	var err error
	select {
	case err = <-read:
		h.settle(ctx)
	case <-ctx.Done():
	case <-h.out.Done():
	}
	if s := h.current(); s != nil {
		h.handler.cfg.Endpoint.EndSession(s.ID(), h.who)
		s.Leave()
	}
	h.end()
	h.wg.Wait()
	return errors.Join(err, h.out.Close())
}

// read takes the host's lines until they end.
func (h *Host) read(in io.Reader) error {
	lines := framing.NewReader(in, h.line)
	for h.life.Err() == nil {
		line, _, err := lines.Next()
		switch long, tooLong := errors.AsType[*framing.LineError](err); {
		case tooLong:
			h.refuse(bridge.Invalid("cannot accept message: "+long.Error()+"."), false)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		default:
			h.take(line)
		}
	}
	return nil
}

// settle lets what is under way come to its end, for a while.
func (h *Host) settle(ctx context.Context) {
	done := make(chan struct{})
	h.queue(func() { // behind what waits for its turn
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, c := range h.open {
			if c.listen {
				c.cancel()
			}
		}
		if len(h.open) == 0 {
			close(done)
			return
		}
		h.waiting[done] = true
	})
	t := time.NewTimer(hostGrace)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-ctx.Done():
	case <-h.out.Done():
	}
}

// work carries out, in order, what belongs to the legacy half.
func (h *Host) work() {
	for {
		select {
		case f := <-h.legacy:
			f()
		case <-h.life.Done():
			return
		}
	}
}

func (h *Host) queue(f func()) {
	select {
	case h.legacy <- f:
	case <-h.life.Done():
	}
}

func (h *Host) current() Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session
}

// shaken is the session, once a handshake under way has ended.
func (h *Host) shaken() Session {
	h.mu.Lock()
	wait := h.shaking
	h.shaking = nil
	h.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-h.life.Done():
		}
	}
	return h.current()
}

// take places one line (translation 1.1, right column).
func (h *Host) take(line []byte) {
	s := h.shaken()
	view := SessionView{}
	if s != nil {
		view = SessionView{Present: true, Known: true, Version: s.Version()}
	}
	c, err := Classify(nil, line, view)
	switch {
	case err != nil:
		if m, failed := framing.Scan(line); failed == nil && m.Kind != framing.Request {
			h.cancels(m) // else it is an answer to nobody, or a notification before any handshake
			return
		}
		h.refuse(err, s != nil)
	case c.Batch != nil:
		h.queue(func() { h.batch(c, s) })
	case c.Message.Kind == framing.Request:
		h.request(c, s)
	case c.Message.Kind == framing.Notification:
		h.notification(c, s)
	default:
		s.Answer(c.Message)
	}
}

// refuse answers what is no message, or cannot be placed.
func (h *Host) refuse(err *bridge.Error, legacy bool) { h.write(framing.Whole(err.Body(legacy))) }

func (h *Host) write(f framing.Frame) { _ = h.out.Write(h.life, f) }

// request serves a request. One whose id is in use is refused, and the other goes on (FRM-09).
func (h *Host) request(c *Class, s Session) {
	id := c.Message.Bytes(c.Message.ID)
	call := &hostCall{modern: c.Era == mcp.Modern, listen: c.Method == mcp.Listen}
	ctx, cancel := context.WithCancel(h.life)
	call.cancel = cancel
	if err := h.enter(string(id), call); err != nil {
		cancel()
		h.refuse(err.WithID(id), !call.modern)
		return
	}
	x := h.exchange(ctx)
	serve := func() *bridge.Error {
		if call.modern {
			return x.modern(c)
		}
		return x.legacy(c, s)
	}
	run := func() {
		defer h.leave(string(id), call)
		if err := serve(); err != nil && ctx.Err() == nil {
			h.refuse(err.WithID(id), !call.modern)
		}
	}
	switch {
	case call.modern:
		h.wg.Go(run)
	case s == nil:
		h.shake(run)
	default:
		x.after = func(rest func()) { // the request has been sent: the next one may be
			h.wg.Go(func() { defer h.leave(string(id), call); rest() })
		}
		h.queue(func() {
			err := serve()
			if err != nil && ctx.Err() == nil {
				h.refuse(err.WithID(id), true)
			}
			if err != nil || !x.left {
				h.leave(string(id), call)
			}
		})
	}
}

// shake carries out a handshake. Nothing more is read before its end: what is meant by it depends on that.
func (h *Host) shake(run func()) {
	done := make(chan struct{})
	h.mu.Lock()
	h.shaking = done
	h.mu.Unlock()
	h.queue(func() {
		defer close(done)
		run()
	})
}

// enter counts a request in.
func (h *Host) enter(id string, c *hostCall) *bridge.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.open[id] != nil:
		e := bridge.Invalid("cannot accept request: another one with this id is open.")
		e.Reason = bridge.ReasonDuplicateID
		return e
	case len(h.open) >= hostRequests:
		return &bridge.Error{Code: mcp.CodeInternal, Reason: bridge.ReasonOverload, Message: "too many requests are open"}
	}
	h.open[id] = c
	return nil
}

func (h *Host) leave(id string, c *hostCall) {
	c.cancel()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open[id] != c {
		return
	}
	delete(h.open, id)
	if len(h.open) == 0 {
		for done := range h.waiting {
			close(done)
			delete(h.waiting, done)
		}
	}
}

// notification serves a notification. A cancellation goes to the half whose request it names (CAN-*).
func (h *Host) notification(c *Class, s Session) {
	if h.cancels(c.Message) || s == nil || c.Era == mcp.Modern {
		return
	}
	x := h.exchange(h.life)
	if c.Method == mcp.Cancelled {
		x.notification(c, s) // not behind what it cancels
		return
	}
	h.queue(func() {
		x.notification(c, s)
		if c.Method == mcp.Initialized {
			s.Link().Changes() // translation 8.3
		}
	})
}

// cancels carries out a cancellation of a modern request, which needs no envelope to be one, and reports whether it was that.
func (h *Host) cancels(m *framing.Message) bool {
	if m.Kind != framing.Notification || !m.MethodIs(mcp.Cancelled) {
		return false
	}
	h.mu.Lock()
	call := h.open[string(m.Bytes(m.Param("requestId")))]
	h.mu.Unlock()
	if call == nil || !call.modern {
		return false
	}
	call.cancel()
	return true
}

// batch serves an array of the revision that has them (FRM-24).
func (h *Host) batch(c *Class, s Session) {
	x := h.exchange(h.life)
	x.after = func(rest func()) { h.wg.Go(rest) }
	if err := x.batch(c, s); err != nil {
		h.refuse(err, true)
	}
}

// exchange is a message of the host on its way through the stages of Streamable HTTP, of which there are no headers and no status.
func (h *Host) exchange(ctx context.Context) *exchange {
	return &exchange{Handler: h.handler, r: (&http.Request{}).WithContext(ctx), who: h.who, accept: Accept{JSON: true, SSE: true}, host: h}
}

// begin takes the session of a handshake that was successful.
func (h *Host) begin(s Session) {
	s.Enter() // until the host leaves
	st := s.Stand()
	h.mu.Lock()
	h.session = s
	h.mu.Unlock()
	h.wg.Go(func() { h.carry(h.life, &relay{exchange: h.exchange(h.life), st: st, s: s, gone: func() {}}) })
}

// carry writes what comes back on a stream, until it ends or the host does not want it any more.
func (h *Host) carry(ctx context.Context, r *relay) {
	stopping := h.handler.cfg.Stopping
	if r.stop == nil {
		stopping = nil
	}
	var late <-chan time.Time
	if r.batch {
		t := time.NewTimer(batchWait)
		defer t.Stop()
		late = t.C
	}
	for {
		select {
		case <-r.st.Wake():
			batch, last, mine := r.st.TakeAs(r.as)
			if !mine || h.put(r, batch, last) || last {
				return
			}
		case <-late:
			r.batch = false
			h.put(r, nil, false)
		case <-stopping:
			stopping = nil
			r.stop()
		case <-ctx.Done():
			r.gone()
			return
		}
	}
}

// put writes messages, those of a batch as one array if all are there in time. It reports whether the output has failed.
func (h *Host) put(r *relay, batch []bridge.Outgoing, last bool) (failed bool) {
	if r.json = append(r.json, batch...); r.batch {
		if !last {
			return false
		}
		b := []byte{'['}
		for _, o := range r.json {
			if o.Frame.Len() == 0 {
				continue
			}
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = o.Frame.Append(b)
		}
		if len(b) > 1 {
			h.write(framing.Whole(append(b, ']')))
		}
		return false
	}
	for _, o := range r.json {
		if o.Frame.Len() > 0 && h.out.Write(h.life, o.Frame) != nil {
			return true
		}
	}
	r.json = nil
	return false
}
