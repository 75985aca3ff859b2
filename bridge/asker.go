package bridge

import (
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Asker is what stands for a modern client's call at a legacy server, which asks by requests while the client can only be
// asked in a result (translation 5). It is the call's sink, and the call lives on while no request of the client is attached to
// it. The core calls it from the goroutine that reads the server: no method may block. The methods that only look are called with
// the connection's lock held and must not call back into the connection.
type Asker interface {
	Sink
	// Declared is what the client's last request declared (META-06).
	Declared() era.Profile
	// Attached reports whether a request of the client waits for the call; id, if not nil, is the raw id it must have.
	Attached(id []byte) bool
	// Moved is higher the later the server was last given something to do for the call: the request, or answers to its questions.
	Moved() uint64
	// Level is the log level of the request attached last, NoLevel while none is.
	Level() mcp.Level

	// Busy reports whether the client has so much to answer already that a question which may be another call's is better put there.
	Busy() bool
	// Question takes a request of the server to the client; it sees to the answer. sole tells that no other call can have caused
	// it. It reports false, and takes nothing, when the call is over.
	Question(c *Conn, m *framing.Message, need Need, sole bool) bool
	// Withdraw tells that the server does not want the answer to the question of this raw id any more.
	Withdraw(id []byte)
	// Progress takes a progress notification about the call as the server sent it.
	Progress(m *framing.Message)
	// Answered takes the server's answer: as it was sent, and as it would go to the client.
	Answered(m *framing.Message, a Answer)
	// Failed takes an error of the bridge in place of the server's answer.
	Failed(err *Error)
	// Detach lets go of the attached requests of this raw id, which end without an answer, as if their client had left.
	Detach(id, reason []byte)
}

// Need is what a question of a server needs.
type Need struct {
	Feature string      // "elicitation", "sampling" or "roots"; "" for a method nobody knows
	Profile era.Profile // the features, modes included; 0 of an elicitation mode nobody knows
}

// needOf reads what a server's question needs its client to have declared (translation 5.4, CLF-01, CLF-02, CLF-09).
func needOf(m *framing.Message) Need {
	n := Need{Feature: featureOf(m)}
	switch n.Feature {
	case "elicitation":
		mode := m.Param("mode")
		name, ok := framing.String(m.Bytes(mode))
		switch {
		case !mode.OK(), ok && name == "form":
			n.Profile = era.ElicitForm
		case ok && name == "url":
			n.Profile = era.ElicitURL
		}
	case "sampling":
		n.Profile = era.Sampling
		if m.Param("tools").OK() || m.Param("toolChoice").OK() {
			n.Profile |= era.SamplingTools
		}
	case "roots":
		n.Profile = era.Roots
	}
	return n
}

// Kinds are all features of the need's kind.
func (n Need) Kinds() era.Profile {
	switch n.Feature {
	case "elicitation":
		return era.ElicitForm | era.ElicitURL
	case "sampling":
		return era.Sampling
	}
	return era.Roots
}

// NotDeclared is the answer to a question a legacy client that declared p cannot be asked: -32601 if it declared nothing of the
// kind (CLF-12), -32602 if only the mode or the tools are missing (CLF-06, CLF-09).
func (n Need) NotDeclared(p era.Profile) (code int, text string) {
	if p&n.Kinds() == 0 {
		return mcp.CodeMethodNotFound, n.Feature + " was not declared"
	}
	return mcp.CodeInvalidParams, "this way of " + n.Feature + " was not declared"
}

// Covered reports whether a client that declared p can be asked.
func (n Need) Covered(p era.Profile) bool { return n.Profile != 0 && n.Profile.Subset(p) }

// askModern puts a question of a legacy server to the modern call it belongs to (translation 5.10): the only one open, else of the
// attached ones whose client declared the feature that for which the server was given something to do last, else of those that wait.
// Where a wrong guess would cost more than presentation there is no guess (SEC-08).
func (l *Link) askModern(c *Conn, m *framing.Message) {
	need := needOf(m)
	if need.Feature == "" {
		c.Refuse(m, mcp.CodeMethodNotFound, "the client side of the bridge has no method "+m.MethodName())
		return
	}
	for range askTries {
		ex, n := l.asked(c, need)
		switch {
		case n == 0:
			l.askNobody(c, m, need)
			return
		case ex == nil:
			c.Refuse(m, mcp.CodeInvalidParams, "cannot tell which client request this belongs to")
			return
		case ex.Asker.Question(c, m, need, n == 1):
			return
		}
	}
	c.Refuse(m, mcp.CodeInternal, "the request this belongs to is over")
}

// askTries is how often another call is looked for because the one found ends at that moment.
const askTries = 8

// asked returns the call a question is put to, nil if that would be a guess that may not be made, and how many calls there are
// that could ask. What came on the stream of a call belongs to that.
func (l *Link) asked(c *Conn, need Need) (ex *Exchange, n int) {
	if ex := c.Origin(); ex != nil && ex.Asker != nil {
		return ex, 1
	}
	var who Principal
	guess := false
	ex, n = c.Youngest(func(e *Exchange) bool {
		if e.Asker == nil {
			return false
		}
		guess = guess || e.Principal == Anonymous || who != "" && who != e.Principal
		who = e.Principal
		return true
	})
	if n <= 1 {
		return ex, n
	}
	if guess {
		return nil, n
	}
	for _, fits := range [...]func(Asker) bool{
		func(a Asker) bool { return a.Attached(nil) && need.Covered(a.Declared()) && !a.Busy() },
		func(a Asker) bool { return a.Attached(nil) && need.Covered(a.Declared()) },
		func(a Asker) bool { return need.Covered(a.Declared()) },
		func(a Asker) bool { return a.Attached(nil) },
	} {
		if found := c.latest(fits); found != nil {
			return found, n
		}
	}
	return ex, n
}

// latest is the call that fits for which the server was given something to do last.
func (c *Conn) latest(fits func(Asker) bool) (found *Exchange) {
	var moved uint64
	c.Youngest(func(e *Exchange) bool {
		if e.Asker != nil && fits(e.Asker) && (found == nil || e.Asker.Moved() > moved) {
			found, moved = e, e.Asker.Moved()
		}
		return false
	})
	return found
}

// HandOver gives a question that was put to a call by a guess to another, because that call has ended and the server may well wait for
// the answer all the same. It reports false, and does nothing, if there is no other that can be asked.
func (l *Link) HandOver(c *Conn, m *framing.Message) bool {
	need := needOf(m)
	ex, _ := l.asked(c, need)
	if ex == nil || !need.Covered(ex.Asker.Declared()) || !c.forgetQuestion(m.Bytes(m.ID)) {
		return false
	}
	if !ex.Asker.Question(c, m, need, false) {
		l.askModern(c, m)
	}
	return true
}

// parks reports whether a modern call is open that can be asked something.
func (l *Link) parks(c *Conn) bool {
	_, n := c.Youngest(func(e *Exchange) bool { return e.Asker != nil })
	return n > 0
}

// askNobody answers a question that belongs to no call (translation 5.9, CLF-14). One about roots may be held for a call to come.
func (l *Link) askNobody(c *Conn, m *framing.Message, need Need) {
	switch {
	case !need.Covered(l.cfg.Profile):
		code, text := need.NotDeclared(l.cfg.Profile)
		c.Refuse(m, code, text)
	case need.Feature == "roots" && l.cfg.Roots != nil:
		c.Respond(m, l.cfg.Roots)
	case need.Feature == "roots" && c.hold(m):
	default:
		c.Refuse(m, mcp.CodeInvalidParams, "there is no client request to attach this to")
	}
}

// withdrawModern tells the calls that the server takes a question back.
func (c *Conn) withdrawModern(id []byte) {
	var all []Asker
	c.Youngest(func(e *Exchange) bool {
		if e.Asker != nil {
			all = append(all, e.Asker)
		}
		return false
	})
	for _, a := range all {
		a.Withdraw(id)
	}
}

// level is the log level wanted of an exchange now.
func (e *Exchange) level() mcp.Level {
	if e.Asker != nil {
		return e.Asker.Level()
	}
	return e.Level
}

// Is reports whether the exchange has a request of this raw id of its client open.
func (e *Exchange) Is(id []byte) bool {
	if e.Asker != nil {
		return e.Asker.Attached(id)
	}
	return string(e.Message.Bytes(e.Message.ID)) == string(id)
}

// CallOff ends the open call of an exchange the server's way (translation 10) and reports whether it was open. Its sink hears
// nothing more. Questions that belong to it stay open: who calls it off answers them, behind the cancellation (translation 5.7).
func (c *Conn) CallOff(ex *Exchange, reason []byte) bool {
	c.mu.Lock()
	k, _ := c.youngestLocked(func(e *Exchange) bool { return e == ex })
	c.mu.Unlock()
	return Ticket{c, k}.cancelOpen(reason)
}

func (t Ticket) cancelOpen(reason []byte) bool { return t.call != nil && t.Cancel(reason) }

// Reply answers an open question without waiting for a server that does not read: from the reading goroutine, or behind a
// cancellation. The answer to a question that is not open any more is dropped.
func (c *Conn) Reply(id []byte, f framing.Frame) {
	if c.forgetQuestion(id) {
		c.reply(f)
	}
}

// Respond answers a request of the server at once; result is a raw object.
func (c *Conn) Respond(m *framing.Message, result []byte) {
	c.forgetQuestion(m.Bytes(m.ID))
	c.reply(ResultFrame(m.Bytes(m.ID), result))
}
