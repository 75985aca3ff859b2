package parked

import (
	"context"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// maxFaults is how often the content of one form may be asked for again (translation 5.6).
const maxFaults = 3

// Retry continues the call whose request state ex carries. It is to be asked before a link is chosen: the state knows which one it
// is. known is false for a state that is none of this bridge's, and nothing else is known then. With neither a request nor an error
// the request is to be run from its start, by Call. ex.Sink is finished exactly once if a request is returned, else it is
// untouched.
//
// The errors are those of translation 5.6, in that order; they change nothing. check, which may be nil, judges what only the link can tell
// about the request.
func (t *Table) Retry(ctx context.Context, ex *bridge.Exchange, text string, check Check) (a bridge.Dispatched, known bool, err *bridge.Error) {
	s, ok := t.open(text)
	if !ok {
		return nil, false, nil
	}
	switch {
	case s.owner != ownerOf(ex.Principal):
		return nil, true, bridge.InvalidState()
	case time.Now().After(s.expires):
		return nil, true, expired()
	case digestOf(ex.Message) != s.params:
		return nil, true, mismatch()
	}
	answers, ok := responses(ex.Message)
	if !ok {
		return nil, true, badAnswers()
	}
	if s.kind == urlState {
		a, err = t.visited(ex, &s, answers)
		return a, true, err
	}
	r := t.find(s.pid)
	switch {
	case r == nil && t.restarts(ex.Method):
		return nil, true, nil
	case r == nil:
		return nil, true, lost("")
	case r.inner.Principal != ex.Principal:
		return nil, true, bridge.InvalidState()
	}
	if err := r.check(check); err != nil {
		return nil, true, err
	}
	a, err = r.retry(ctx, ex, int(s.round), answers)
	return a, true, err
}

// Check judges a request by the link its call is on.
type Check = func(*bridge.Link, *bridge.Conn) *bridge.Error

// check has a retry judged while its call lives.
func (r *call) check(f Check) *bridge.Error {
	r.mu.Lock()
	conn, live := r.conn, r.st < finished
	r.mu.Unlock()
	if f == nil || !live || conn.Err() != nil {
		return nil
	}
	return f(r.link, conn)
}

// retry is a retry of a call that is known.
func (r *call) retry(ctx context.Context, ex *bridge.Exchange, round int, answers map[string][]byte) (bridge.Dispatched, *bridge.Error) {
	d := &reader{r, ex}
	r.mu.Lock()
	conn, live := r.conn, r.st < finished
	r.mu.Unlock()
	if live {
		r.link.EnsureLevel(ctx, conn, ex.Level)
	}
	r.mu.Lock()
	switch {
	case r.st >= finished:
		o := r.result
		r.mu.Unlock()
		return r.over(d, o)
	case r.st == running:
		defer r.mu.Unlock()
		return r.attachLocked(d)
	case round < r.round && len(r.open) > 0:
		result := r.questionsLocked()
		r.mu.Unlock()
		d.ask(result)
		return d, nil
	}
	return r.answer(ctx, d, answers)
}

// over answers a retry of a call that has ended. What the bridge itself made of it is no outcome of the server's: a read that was
// interrupted is run again.
func (r *call) over(d *reader, o outcome) (bridge.Dispatched, *bridge.Error) {
	switch {
	case o.err != nil && o.err.Reason == bridge.ReasonParkedLost:
		return nil, o.err
	case o.err != nil && interrupted(o.err.Reason) && r.t.restarts(d.ex.Method):
		return nil, nil
	}
	o.deliver(d.ex)
	return d, nil
}

func interrupted(why bridge.Reason) bool {
	return why == bridge.ReasonBackTerminated || why == bridge.ReasonStopping
}

// attachLocked has a request wait for the call.
func (r *call) attachLocked(d *reader) (bridge.Dispatched, *bridge.Error) {
	if len(r.readers) >= r.t.cfg.Readers {
		return nil, &bridge.Error{Status: 429, Code: mcp.CodeInternal, Reason: bridge.ReasonOverload, Retry: 1,
			Message: "too many copies of this request wait for its answer already"}
	}
	r.readers = append(r.readers, d)
	r.client = clientOf(d.ex)
	return d, nil
}

// response is an answer on its way to the server.
type response struct {
	q *question
	f framing.Frame
}

// answer delivers the answers of a retry of the current round, and attaches it or asks for the rest. It is entered with the lock
// held, and gives it up.
func (r *call) answer(ctx context.Context, d *reader, answers map[string][]byte) (bridge.Dispatched, *bridge.Error) {
	good, err := r.judgeLocked(answers)
	if err != nil {
		r.mu.Unlock()
		return nil, err
	}
	r.client = clientOf(d.ex)
	for _, g := range good {
		r.closeLocked(g.q)
	}
	good = append(good, r.rootlessLocked()...)
	conn := r.conn
	if lacks := r.lacksLocked(); lacks != nil {
		r.mu.Unlock()
		err := undeclared(*lacks, "The server needs a capability this request did not declare")
		r.kill(err, []byte(`"the client cannot be asked"`), nil)
		deliver(conn, good) // nothing acts on them any more, but each question has an answer
		return nil, err
	}
	if len(r.open) > 0 {
		return r.askRest(d, conn, good)
	}
	r.st = running
	r.readers = append(r.readers, d)
	r.armLocked(r.began.Add(r.t.cfg.Life))
	sent := r.sent
	r.mu.Unlock()
	r.move()
	deliver(conn, good)
	if !sent {
		r.sendNow(ctx, conn)
	}
	return d, nil
}

// askRest asks for what a retry has not answered. It is entered with the lock held, and gives it up.
func (r *call) askRest(d *reader, conn *bridge.Conn, good []response) (bridge.Dispatched, *bridge.Error) {
	result, err := r.interimLocked()
	r.mu.Unlock()
	if err != nil {
		r.kill(err, []byte(`"too many rounds"`), nil)
		deliver(conn, good)
		d.ex.Fail(err)
		return d, nil
	}
	d.ask(result)
	r.move()
	deliver(conn, good)
	return d, nil
}

func deliver(conn *bridge.Conn, good []response) {
	for _, g := range good {
		conn.Answer(g.q.id, g.f)
	}
}

// judgeLocked checks all answers before any is delivered: one that is none of its kind refuses them all, and so does a form that was
// asked for often enough. Keys nobody asked for are ignored (MRT-16).
func (r *call) judgeLocked(answers map[string][]byte) (good []response, err *bridge.Error) {
	var unfitting []*question
	for _, q := range r.open {
		answer := answers[q.key]
		if answer == nil {
			continue
		}
		f, v, why := q.judge(answer, r.conn.Facts().Version)
		switch {
		case v == malformed, v == unfit && q.faults >= maxFaults:
			return nil, badAnswer(q.key, why)
		case v == unfit:
			unfitting = append(unfitting, q)
		default:
			good = append(good, response{q, f})
		}
	}
	for _, q := range unfitting {
		q.faults++
	}
	for _, g := range good {
		r.noteRootsLocked(g.q, answers[g.q.key])
	}
	return good, nil
}

// rootlessLocked answers open questions about roots for a client that has none any more.
func (r *call) rootlessLocked() (list []response) {
	if rootsNeed.Covered(r.client.profile) {
		return nil
	}
	for _, q := range append([]*question(nil), r.open...) {
		if q.need.Feature != "roots" {
			continue
		}
		r.closeLocked(q)
		f := errorFrame(q.id, mcp.CodeMethodNotFound, "roots was not declared")
		if r.t.cfg.Roots != nil {
			f = bridge.ResultFrame(q.id, r.t.cfg.Roots)
		}
		list = append(list, response{q, f})
	}
	return list
}

// lacksLocked is what an open question needs and the client does not declare any more (META-06), nil if it declares all.
func (r *call) lacksLocked() *bridge.Need {
	for _, q := range r.open {
		if !q.need.Covered(r.client.profile) {
			return &q.need
		}
	}
	return nil
}

// sendNow sends a request that was held back until its client had told its roots. The server may have been lost meanwhile: it has
// not seen the request, so that another incarnation may have it.
func (r *call) sendNow(ctx context.Context, conn *bridge.Conn) {
	err := r.sendTo(ctx, conn)
	if err != nil && conn.Err() != nil {
		var next *bridge.Conn
		if next, err = r.link.Conn(ctx); err == nil {
			r.mu.Lock()
			r.conn = next
			r.mu.Unlock()
			r.answerHeld(ctx, next)
			err = r.sendTo(ctx, next)
		}
	}
	if err != nil {
		r.end(dead, outcome{err: err}, nil)
	}
}

func (r *call) sendTo(ctx context.Context, conn *bridge.Conn) *bridge.Error {
	if _, err := conn.Dispatch(ctx, r.inner); err != nil {
		return err
	}
	r.dispatched()
	return nil
}

// answerHeld gives the roots the client has told to a server that asks for them at its start.
func (r *call) answerHeld(ctx context.Context, conn *bridge.Conn) {
	r.mu.Lock()
	roots := r.roots
	r.mu.Unlock()
	for _, m := range conn.TakeHeld(ctx) {
		if roots != nil {
			conn.Respond(m, roots)
		} else {
			conn.Refuse(m, mcp.CodeInternal, "the client did not answer")
		}
	}
}
