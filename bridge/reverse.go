package bridge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Questioner is who has put a question to a legacy client and takes the answer: a connection whose server asked, or a call whose
// modern server wants input. Questions are told apart by their raw ids.
type Questioner interface {
	// Answer takes the client's response, under the id the question had. It reports false when the question is not open any more.
	Answer(id []byte, f framing.Frame) bool
	// Refuse takes the question back that cannot be put.
	Refuse(m *framing.Message, code int, msg string)
}

const (
	// maxRounds is how many requests one call of a legacy client makes of a modern server that asks for input (translation 6.5).
	maxRounds = 10
	// Waits before a further request that carries no answers, but only the server's state (translation 6.5).
	statePause, maxStatePause = 250 * time.Millisecond, 5 * time.Second
)

// reversal is a call of a legacy client whose modern server wants input (translation 6). Between two requests it has the call: it
// puts the questions to the client, waits for the answers, and sends the request again with them. From then on the connection
// has the call, until the server answers; if that wants input again, the reversal goes on with the next round.
//
//	          input_required                          all answered
//	call open ──────────────▶ asking: in Link.reversals ──────────▶ call open ─▶ ...
//	                             │ refused, out of time, cancelled, link closed
//	                             ▼
//	                          finished
//
// One lock guards its state. It is not held while a session is called.
type reversal struct {
	link   *Link
	ex     *Exchange
	began  time.Time
	rounds int           // requests made upstream
	pause  time.Duration // before the next request without answers

	mu        sync.Mutex
	stop      context.CancelCauseFunc // ends the round
	questions []*inputQuestion        // of this round
	lastID    int
	waiting   int           // questions without an answer
	settled   chan struct{} // closed when none waits, or one is refused
	refused   string        // why the call cannot go on
	over      bool          // finished, or in the hands of a connection again
}

// inputQuestion is an input request as the client is asked it.
type inputQuestion struct {
	era.InputRequest
	id       []byte // raw
	open     bool
	response []byte
}

var (
	errCancelled = errors.New("request was cancelled")
	errAskTime   = errors.New("the client did not answer in time")
)

// InputRequired implements Handler. The answer to a client that nobody can ask is a violation of the protocol.
func (l *Link) InputRequired(t Ticket, m *framing.Message) bool {
	c, k := t.conn, t.call
	if k.ex.Session == nil || !k.ex.Traits.MayAsk {
		return false
	}
	r := k.reversal
	if r == nil {
		r = &reversal{link: l, ex: k.ex, began: k.started, pause: statePause}
	}
	r.rounds++
	ctx, stop := context.WithCancelCause(l.ctx)
	r.mu.Lock()
	r.stop, r.over = stop, false
	r.mu.Unlock()
	l.mu.Lock()
	l.reversals = append(l.reversals, r)
	l.mu.Unlock()
	if !c.drop(k) { // cancelled or out of time: whoever took it has finished it
		l.forgetReversal(r)
		stop(nil)
		return true
	}
	next := &call{ex: k.ex, reversal: r, progress: k.progress, moved: k.moved}
	l.wg.Go(func() {
		defer stop(nil)
		defer l.forgetReversal(r)
		r.round(ctx, m, next)
	})
	return true
}

func (l *Link) forgetReversal(r *reversal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reversals = slices.DeleteFunc(l.reversals, func(o *reversal) bool { return o == r })
	l.lastUse = time.Now()
}

// round asks what the server wants to know and sends the request again.
func (r *reversal) round(ctx context.Context, m *framing.Message, next *call) {
	in, err := era.ReadInput(m, r.ex.Method, era.ProfileOf(r.ex.Envelope))
	if err != nil {
		r.link.cfg.Events.emit(Event{Server: r.link.cfg.Name, Kind: EventViolation, Detail: "invalid result of " + r.ex.Method, Err: err})
		r.fail(&Error{Code: mcp.CodeInternal, Reason: ReasonPeerProtocolError,
			Message: "server " + r.link.cfg.Name + " sent an invalid result: " + err.Error()})
		return
	}
	if r.rounds >= maxRounds {
		r.giveUp(ReasonTooManyRounds, fmt.Sprintf("Server %s asked for input %d times without an end", r.link.cfg.Name, r.rounds))
		return
	}
	set, err := r.answers(ctx, in)
	if err != nil {
		r.fail(r.ended(err))
		return
	}
	if r.refused != "" {
		r.giveUp(ReasonDeclined, r.refused)
		return
	}
	next.set = set
	r.again(ctx, next)
}

