package parked

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

type status uint8

const (
	running  status = iota // a request of the client is attached, or the first one is on its way
	waiting                // the client is being asked
	finished               // the server has answered
	dead                   // it never will
)

// maxAsked bounds the questions of one call in all; keys are not used twice, so they must be remembered.
const maxAsked = 1000

// call is one call of a modern client at a legacy server. It implements bridge.Asker.
type call struct {
	t       *Table
	inner   *bridge.Exchange // what the server was sent; its sink is the call
	link    *bridge.Link
	release func() // gives the link back
	began   time.Time
	pid     pid // once entered
	size    int // guarded by the table's lock
	moved   atomic.Uint64

	mu       sync.Mutex
	conn     *bridge.Conn
	st       status
	sent     bool // the server has the request
	entered  bool // it is in the table
	round    int
	asked    int // ordinal of the last question
	keys     map[string]bool
	open     []*question // in the order they were asked
	held     int         // bytes of their bodies
	readers  []*reader
	client   client
	lacked   *bridge.Need // what the server asked for although nobody declared it (translation 5.4, case 2)
	roots    []byte       // the client's answer, for further questions of this call
	early    map[string][]byte
	marks    []mark // not nil: early answers are good for these questions only
	params   *digest
	window   *time.Timer
	timer    *time.Timer
	until    time.Time // when the timer is due
	expires  time.Time // of the last state
	result   outcome
	attempts int // how often -32042 was answered before
}

// client is what the request attached last said about itself (META-06).
type client struct {
	profile era.Profile
	context bool // sampling.context
	level   mcp.Level
}

func clientOf(ex *bridge.Exchange) client {
	caps := ex.Message.Bytes(ex.Message.MetaMember(mcp.MetaClientCapabilities))
	return client{era.ProfileOf(caps), era.HasCapability(caps, "sampling", "context"), ex.Level}
}

// reader is a request of the client that waits for the call. It implements the front's idea of a dispatched request.
type reader struct {
	of *call
	ex *bridge.Exchange
}

// Cancel tells that the client has left. With its last request the call ends (translation 5.6, HTTP-M-17).
func (d *reader) Cancel(reason []byte) bool {
	d.of.drop(func(o *reader) bool { return o == d }, reason, false)
	return true
}

// outcome is how a call ended: an error of the bridge's own, or an answer for the request id.
type outcome struct {
	err   *bridge.Error
	frame framing.Frame
	code  int // HTTP status
	id    []byte
}

// deliver finishes a request with the outcome.
func (o outcome) deliver(ex *bridge.Exchange) {
	if o.err != nil {
		ex.Fail(o.err)
		return
	}
	a := bridge.Answer{Frame: o.frame, Status: o.code}
	if id := ex.Message.Bytes(ex.Message.ID); !bytes.Equal(id, o.id) {
		m, err := framing.Scan(o.frame.Bytes())
		if err != nil { // it was made of a scanned message by edits of ours
			ex.Fail(&bridge.Error{Code: mcp.CodeInternal, Reason: bridge.ReasonPeerProtocolError, Message: "the answer cannot be read again"})
			return
		}
		a.Frame = framing.Rewrite(m.Raw, []framing.Edit{{At: m.ID, New: id}})
	}
	ex.Sink.Finish(a)
}

func (o outcome) len() int {
	if o.err != nil {
		return len(o.err.Message)
	}
	return o.frame.Len()
}

// Call sends a request that may be asked something to a legacy server. ex.Sink is finished exactly once, with the outcome or with
// questions, unless an error is returned: then nothing was sent, the sink is untouched and release is still the caller's. Else
// release is called when the server's call is over.
//
// Where ex carries a request state, Retry has seen it before and found that the request is to be run again.
func (t *Table) Call(ctx context.Context, link *bridge.Link, conn *bridge.Conn, release func(), ex *bridge.Exchange) (bridge.Dispatched, *bridge.Error) {
	r := &call{t: t, link: link, release: release, conn: conn, began: time.Now(), client: clientOf(ex)}
	inner := *ex
	inner.Sink, inner.Asker = r, r
	r.inner = &inner
	d := &reader{r, ex}
	r.readers = []*reader{d}
	if err := r.prepare(ctx, ex); err != nil {
		return nil, err
	}
	if r.client.profile&link.Profile()&era.Roots != 0 && r.takeHeld(ctx, conn) {
		return d, nil
	}
	r.move()
	if _, err := conn.Dispatch(ctx, r.inner); err != nil {
		return nil, err
	}
	r.dispatched()
	return d, nil
}

