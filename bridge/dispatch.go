package bridge

import (
	"context"
	"strconv"
	"time"
	"unicode/utf8"

	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Ticket stands for a dispatched exchange.
type Ticket struct {
	conn *Conn
	call *call
}

// Stages of a call. One that is called off while it waits for room is never sent (translation 10); whoever moves the
// stage on decides what the server is told.
const (
	unsent int32 = iota
	sent
	calledOff
)

// Dispatch sends the request of an exchange to the server. From then on the exchange's sink is finished exactly once:
// with the server's answer, on the server's end, on a timeout. When Dispatch itself fails nothing was sent, the sink is
// untouched and the error is the answer.
//
// While the server does not read, ctx, Limits.SendWait and Limits.Waiting bound the wait for room: then the error has reason
// "back_busy", or "stopping" when the server is being stopped (rule 3, rule 4).
func (c *Conn) Dispatch(ctx context.Context, ex *Exchange) (Ticket, *Error) {
	return c.dispatch(ctx, &call{ex: ex})
}

// dispatch is Dispatch for a call that may have been sent before, with other members of params.
func (c *Conn) dispatch(ctx context.Context, k *call) (Ticket, *Error) {
	ex := k.ex
	k.started, k.endless = time.Now(), ex.Method == mcp.Listen
	if tok := ex.Message.Bytes(ex.Message.MetaMember(mcp.MetaProgressToken)); len(tok) > 0 {
		k.token = tok
	}
	k.deadline = k.started.Add(c.limits.Timeout)
	if err := c.add(k); err != nil {
		return Ticket{}, err
	}
	if err := c.send(ctx, c.requestFrame(ex, k), k); err != nil {
		if !c.drop(k) {
			return Ticket{c, k}, nil // it was answered meanwhile: the sink has it
		}
		return Ticket{}, c.sendError(err)
	}
	if !k.stage.CompareAndSwap(unsent, sent) { // called off while it was being sent
		c.tellCancelled(k.id, nil)
	}
	return Ticket{c, k}, nil
}

func (c *Conn) requestFrame(ex *Exchange, k *call) framing.Frame {
	var buf [20]byte
	id := strconv.AppendInt(buf[:0], k.id, 10)
	r := era.Request{From: ex.Era, To: c.facts.Era, ID: id, Set: k.set}
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

// Cancel ends a dispatched exchange the server's way (translation 10): the server is told with the id it knows, its late
// answer is dropped, and the sink hears nothing more. It reports false when the exchange is over already. It does not wait for
// a server that does not read: the server learns of it when it reads again.
func (t Ticket) Cancel(reason []byte) bool {
	if t.conn == nil || !t.conn.drop(t.call) {
		return false
	}
	t.conn.callOff(t.call, reason)
	return true
}

// callOff tells the server that a call taken off the table is not wanted any more, or keeps it from being sent.
func (c *Conn) callOff(k *call, reason []byte) {
	if !k.stage.CompareAndSwap(unsent, calledOff) {
		c.tellCancelled(k.id, reason)
		return
	}
	c.mu.Lock()
	w := k.waiter
	c.mu.Unlock()
	if w != nil {
		w.end(errCalledOff)
	}
}

// maxReason is how many bytes of a cancellation's reason are passed on (translation 10).
const maxReason = 1024

// tellCancelled is best effort (CAN-04).
func (c *Conn) tellCancelled(id int64, reason []byte) {
	b := strconv.AppendInt([]byte(`{"jsonrpc":"2.0","method":"`+mcp.Cancelled+`","params":{"requestId":`), id, 10)
	if text, ok := framing.String(reason); ok {
		b = framing.AppendString(append(b, `,"reason":`...), cut(text, maxReason))
	}
	c.later(framing.Whole(append(b, "}}"...)), mcp.Cancelled)
}

// cut shortens s to at most n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// CancelWhere cancels the one open exchange that fits and has this raw client id. With none or several it does nothing and
// reports false: an ambiguous cancel is ignored (HTTP-M-07, FRM-11, CAN-04). reason is a raw JSON string, of which 1 kB is
// passed on; anything else is left out.
func (c *Conn) CancelWhere(id, reason []byte, fits func(*Exchange) bool) bool {
	c.mu.Lock()
	k, n := c.youngestLocked(func(e *Exchange) bool {
		return e.Is(id) && fits(e)
	})
	c.mu.Unlock()
	if n == 1 && k.ex.Asker != nil {
		k.ex.Asker.Detach(id, reason)
		return true
	}
	if n != 1 || !(Ticket{c, k}).Cancel(reason) {
		return false
	}
	k.ex.Sink.Finish(Answer{}) // nothing is written for a cancelled request (CAN-03): the stream just ends
	return true
}
