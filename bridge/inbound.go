package bridge

import (
	"bytes"
	"strconv"
	"time"

	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Message takes one message of the server. It is the Receiver's side of a connection.
func (c *Conn) Message(m *framing.Message) {
	switch m.Kind {
	case framing.Result, framing.Error:
		c.response(m)
	case framing.Request:
		c.request(m)
	case framing.Notification:
		c.notification(m)
	}
}

// take removes the call a response's raw id names. An id that comes back as a string is accepted (translation 4.1). An
// error without id is the answer in a handshake whose one open request is the only one that can be meant: not when an
// earlier one was given up, whose late answer it may be (VER-25).
func (c *Conn) take(id []byte) *call {
	n, quoted := parseID(id)
	c.mu.Lock()
	if len(id) == 0 && c.phase != open && !c.stray && len(c.calls) == 1 {
		n = c.lastID
	}
	k := c.calls[n]
	if k != nil {
		c.removeLocked(k)
	}
	c.mu.Unlock()
	if k != nil && quoted {
		c.events.emit(Event{Server: c.name, Kind: EventViolation, Detail: "response id came back as a string"})
	}
	return k
}

const (
	maxID     = 18 // digits of the largest id that is looked at
	maxString = len(`"\u0031"`) + (maxID-1)*len(`\u0031`)
)

// parseID reads one of our own ids, as we write them or as a string of that; 0 for anything else.
func parseID(raw []byte) (n int64, quoted bool) {
	if !framing.IsString(raw) {
		return digits(raw), false
	}
	if len(raw) > maxString || bytes.IndexByte(raw, '\\') < 0 {
		return digits(raw[1 : len(raw)-1]), true
	}
	s, _ := framing.String(raw)
	return digits([]byte(s)), true
}

// digits reads a number without sign and leading zeros; 0 for anything else.
func digits(raw []byte) (n int64) {
	if len(raw) == 0 || len(raw) > maxID || raw[0] == '0' {
		return 0
	}
	for _, d := range raw {
		if d < '0' || d > '9' {
			return 0
		}
		n = n*10 + int64(d-'0')
	}
	return n
}

func (c *Conn) response(m *framing.Message) {
	if era.IsInput(m) && c.inputRequired(m) {
		return
	}
	k := c.take(m.Bytes(m.ID))
	switch {
	case k == nil: // late, unknown or already answered: ignored (CAN-05)
	case k.ex == nil:
		c.unwatched(k)
		k.reply <- m
	case k.ex.Asker != nil:
		k.ex.Asker.Answered(m, c.answer(k.ex, m))
	default:
		k.ex.Sink.Finish(c.answer(k.ex, m))
	}
}

// inputRequired offers the handler a call of a legacy client whose modern server asks for input.
func (c *Conn) inputRequired(m *framing.Message) bool {
	n, _ := parseID(m.Bytes(m.ID))
	c.mu.Lock()
	k := c.calls[n]
	mine := k != nil && k.ex != nil && k.ex.Era == mcp.Legacy && c.phase == open && c.facts.Era == mcp.Modern
	c.mu.Unlock()
	return mine && c.h.InputRequired(Ticket{c, k}, m)
}

// answer turns the server's response into the client's.
func (c *Conn) answer(ex *Exchange, m *framing.Message) Answer {
	id := ex.Message.Bytes(ex.Message.ID)
	if m.Kind == framing.Error {
		em := era.ErrorMap{From: c.facts.Era, To: ex.Era, Method: ex.Method, ID: id, ClientVersion: ex.Version,
			BackVersion: c.facts.Version, URI: ex.Message.Bytes(ex.Message.Param("uri"))}
		if ex.Era == mcp.Modern {
			em.Capabilities = ex.Message.Bytes(ex.Message.MetaMember(mcp.MetaClientCapabilities))
		}
		edits, status := em.Edits(m)
		return Answer{Frame: framing.Rewrite(m.Raw, edits), Status: status}
	}
	edits, err := c.resultEdits(ex, id, m)
	if err != nil {
		c.events.emit(Event{Server: c.name, Kind: EventViolation, Detail: "invalid result of " + ex.Method, Err: err})
		e := &Error{Code: mcp.CodeInternal, Reason: ReasonPeerProtocolError, ID: id,
			Message: "server " + c.name + " sent an invalid result: " + err.Error()}
		return Answer{Frame: framing.Whole(e.Body(ex.Era == mcp.Legacy)), Status: 200}
	}
	return Answer{Frame: framing.Rewrite(m.Raw, edits), Status: 200}
}

func (c *Conn) resultEdits(ex *Exchange, id []byte, m *framing.Message) ([]framing.Edit, error) {
	if ex.Method == mcp.Discover && c.facts.Era == mcp.Modern && ex.Era == mcp.Modern {
		return era.RelayDiscover(m, id)
	}
	r := era.Result{From: c.facts.Era, To: ex.Era, Method: ex.Method, ID: id, ClientVersion: ex.Version,
		BackVersion: c.facts.Version, MayAsk: ex.Era == mcp.Modern && ex.Traits.MayAsk}
	if c.facts.Era == mcp.Legacy {
		r.ServerInfo = c.facts.Hello.ServerInfo
		r.Exclusive = ex.Era == mcp.Legacy && ex.Version == c.facts.Version
	}
	if ex.Method == mcp.ToolsList {
		r.Tools = c.tools
	}
	if ex.Method == mcp.Listen && ex.Era == mcp.Modern && m.MetaMember(mcp.MetaSubscriptionID).OK() {
		return c.listenResultEdits(r, id, m)
	}
	return r.Edits(m)
}

// listenResultEdits restores the client's subscription id in the graceful end of a listen (SUB-05, SUB-09).
func (c *Conn) listenResultEdits(r era.Result, id []byte, m *framing.Message) ([]framing.Edit, error) {
	edits, err := r.Edits(m)
	if err != nil {
		return nil, err
	}
	return append(edits, framing.Edit{At: m.MetaMember(mcp.MetaSubscriptionID), New: id}), nil
}

func (c *Conn) request(m *framing.Message) {
	c.mu.Lock()
	ph := c.phase
	modern := ph == open && c.facts.Era == mcp.Modern
	asked := c.questions[string(m.Bytes(m.ID))] != nil
	c.mu.Unlock()
	switch {
	case asked: // one id, one answer (FRM-10)
		c.events.emit(Event{Server: c.name, Kind: EventViolation, Detail: "server used the id of an open request again"})
	case modern: // a response would break FRM-15 for us (FRM-16)
		c.events.emit(Event{Server: c.name, Kind: EventViolation, Detail: "modern server sent request " + m.MethodName()})
	case ph != probing && m.MethodIs(mcp.Ping):
		c.reply(ResultFrame(m.Bytes(m.ID), []byte(`{}`)))
	case ph == open:
		c.h.ServerRequest(c, m)
	}
}

func (c *Conn) notification(m *framing.Message) {
	c.mu.Lock()
	ph := c.phase
	c.mu.Unlock()
	switch {
	case ph != open:
	case m.MethodIs(mcp.Progress):
		c.progress(m)
	case c.facts.Era == mcp.Modern && m.MethodIs(mcp.Cancelled):
		c.endListen(m)
	case c.facts.Era == mcp.Modern && m.MetaMember(mcp.MetaSubscriptionID).OK():
		c.subscribed(m)
	default:
		c.h.ServerNotification(c, m)
	}
}

// progress routes a progress notification to the request that asked for it, with the client's token, as long as it
// grows (PRG-02, PRG-03, PRG-04).
func (c *Conn) progress(m *framing.Message) {
	n, _ := parseID(m.Bytes(m.Param(mcp.MetaProgressToken)))
	value, err := strconv.ParseFloat(string(m.Bytes(m.Param("progress"))), 64)
	if err != nil {
		return
	}
	c.mu.Lock()
	k := c.calls[n]
	if k == nil || k.ex == nil || k.token == nil || k.moved && value <= k.progress {
		c.mu.Unlock()
		return
	}
	k.progress, k.moved = value, true
	c.extendLocked(k, time.Now())
	c.mu.Unlock()
	if k.ex.Asker != nil {
		k.ex.Asker.Progress(m)
		return
	}
	k.ex.Sink.Notify(framing.Rewrite(m.Raw, era.ProgressEdits(m, k.token)), "progress")
}

// endListen takes a modern server's word that it ends a listen. The listener gets no result, since the server gave
// none: its stream just ends, and it may listen again (SUB-10, SUB-11). Behind a result the word means nothing (CON-01).
func (c *Conn) endListen(m *framing.Message) {
	n, _ := parseID(m.Bytes(m.Param("requestId")))
	c.mu.Lock()
	k := c.calls[n]
	if k == nil || !k.endless {
		c.mu.Unlock()
		return
	}
	c.removeLocked(k)
	c.mu.Unlock()
	if k.ex != nil {
		k.ex.Sink.Finish(Answer{})
	} else {
		close(k.reply)
	}
}

// subscribed routes what a modern server sends for a listen, by the subscription id alone (STD-09, SUB-06). The handler
// learns of changes of the tools from any listen.
func (c *Conn) subscribed(m *framing.Message) {
	n, _ := parseID(m.Bytes(m.MetaMember(mcp.MetaSubscriptionID)))
	c.mu.Lock()
	k := c.calls[n]
	c.mu.Unlock()
	switch {
	case k == nil || !k.endless:
		c.events.emit(Event{Server: c.name, Kind: EventDropped, Detail: m.MethodName()})
	case k.listen != nil:
		k.listen.note(m)
	case k.ex != nil:
		edits := era.SubscriptionEdits(m, k.ex.Message.Bytes(k.ex.Message.ID))
		k.ex.Sink.Notify(framing.Rewrite(m.Raw, edits), notifyKey(m))
	}
	if m.MethodIs(mcp.ToolsListChanged) {
		c.h.ServerNotification(c, m)
	}
}

// notifyKey is what makes two notifications mergeable: the method, and the URI of a resource update.
func notifyKey(m *framing.Message) string {
	switch {
	case m.MethodIs(mcp.ResourcesUpdated):
		return mcp.ResourcesUpdated + " " + string(m.Bytes(m.Param("uri")))
	case m.MethodIs(mcp.ToolsListChanged), m.MethodIs(mcp.PromptsListChanged), m.MethodIs(mcp.ResourcesListChanged):
		return m.MethodName()
	}
	return ""
}

// Youngest returns the most recent open exchange that fits, nil if there is none, and how many fit (translation 5.10).
func (c *Conn) Youngest(fits func(*Exchange) bool) (ex *Exchange, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, n := c.youngestLocked(fits)
	if k == nil {
		return nil, 0
	}
	return k.ex, n
}

func (c *Conn) youngestLocked(fits func(*Exchange) bool) (young *call, n int) {
	for _, k := range c.calls {
		if k.ex == nil || !fits(k.ex) {
			continue
		}
		n++
		if young == nil || k.id > young.id {
			young = k
		}
	}
	return young, n
}

// ResultFrame is a response that carries a result object for a raw id.
func ResultFrame(id, result []byte) framing.Frame {
	b := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), `,"result":`...)
	return framing.Whole(append(append(b, result...), '}'))
}