// prepare reads what the request brings from an earlier one: answers in hand, and the state of what is to be run again.
func (r *call) prepare(ctx context.Context, ex *bridge.Exchange) *bridge.Error {
	answers, ok := responses(ex.Message)
	if !ok {
		return badAnswers()
	}
	r.early = answers
	at := ex.Message.Param("requestState")
	if !at.OK() {
		return nil
	}
	text, _ := framing.String(ex.Message.Bytes(at))
	s, ok := r.t.open(text)
	switch {
	case !ok || s.owner != ownerOf(ex.Principal):
		return bridge.InvalidState()
	case s.kind == urlState:
		r.early, r.attempts, r.asked = nil, int(s.round), int(s.base)+int(s.count)
		if s.accepted(answers) {
			r.t.visit.wait(ctx, s.marks, r.t.cfg.VisitWait)
		}
	case !r.t.restarts(ex.Method):
		return lost("")
	default:
		r.marks = append([]mark{}, s.marks...)
	}
	return nil
}

// takeHeld adopts questions about roots that came before any call, and reports whether the client has to be asked before the
// request is sent (translation 5.9).
func (r *call) takeHeld(ctx context.Context, conn *bridge.Conn) bool {
	for _, m := range conn.TakeHeld(ctx) {
		r.adopt(conn, m, rootsNeed, false)
	}
	r.mu.Lock()
	asks := len(r.open) > 0 || r.st != running // or it is over: there were too many
	r.mu.Unlock()
	if asks {
		r.flush()
	}
	return asks
}

// move notes that the server is about to be given something to do.
func (r *call) move() { r.moved.Store(r.t.moves.Add(1)) }

// dispatched notes that the server has the request. Who ended the call meanwhile could not call it off yet.
func (r *call) dispatched() {
	r.mu.Lock()
	r.sent = true
	gone := r.st == dead
	conn := r.conn
	r.mu.Unlock()
	if gone {
		conn.CallOff(r.inner, nil)
	}
}

// Declared implements bridge.Asker.
func (r *call) Declared() era.Profile {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.st >= finished {
		return 0
	}
	return r.client.profile
}

// busy is the number of open questions from which a call is left alone with those that may be another's.
const busy = 8

// Busy implements bridge.Asker.
func (r *call) Busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open) >= busy
}

// Attached implements bridge.Asker.
func (r *call) Attached(id []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id == nil {
		return len(r.readers) > 0
	}
	return slices.ContainsFunc(r.readers, func(d *reader) bool { return d.is(id) })
}

func (d *reader) is(id []byte) bool { return bytes.Equal(d.ex.Message.Bytes(d.ex.Message.ID), id) }

// Moved implements bridge.Asker.
func (r *call) Moved() uint64 { return r.moved.Load() }

// Level implements bridge.Asker.
func (r *call) Level() mcp.Level {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.readers) == 0 {
		return mcp.NoLevel
	}
	return r.client.level
}

// attached returns the requests that wait now.
func (r *call) attached() []*reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.readers)
}

// Notify implements bridge.Sink. While nobody is attached there is nobody to tell.
func (r *call) Notify(f framing.Frame, key string) {
	for _, d := range r.attached() {
		d.ex.Sink.Notify(f, key)
	}
}

// Progress implements bridge.Asker: each attached request gets it under its own token (translation 4.2).
func (r *call) Progress(m *framing.Message) {
	for _, d := range r.attached() {
		if token := d.ex.Message.Bytes(d.ex.Message.MetaMember(mcp.MetaProgressToken)); token != nil {
			d.ex.Sink.Notify(framing.Rewrite(m.Raw, era.ProgressEdits(m, token)), "progress")
		}
	}
}

// Ask implements bridge.Sink: modern clients are never asked that way.
func (r *call) Ask(framing.Frame) {}

// Finish implements bridge.Sink.
func (r *call) Finish(a bridge.Answer) {
	r.end(finished, outcome{frame: a.Frame, code: a.Status, id: r.id()}, nil)
}

func (r *call) id() []byte { return r.inner.Message.Bytes(r.inner.Message.ID) }

