package bridge

import (
	"context"
	"time"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// question is one request of the server that a client has to answer.
type question struct {
	of *call   // the request it belongs to, nil for none and for one that has ended
	to Session // who was asked, nil if that is no session
}

// Question registers a request of the server that is put to a client, for the exchange it belongs to or nil. While it
// is open the exchange has no deadline. It reports false, and registers nothing, when the exchange is over.
func (c *Conn) Question(id []byte, ex *Exchange, to Session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := &question{to: to}
	if ex != nil {
		if q.of, _ = c.youngestLocked(func(e *Exchange) bool { return e == ex }); q.of == nil {
			return false
		}
		if q.of.asks++; q.of.asks == 1 {
			q.of.paused = time.Now()
		}
	}
	if c.err == nil {
		c.questions[string(id)] = q
	}
	return true
}

func (c *Conn) forgetQuestionsLocked(k *call) {
	if k.asks == 0 {
		return
	}
	for _, q := range c.questions {
		if q.of == k {
			q.of = nil
		}
	}
}

// forgetQuestion takes a question off the table and reports whether it was open.
func (c *Conn) forgetQuestion(id []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.questions[string(id)]
	if q == nil {
		return false
	}
	delete(c.questions, string(id))
	if q.of != nil {
		c.answeredLocked(q.of, time.Now())
	}
	return true
}

// answeredLocked counts one question of a call less. What a human took is no time of the server's (CAN-12).
func (c *Conn) answeredLocked(k *call, now time.Time) {
	if k.asks--; k.asks == 0 && k.ex != nil && k.ex.Asker != nil {
		k.started = k.started.Add(now.Sub(k.paused))
	}
	c.extendLocked(k, now)
}

// Answer sends a client's answer to a question. It reports false when the question is not open any more. It waits for a
// server that does not read as long as a request does; then the server misses the answer.
func (c *Conn) Answer(id []byte, f framing.Frame) bool {
	if !c.forgetQuestion(id) {
		return false
	}
	_ = c.Forward(context.Background(), f)
	return true
}

// Refuse answers a request of the server with an error of the bridge.
func (c *Conn) Refuse(m *framing.Message, code int, msg string) {
	id := m.Bytes(m.ID)
	c.forgetQuestion(id)
	c.refuse(id, code, msg)
}

func (c *Conn) refuse(id []byte, code int, msg string) {
	e := &Error{Code: code, Message: msg, ID: id}
	c.reply(framing.Whole(e.Body(true)))
}

// reply sends an answer from the reading goroutine, which must not wait for a server that does not read: it may do so
// because it is not read from.
func (c *Conn) reply(f framing.Frame) { c.later(f, "answer to a request of the server") }

// release ends what a session that leaves has under way: its requests are over at once. The function returned tells the
// server, and refuses what it still asks the session (translation 10).
func (c *Conn) release(s Session) (tell func(context.Context)) {
	var calls []*call
	var asked []string
	c.mu.Lock()
	for _, k := range c.calls {
		if k.ex != nil && k.ex.Session == s {
			calls = append(calls, k)
		}
	}
	for _, k := range calls {
		c.removeLocked(k)
	}
	for id, q := range c.questions {
		if q.to == s {
			asked = append(asked, id)
		}
	}
	c.mu.Unlock()
	for _, k := range calls {
		k.ex.Fail(&Error{Code: mcp.CodeInternal, Reason: ReasonStopping, Message: "the session ended before server " + c.name + " answered"})
	}
	return func(context.Context) {
		for _, k := range calls {
			c.callOff(k, []byte(`"the session ended"`))
		}
		for _, id := range asked {
			if c.forgetQuestion([]byte(id)) {
				c.refuse([]byte(id), mcp.CodeInternal, "the client that was asked has left")
			}
		}
	}
}