// answers returns what the next request carries besides what the client said.
func (r *reversal) answers(ctx context.Context, in *era.Input) (set []framing.Op, err error) {
	if in.State != nil {
		set = append(set, framing.Op{Name: "requestState", Value: in.State})
	}
	if len(in.Requests) == 0 {
		wait := r.pause
		r.pause = min(2*r.pause, maxStatePause)
		return set, r.wait(ctx, nil, wait)
	}
	r.pause = statePause
	settled := r.ask(in)
	err = r.wait(ctx, settled, r.link.cfg.Limits.Ask)
	open := r.withdraw()
	if errors.Is(err, errAskTime) {
		err = nil
		r.missed(open)
	}
	if err != nil || r.refused != "" {
		return nil, err
	}
	b := []byte{'{'}
	for i, q := range r.questions {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, q.Key...), ':'), q.response...)
	}
	return append(set, framing.Op{Name: "inputResponses", Value: append(b, '}')}), nil
}

// wait returns nil when settled is closed, or, where there is nothing to settle, when the time is over.
func (r *reversal) wait(ctx context.Context, settled <-chan struct{}, limit time.Duration) error {
	hard := time.Until(r.began.Add(r.link.cfg.Limits.HardTimeout))
	t := time.NewTimer(min(limit, hard))
	defer t.Stop()
	select {
	case <-settled:
		return nil
	case <-t.C:
		if settled == nil && limit < hard {
			return nil
		}
		return errAskTime
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask puts all questions of a round to the client at once, on the stream of the call (translation 6.2).
func (r *reversal) ask(in *era.Input) (settled <-chan struct{}) {
	put := map[*inputQuestion]*framing.Message{}
	r.mu.Lock()
	r.questions, r.waiting, r.settled, r.refused = nil, len(in.Requests), make(chan struct{}), ""
	done := r.settled
	for _, request := range in.Requests {
		r.lastID++
		q := &inputQuestion{InputRequest: request, id: strconv.AppendInt(nil, int64(r.lastID), 10), open: true}
		r.questions = append(r.questions, q)
		m, err := q.message(r.ex.Version)
		if err != nil {
			r.link.cfg.Events.emit(Event{Server: r.link.cfg.Name, Kind: EventDropped, Detail: q.Method, Err: err})
			r.settleLocked(q, func() ([]byte, string) { return q.Unanswered(err.Error()) })
			continue
		}
		put[q] = m
	}
	r.mu.Unlock()
	for _, q := range r.questions {
		if m := put[q]; m != nil {
			r.ex.Session.Ask(r, m, r.ex.Sink)
		}
	}
	if r.isOver() { // cancelled meanwhile: the last ones may have been put too late to be withdrawn
		for q := range put {
			r.takeBack(q)
		}
	}
	return done
}

var errCannotAsk = errors.New("the client's revision of the protocol has no form for the question")

// message is the question as a request of the server.
func (q *inputQuestion) message(v mcp.Version) (*framing.Message, error) {
	params, ok := q.ForLegacy(v, framing.AppendString(nil, rand.Text()))
	if !ok {
		return nil, errCannotAsk
	}
	b := append(append([]byte(`{"jsonrpc":"2.0","id":`), q.id...), `,"method":`...)
	b = framing.AppendString(b, q.Method)
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	return framing.Scan(append(b, '}'))
}

// Answer implements Questioner.
func (r *reversal) Answer(id []byte, f framing.Frame) bool {
	m, err := framing.Scan(f.Bytes())
	if err != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.questionLocked(id)
	if q == nil {
		return false
	}
	r.settleLocked(q, func() ([]byte, string) { return q.ReadAnswer(m) })
	return true
}

// Refuse implements Questioner.
func (r *reversal) Refuse(m *framing.Message, _ int, msg string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := r.questionLocked(m.Bytes(m.ID)); q != nil {
		r.settleLocked(q, func() ([]byte, string) { return q.Unanswered(msg) })
	}
}

// questionLocked finds an open question.
func (r *reversal) questionLocked(id []byte) *inputQuestion {
	for _, q := range r.questions {
		if q.open && string(q.id) == string(id) {
			return q
		}
	}
	return nil
}

// settleLocked closes a question with what came of it.
func (r *reversal) settleLocked(q *inputQuestion, outcome func() (response []byte, refused string)) {
	q.open = false
	r.waiting--
	already := r.refused != ""
	var refused string
	if q.response, refused = outcome(); refused != "" && !already {
		r.refused = refused
	}
	if !already && (r.waiting == 0 || r.refused != "") {
		close(r.settled)
	}
}

// settle closes what is still open and returns it.
func (r *reversal) settle() (open []*inputQuestion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.questions {
		if q.open {
			q.open = false
			open = append(open, q)
		}
	}
	return open
}

// missed gives the questions that were not answered in time what counts as their answer.
func (r *reversal) missed(open []*inputQuestion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range open {
		var refused string
		if q.response, refused = q.Unanswered(errAskTime.Error()); refused != "" && r.refused == "" {
			r.refused = refused
		}
	}
}

// withdraw closes what is still open, tells the client that it needs no answer any more, and returns it.
func (r *reversal) withdraw() (open []*inputQuestion) {
	open = r.settle()
	for _, q := range open {
		r.takeBack(q)
	}
	return open
}

func (r *reversal) takeBack(q *inputQuestion) {
	m, err := framing.Scan([]byte(`{"jsonrpc":"2.0","method":"` + mcp.Cancelled + `","params":{"requestId":` + string(q.id) + `,"reason":"the answer is not needed any more"}}`))
	if err == nil {
		r.ex.Session.Withdraw(r, m, q.id)
	}
}

// again sends the request with what the client answered. A modern server remembers nothing: a connection that has ended
// meanwhile costs nothing but a new one.
func (r *reversal) again(ctx context.Context, next *call) {
	var err *Error
	for range 2 {
		var c *Conn
		if c, err = r.link.Conn(ctx); err != nil {
			break
		}
		if c.Facts().Era != mcp.Modern {
			err = &Error{Code: mcp.CodeInternal, Reason: ReasonBackTerminated,
				Message: "server " + r.link.cfg.Name + " was replaced by one of another protocol era before it answered"}
			break
		}
		var over bool
		if over, err = r.send(ctx, c, next); over || err == nil {
			return
		}
		next = &call{ex: next.ex, reversal: r, progress: next.progress, moved: next.moved, set: next.set}
		if err.Reason != ReasonBackTerminated {
			break
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		err = r.ended(cause)
	}
	r.fail(err)
}

// send hands the call to a connection. over tells that the call was finished meanwhile.
func (r *reversal) send(ctx context.Context, c *Conn, next *call) (over bool, err *Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return true, nil
	}
	_, err = c.dispatch(ctx, next)
	r.over = err == nil
	return r.over, err
}

// take makes the caller the one who finishes the call. It reports false if somebody else has it.
func (r *reversal) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	mine := !r.over
	r.over = true
	return mine
}

func (r *reversal) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

func (r *reversal) fail(err *Error) {
	if r.take() {
		r.ex.Fail(err)
	}
}

// giveUp ends a call that cannot go on. What the model can act on is the result of a tool (translation 6.4).
func (r *reversal) giveUp(reason Reason, text string) {
	if r.ex.Method != mcp.ToolsCall {
		r.fail(&Error{Code: mcp.CodeInternal, Reason: reason, Message: text})
		return
	}
	if r.take() {
		result := append(framing.AppendString([]byte(`{"content":[{"type":"text","text":`), text), `}],"isError":true}`...)
		r.ex.Sink.Finish(Answer{Frame: ResultFrame(r.ex.Message.Bytes(r.ex.Message.ID), result), Status: 200})
	}
}

// ended is the error of a call that ended between two requests.
func (r *reversal) ended(cause error) *Error {
	switch {
	case errors.Is(cause, errAskTime):
		return &Error{Code: mcp.CodeInternal, Reason: ReasonTimeout, Message: "the call took longer than " + r.link.cfg.Limits.HardTimeout.String()}
	case errors.Is(cause, errLinkClosed), r.link.ctx.Err() != nil:
		return r.link.stopped()
	}
	return &Error{Code: mcp.CodeInternal, Reason: ReasonStopping, Message: "the session ended before server " + r.link.cfg.Name + " answered"}
}

// cancel ends the call between two requests. It reports false if a connection has it.
func (r *reversal) cancel(cause error) bool {
	r.mu.Lock()
	stop := r.stop
	r.mu.Unlock()
	stop(cause) // a request that is being sent is given up
	if !r.take() {
		return false
	}
	r.withdraw() // while the stream of the call is open
	return true
}

// CancelWhere cancels the one open call that fits and has this raw client id, whether it is open at the server or waits for the client's
// answer to a question. conn may be nil. See Conn.CancelWhere.
func (l *Link) CancelWhere(conn *Conn, id, reason []byte, fits func(*Exchange) bool) bool {
	atServer := func() bool { return conn != nil && conn.CancelWhere(id, reason, fits) }
	if atServer() {
		return true
	}
	asking := l.reversalsOf(func(e *Exchange) bool { return string(e.Message.Bytes(e.Message.ID)) == string(id) && fits(e) })
	if len(asking) != 1 {
		return false
	}
	if !asking[0].cancel(errCancelled) {
		return atServer() // it was sent meanwhile
	}
	asking[0].ex.Sink.Finish(Answer{}) // CAN-03
	return true
}

func (l *Link) reversalsOf(fits func(*Exchange) bool) (list []*reversal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.reversals {
		if fits(r.ex) {
			list = append(list, r)
		}
	}
	return list
}

// endReversals ends what waits for the answers of a session that has left.
func (l *Link) endReversals(s Session) {
	for _, r := range l.reversalsOf(func(e *Exchange) bool { return e.Session == s }) {
		if r.cancel(errCalledOff) {
			r.ex.Fail(r.ended(errCalledOff))
		}
	}
}