// Answered implements bridge.Asker.
func (r *call) Answered(m *framing.Message, a bridge.Answer) {
	r.end(finished, r.outcomeOf(m, a), nil)
}

// Failed implements bridge.Asker: the server is lost, or out of time.
func (r *call) Failed(err *bridge.Error) {
	r.end(dead, outcome{err: err}, nil)
}

// kill ends the call at the server, too: it is cancelled first, so that nothing acts on the answers that follow (translation 5.7).
// only, if not nil, has a say, under the lock.
func (r *call) kill(err *bridge.Error, reason []byte, only func() bool) {
	r.end(dead, outcome{err: err}, func(conn *bridge.Conn, sent bool) {
		if sent {
			conn.CallOff(r.inner, reason)
		}
	}, only)
}

// end ends the call, once.
func (r *call) end(st status, o outcome, tell func(*bridge.Conn, bool), only ...func() bool) {
	r.mu.Lock()
	if r.st >= finished || len(only) > 0 && only[0] != nil && !only[0]() {
		r.mu.Unlock()
		return
	}
	was, conn, sent := r.st, r.conn, r.sent
	readers, left := r.readers, r.open
	r.st, r.result, r.readers, r.open, r.early = st, o, nil, nil, nil
	r.stopWindowLocked()
	var old []*call
	if r.entered {
		r.keepLocked(was)
		old = r.t.leave(r, o.len())
	}
	r.mu.Unlock()
	for _, f := range old {
		f.stop()
	}
	if tell != nil {
		tell(conn, sent)
	}
	for _, q := range left {
		if !q.guess || !r.link.HandOver(conn, q.asked) {
			conn.Reply(q.id, q.abandoned())
		}
	}
	for _, d := range readers {
		o.deliver(d.ex)
	}
	r.release()
}

// keepLocked decides how long the outcome is kept: a moment if it was delivered, as long as there are states if it was not.
func (r *call) keepLocked(was status) {
	until := time.Now().Add(r.t.cfg.Keep)
	if (was == waiting || r.st == dead) && r.expires.After(until) {
		until = r.expires
	}
	r.armLocked(until)
}

// drop lets requests go. Without one the call ends.
func (r *call) drop(which func(*reader) bool, reason []byte, tell bool) {
	r.mu.Lock()
	var gone []*reader
	r.readers = slices.DeleteFunc(slices.Clone(r.readers), func(d *reader) bool {
		if which(d) {
			gone = append(gone, d)
			return true
		}
		return false
	})
	r.mu.Unlock()
	if len(gone) == 0 {
		return
	}
	r.kill(lost("cancelled"), reason, func() bool { return r.st == running && len(r.readers) == 0 })
	if tell {
		for _, d := range gone {
			d.ex.Sink.Finish(bridge.Answer{}) // nothing is written for a cancelled request (CAN-03)
		}
	}
}

// Detach implements bridge.Asker.
func (r *call) Detach(id, reason []byte) {
	r.drop(func(d *reader) bool { return d.is(id) }, reason, true)
}

// endWaiting ends a call whose client is being asked.
func (r *call) endWaiting(err *bridge.Error) {
	r.kill(err, []byte(`"the bridge stops"`), func() bool { return r.st == waiting })
}

// armLocked has the call looked at when its time is up.
func (r *call) armLocked(until time.Time) {
	r.until = until
	if r.timer != nil {
		r.timer.Stop()
	}
	r.timer = r.t.after(time.Until(until), r.due)
}

// due ends what waited too long, and forgets what was kept long enough.
func (r *call) due() {
	r.mu.Lock()
	now, st := time.Now(), r.st
	early := now.Before(r.until)
	r.mu.Unlock()
	switch {
	case early: // armed anew meanwhile
	case st >= finished:
		r.t.forget(r)
	default:
		r.kill(lost("expired"), []byte(`"nobody answered in time"`), func() bool { return !time.Now().Before(r.until) })
	}
}

// stop stops the timers of a call that is forgotten.
func (r *call) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopWindowLocked()
	if r.timer != nil {
		r.timer.Stop()
	}
}

func (r *call) stopWindowLocked() {
	if r.window != nil {
		r.window.Stop()
		r.window = nil
	}
}

func (r *call) discard() {
	r.stop()
	r.t.forget(r)
}
