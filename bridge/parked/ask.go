package parked

import (
	"slices"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Question implements bridge.Asker (translation 5.3, 5.4).
func (r *call) Question(c *bridge.Conn, m *framing.Message, need bridge.Need, sole bool) (taken bool) {
	r.mu.Lock()
	declared, roots, over := r.client.profile, r.roots, r.st >= finished
	r.mu.Unlock()
	switch {
	case over:
		return false
	case !need.Covered(r.link.Profile()):
		r.refuse(c, m, need, sole)
	case need.Feature == "roots" && roots != nil:
		c.Respond(m, roots)
	case need.Feature == "roots" && !need.Covered(declared):
		r.withoutRoots(c, m)
	case !need.Covered(declared):
		r.kill(undeclared(need, "The server needs a capability this request did not declare"), []byte(`"the client cannot be asked"`), nil)
		c.Refuse(m, mcp.CodeInternal, "the client of this request cannot be asked")
	case c.Question(m.Bytes(m.ID), r.inner, nil):
		r.adopt(c, m, need, !sole)
	default:
		return false
	}
	return true
}

// refuse answers what the link has not declared, as a legacy client would (CLF-06, CLF-12). If the call then fails, that is why.
// Servers ask for roots just in case.
func (r *call) refuse(c *bridge.Conn, m *framing.Message, need bridge.Need, sole bool) {
	if need.Feature == "roots" {
		r.withoutRoots(c, m)
		return
	}
	if sole && need.Profile != 0 {
		r.mu.Lock()
		r.lacked = &need
		r.mu.Unlock()
	}
	code, text := need.NotDeclared(r.link.Profile())
	c.Refuse(m, code, text)
}

// withoutRoots answers for a client that has declared none.
func (r *call) withoutRoots(c *bridge.Conn, m *framing.Message) {
	if r.t.cfg.Roots != nil {
		c.Respond(m, r.t.cfg.Roots)
		return
	}
	c.Refuse(m, mcp.CodeMethodNotFound, "roots was not declared")
}

// adopt takes a question that is registered with the connection: it is answered from what the request brought, or put to the
// client. guess tells that it may be another call's.
func (r *call) adopt(c *bridge.Conn, m *framing.Message, need bridge.Need, guess bool) {
	r.mu.Lock()
	q := newQuestion(m, need, r.client.context)
	if q != nil {
		q.guess = guess
	}
	switch {
	case r.st >= finished:
		r.mu.Unlock()
		if q != nil {
			c.Reply(q.id, q.abandoned())
		}
		return
	case q == nil:
		r.mu.Unlock()
		c.Refuse(m, mcp.CodeInvalidParams, "params must be an object")
		return
	case r.asked >= maxAsked || len(r.open) >= r.t.cfg.Questions || len(r.open) > 0 && r.held+len(q.body) > r.t.cfg.QuestionBytes:
		r.mu.Unlock()
		c.Refuse(m, mcp.CodeInternal, "this request has too many questions open")
		return
	}
	r.nameLocked(q)
	if f, ok := r.inHandLocked(q); ok {
		r.mu.Unlock()
		c.Reply(q.id, f)
		return
	}
	r.open = append(r.open, q)
	r.held += len(q.body)
	err := r.enterLocked()
	now := err == nil && r.st == running && len(r.readers) > 0
	if now && r.t.cfg.Window > 0 {
		if r.window == nil {
			r.window = r.t.after(r.t.cfg.Window, r.flush)
		}
		now = false
	}
	r.mu.Unlock()
	switch {
	case err != nil:
		r.overLimit(c, q, err)
	case now:
		r.flush()
	}
}

// overLimit fails a call that may not be parked: the server hears -32603 for its question, and that the call is cancelled.
func (r *call) overLimit(c *bridge.Conn, q *question, err *bridge.Error) {
	c.Reply(q.id, errorFrame(q.id, mcp.CodeInternal, err.Message))
	r.mu.Lock()
	r.closeLocked(q)
	r.mu.Unlock()
	r.kill(err, []byte(`"`+string(err.Reason)+`"`), nil)
}

// nameLocked gives a question its key (design decision 16): never one that this call has used.
func (r *call) nameLocked(q *question) {
	if r.keys == nil {
		r.keys = map[string]bool{}
	}
	r.asked++
	q.key = ownKey(q.id)
	if q.key == "" || r.keys[q.key] {
		for n := r.asked; ; n++ {
			if q.key = q.need.Feature + "-" + string(itoa(n)); !r.keys[q.key] {
				break
			}
		}
	}
	r.keys[q.key] = true
}

// inHandLocked is the server's response made of an answer that came with the request, if there is a good one for this question. It
// is used once (MRT-22).
func (r *call) inHandLocked(q *question) (f framing.Frame, ok bool) {
	answer := r.early[q.key]
	if answer == nil || r.marks != nil && !slices.Contains(r.marks, q.mark()) {
		return f, false
	}
	delete(r.early, q.key)
	f, v, _ := q.judge(answer, r.conn.Facts().Version)
	if v != valid {
		return f, false
	}
	r.noteRootsLocked(q, answer)
	return f, true
}

func (r *call) noteRootsLocked(q *question, answer []byte) {
	if q.need.Feature == "roots" {
		r.roots = answer
	}
}

// enterLocked takes the call into the table when it is asked for the first time.
func (r *call) enterLocked() *bridge.Error {
	if r.entered {
		return nil
	}
	if err := r.t.enter(r); err != nil {
		return err
	}
	r.entered = true
	r.armLocked(r.began.Add(r.t.cfg.Life))
	return nil
}

func (r *call) closeLocked(q *question) {
	r.open = slices.DeleteFunc(r.open, func(o *question) bool { return o == q })
	r.held -= len(q.body)
}

// Withdraw implements bridge.Asker: the question is not put to the client any more; an answer to it is dropped.
func (r *call) Withdraw(id []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.open {
		if string(q.id) == string(id) {
			r.closeLocked(q)
			return
		}
	}
}

// flush answers the attached requests with what the server asks.
func (r *call) flush() {
	r.mu.Lock()
	r.stopWindowLocked()
	if r.st != running || len(r.open) == 0 || len(r.readers) == 0 {
		r.mu.Unlock()
		return
	}
	result, err := r.interimLocked()
	if err != nil {
		r.mu.Unlock()
		r.kill(err, []byte(`"too many rounds"`), nil)
		return
	}
	readers := r.readers
	r.readers, r.st = nil, waiting
	r.mu.Unlock()
	for _, d := range readers {
		d.ask(result)
	}
}

// ask ends a request with questions (MRT-18: without caching hints).
func (d *reader) ask(result []byte) {
	d.ex.Sink.Finish(bridge.Answer{Frame: bridge.ResultFrame(d.ex.Message.Bytes(d.ex.Message.ID), result), Status: 200})
}

// interimLocked begins a round and returns its result.
func (r *call) interimLocked() ([]byte, *bridge.Error) {
	if r.round >= r.t.cfg.Rounds {
		return nil, tooManyRounds(r.t.cfg.Server, r.t.cfg.Rounds)
	}
	r.round++
	r.expires = time.Now().Add(r.t.cfg.TTL)
	if end := r.began.Add(r.t.cfg.Life); end.Before(r.expires) {
		r.expires = end
	}
	r.armLocked(r.expires)
	return r.questionsLocked(), nil
}

// questionsLocked is the result that asks what is open, in the round as it is.
func (r *call) questionsLocked() []byte {
	s := state{kind: parkedState, pid: r.pid, round: uint16(r.round), owner: ownerOf(r.inner.Principal), params: r.digestLocked(), expires: r.expires}
	b := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, q := range r.open {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(framing.AppendString(b, q.key), ':'), q.body...)
		if r.t.restarts(r.inner.Method) && len(s.marks) < maxMarks {
			s.marks = append(s.marks, q.mark())
		}
	}
	b = framing.AppendString(append(b, `},"requestState":`...), r.t.seal(&s))
	return append(b, '}')
}

func (r *call) digestLocked() digest {
	if r.params == nil {
		d := digestOf(r.inner.Message)
		r.params = &d
	}
	return *r.params
}

// rootsNeed is what a question about roots needs.
var rootsNeed = bridge.Need{Feature: "roots", Profile: era.Roots}
