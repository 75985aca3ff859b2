package bridge

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Ticket stands for a dispatched exchange.
type Ticket struct {
	conn *Conn
	call *call
}

// Dispatch sends the request of an exchange to the server. From then on the exchange's sink is finished exactly once:
// with the server's answer, on the server's end, on a timeout. When Dispatch itself fails nothing was sent, the sink is
// untouched and the error is the answer.
//
// ctx bounds the wait for room while the server does not read.
func (c *Conn) Dispatch(ctx context.Context, ex *Exchange) (Ticket, *Error) {
	k := &call{ex: ex, started: time.Now(), endless: ex.Method == mcp.Listen}
	if tok := ex.Message.Bytes(ex.Message.MetaMember(mcp.MetaProgressToken)); len(tok) > 0 {
		k.token = tok
	}
	k.deadline = k.started.Add(c.limits.Timeout)
	if err := c.add(k); err != nil {
		return Ticket{}, err
	}
	wait := &lazyTimeout{Context: ctx, d: c.limits.Timeout}
	defer wait.stop()
	if err := c.up.Send(wait, c.requestFrame(ex, k), k.crowd); err != nil {
		if !c.drop(k) {
			return Ticket{c, k}, nil // it was answered meanwhile: the sink has it
		}
		return Ticket{}, c.sendError(err)
	}
	return Ticket{c, k}, nil
}

func (c *Conn) requestFrame(ex *Exchange, k *call) framing.Frame {
	var buf [20]byte
	id := strconv.AppendInt(buf[:0], k.id, 10)
	r := era.Request{From: ex.Era, To: c.facts.Era, ID: id}
	if k.token != nil {
		r.Token = id
	}
	if c.facts.Era == mcp.Modern {
		r.Envelope = c.envelope(ex)
	}
	return framing.Rewrite(ex.Message.Raw, r.Edits(ex.Message))
}

// envelope is what a request towards a modern server carries (META-01, META-02, META-14).
func (c *Conn) envelope(ex *Exchange) *era.Envelope {
	e := &era.Envelope{Version: c.facts.Version}
	if ex.Era == mcp.Legacy {
		e.ClientInfo, e.Capabilities = ex.Info, ex.Envelope
		if ex.Level != mcp.NoLevel && era.HasCapability(c.facts.Discovery.Capabilities, "logging") {
			e.LogLevel = ex.Level.String()
		}
	}
	return e
}

func (c *Conn) sendError(err error) *Error {
	if dead := c.Err(); dead != nil {
		return terminated(c.name, dead)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{Status: 503, Code: mcp.CodeInternal, Reason: ReasonBackBusy, Retry: 1,
			Message: "server " + c.name + " does not read its input; the request was not sent"}
	}
	return Unavailable("cannot send to server " + c.name + ": " + err.Error()).Because(err)
}

// Cancel ends a dispatched exchange the server's way (translation 10): the server is told with the id it knows, its late
// answer is dropped, and the sink hears nothing more. It reports false when the exchange is over already.
func (t Ticket) Cancel(reason []byte) bool {
	if t.conn == nil || !t.conn.drop(t.call) {
		return false
	}
	t.conn.tellCancelled(t.call.id, reason)
	return true
}

// tellCancelled never waits for a server that does not read: the message is best effort (CAN-04).
func (c *Conn) tellCancelled(id int64, reason []byte) {
	b := strconv.AppendInt([]byte(`{"requestId":`), id, 10)
	if len(reason) > 0 {
		b = append(append(b, `,"reason":`...), reason...)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	_ = c.Notify(ctx, mcp.Cancelled, append(b, '}'))
}

// CancelWhere cancels the one open exchange that fits and has this raw client id. With none or several it does nothing and
// reports false: an ambiguous cancel is ignored (HTTP-M-07, FRM-11, CAN-04). reason is a raw JSON string or nil.
func (c *Conn) CancelWhere(id, reason []byte, fits func(*Exchange) bool) bool {
	c.mu.Lock()
	k, n := c.youngestLocked(func(e *Exchange) bool {
		return string(e.Message.Bytes(e.Message.ID)) == string(id) && fits(e)
	})
	c.mu.Unlock()
	if n != 1 || !(Ticket{c, k}).Cancel(reason) {
		return false
	}
	k.ex.Sink.Finish(Answer{}) // nothing is written for a cancelled request (CAN-03): the stream just ends
	return true
}

// lazyTimeout is a context whose timer exists only once somebody waits on it: sending rarely waits.
type lazyTimeout struct {
	context.Context
	d    time.Duration
	once sync.Once
	ctx  context.Context
	end  context.CancelFunc
}

func (l *lazyTimeout) start() {
	l.once.Do(func() { l.ctx, l.end = context.WithTimeout(l.Context, l.d) })
}

func (l *lazyTimeout) Done() <-chan struct{} { l.start(); return l.ctx.Done() }

func (l *lazyTimeout) Err() error {
	if l.ctx == nil {
		return l.Context.Err()
	}
	return l.ctx.Err()
}

func (l *lazyTimeout) stop() {
	if l.end != nil {
		l.end()
	}
}

// Watch opens a listen of the bridge's own at a modern server. What comes is given to the handler; the answer, which ends
// it, is dropped.
func (c *Conn) Watch(ctx context.Context, params []byte) error {
	k := &call{reply: make(chan *framing.Message, 1), started: time.Now(), endless: true}
	if err := c.add(k); err != nil {
		return err
	}
	if err := c.up.Send(ctx, ownRequest(k.id, mcp.Listen, params), false); err != nil {
		c.drop(k)
		return err
	}
	return nil
}
