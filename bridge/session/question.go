package session

import (
	"strconv"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// ask is a question of the server that the client has not answered yet.
type ask struct {
	key  string // our id
	conn bridge.Questioner
	id   []byte // the server's id, raw
	via  bridge.Sink
}

// rawID is the id the client sees.
func (a *ask) rawID() []byte { return strconv.AppendQuote(nil, a.key) }

// Ask implements bridge.Session: the question goes out under a string id of the session's own, so that it never looks
// like one of the client's (translation 4.1).
func (s *Session) Ask(c bridge.Questioner, m *framing.Message, via bridge.Sink) {
	if over(via) {
		via = nil
	}
	s.mu.Lock()
	if s.ended || len(s.asks) >= s.store.cfg.Session.Questions {
		s.mu.Unlock()
		c.Refuse(m, mcp.CodeInternal, "the client has too many open questions, or has left")
		return
	}
	s.lastAsk++
	a := &ask{key: "mb-" + strconv.FormatInt(s.lastAsk, 10), conn: c, id: m.Bytes(m.ID), via: via}
	if s.asks == nil {
		s.asks = map[string]*ask{}
	}
	s.asks[a.key] = a
	f := framing.Rewrite(m.Raw, []framing.Edit{{At: m.ID, New: a.rawID()}})
	if via == nil {
		s.deliverLocked(note{frame: f, ask: a})
	}
	s.mu.Unlock()
	if via != nil {
		via.Ask(f)
	}
}

// over reports whether nothing can be put on the stream of a call any more.
func over(via bridge.Sink) bool {
	st, ok := via.(interface{ Over() bool })
	return ok && st.Over()
}

// Answer takes the client's answer to a question and passes it to the server that asked. Answers to nothing are dropped.
func (s *Session) Answer(m *framing.Message) {
	key, ok := framing.String(m.Bytes(m.ID))
	if !ok {
		return
	}
	s.mu.Lock()
	a := s.asks[key]
	delete(s.asks, key)
	s.mu.Unlock()
	if a != nil {
		a.conn.Answer(a.id, framing.Rewrite(m.Raw, []framing.Edit{{At: m.ID, New: a.id}}))
	}
}

// Withdraw implements bridge.Session.
func (s *Session) Withdraw(c bridge.Questioner, m *framing.Message, id []byte) {
	for _, a := range s.takeBack(func(a *ask) bool { return a.conn == c && string(a.id) == string(id) }) {
		s.cancel(a, framing.Rewrite(m.Raw, era.CancelEdits(m, a.rawID())))
	}
}

// ConnClosed implements bridge.Session.
func (s *Session) ConnClosed(c *bridge.Conn) {
	for _, a := range s.takeBack(func(a *ask) bool { return a.conn == c }) {
		s.cancel(a, framing.Whole([]byte(`{"jsonrpc":"2.0","method":"`+mcp.Cancelled+`","params":{"requestId":`+
			string(a.rawID())+`,"reason":"the server ended"}}`)))
	}
}

// takeBack takes questions off the table and returns those that the client has been put: one that still waits for a
// stream is never shown.
func (s *Session) takeBack(which func(*ask) bool) (shown []*ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, a := range s.asks {
		if which(a) {
			delete(s.asks, key)
			if !s.dropAskLocked(a) {
				shown = append(shown, a)
			}
		}
	}
	return shown
}

// cancel tells the client that a question needs no answer, on the stream it came on while that is open.
func (s *Session) cancel(a *ask, f framing.Frame) {
	if a.via != nil && !over(a.via) {
		a.via.Notify(f, "")
		return
	}
	s.Notify(f, "")
}
