package front

import (
	"context"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// legacy serves a message of the legacy era: a handshake, or something in a session (ledger 17).
func (x *exchange) legacy(c *Class, s Session) *bridge.Error {
	if s == nil {
		return x.initialize(c)
	}
	s.Enter()
	defer s.Leave()
	if c.Batch != nil {
		return x.batch(c, s)
	}
	m := c.Message
	switch m.Kind {
	case framing.Request:
		err := x.request(c, s)
		if err != nil {
			err = err.WithID(m.Bytes(m.ID))
		}
		return err
	case framing.Notification:
		x.notification(c, s)
	default:
		s.Answer(m)
	}
	return x.accepted()
}

// initialize opens a session (LEG-01, HTTP-L-18).
func (x *exchange) initialize(c *Class) *bridge.Error {
	m := c.Message
	id := m.Bytes(m.ID)
	opening, perr := era.ParseOpening(m)
	if perr != nil {
		return badParams(m, perr.Error())
	}
	s, result, err := x.cfg.Endpoint.OpenSession(x.r.Context(), x.who, opening, m.Bytes(m.Params))
	if err != nil {
		return err.WithID(id)
	}
	s.Enter()
	defer s.Leave()
	answer := bridge.Answer{Frame: bridge.ResultFrame(id, result), Status: 200}
	if x.host == nil {
		x.w.Header().Set(mcp.HeaderSessionID, s.ID())
		return x.single(answer)
	}
	x.writeJSON(answer)
	x.host.begin(s)
	return nil
}

// single writes an answer that is at hand, in a form the client takes.
func (x *exchange) single(a bridge.Answer) *bridge.Error {
	if x.accept.JSON {
		x.writeJSON(a)
		return nil
	}
	out := x.begin(nil)
	_ = out.put([]bridge.Outgoing{{Frame: a.Frame}}, func(int64) string { return "" })
	_ = out.flush()
	return nil
}

// request serves one request of a session.
func (x *exchange) request(c *Class, s Session) *bridge.Error {
	m := c.Message
	if c.Method == mcp.Ping { // it tests this hop (LEG-08)
		return x.single(bridge.Answer{Frame: bridge.ResultFrame(m.Bytes(m.ID), []byte(`{}`)), Status: 200})
	}
	st := bridge.NewStream(1, s.PostLimits())
	if err := x.dispatch(c, s, st); err != nil {
		return err
	}
	x.relaySession(s, st, false)
	return nil
}

// relaySession carries a stream of a session to the client. A client that leaves does not cancel: the stream is kept for
// it if it has been told an id, and the server works on (HTTP-L-16).
func (x *exchange) relaySession(s Session, st *bridge.Stream, batch bool) {
	r := relay{exchange: x, st: st, s: s, batch: batch, gone: func() {}}
	if x.after != nil {
		x.left = true
		x.after(func() { r.run(false) })
		return
	}
	r.run(false)
	if r.out != nil {
		s.Detach(st)
	}
}

// dispatch answers a request of a session into st, from the bridge or from the server.
func (x *exchange) dispatch(c *Class, s Session, st *bridge.Stream) *bridge.Error {
	link := s.Link()
	conn, err := link.Conn(x.r.Context())
	if err != nil {
		return err
	}
	if err = x.send(c, s, conn, st); err != nil {
		if next := x.again(link, conn, err); next != nil {
			err = x.send(c, s, next, st)
		}
	}
	return err
}

// send is dispatch on a connection that is there.
func (x *exchange) send(c *Class, s Session, conn *bridge.Conn, st *bridge.Stream) *bridge.Error {
	ctx := context.WithoutCancel(x.r.Context()) // a client that leaves does not cancel
	s.Link().Initialized(ctx, conn)
	if x.answerHere(ctx, c, s, conn, st) {
		return nil
	}
	ex := &bridge.Exchange{Message: c.Message, Era: mcp.Legacy, Version: s.Version(), Method: c.Method,
		Traits: c.Traits, Principal: x.who, Session: s, Level: s.Level(), Info: s.ClientInfo(), Sink: st}
	if conn.Facts().Era == mcp.Modern && x.accept.SSE { // who takes JSON only cannot be asked (META-14, translation 6.2)
		ex.Envelope = era.ClientCapabilitiesToModern(era.AtRevision(s.Capabilities(), s.Version()))
	}
	_, err := conn.Dispatch(ctx, ex)
	return err
}

// answerHere serves the methods whose state the bridge keeps between a session and its server (translation 8.4, 9.2, 9.3).
func (x *exchange) answerHere(ctx context.Context, c *Class, s Session, conn *bridge.Conn, st *bridge.Stream) bool {
	m, link := c.Message, s.Link()
	modern := conn.Facts().Era == mcp.Modern
	switch c.Method {
	case mcp.Ping:
		finish(st, m, []byte(`{}`))
	case mcp.SetLevel:
		return x.setLevel(ctx, c, s, conn, st)
	case mcp.ResourcesSubscribe, mcp.ResourcesUnsubscribe:
		uri := m.Bytes(m.Param("uri"))
		switch {
		case !framing.IsString(uri) && modern:
			fail(st, m, &bridge.Error{Code: mcp.CodeInvalidParams, Message: "params.uri must be a string"})
			return true
		case !framing.IsString(uri):
			return false // the server refuses
		case s.Exclusive() && !modern:
			s.NoteSubscription(uri, c.Method == mcp.ResourcesSubscribe)
			link.NoteSubscription(s, uri, c.Method == mcp.ResourcesSubscribe)
			return false
		}
		x.subscribe(ctx, c, s, conn, st, uri)
	default:
		return false
	}
	return true
}

func (x *exchange) subscribe(ctx context.Context, c *Class, s Session, conn *bridge.Conn, st *bridge.Stream, uri []byte) {
	m := c.Message
	if c.Method == mcp.ResourcesUnsubscribe {
		s.NoteSubscription(uri, false)
		s.Link().Unsubscribe(ctx, conn, s, uri)
		finish(st, m, []byte(`{}`))
		return
	}
	switch refused, err := s.Link().Subscribe(ctx, conn, s, uri); {
	case err != nil:
		fail(st, m, err)
	case refused != nil:
		st.Finish(bridge.Answer{Frame: framing.Rewrite(refused.Raw, []framing.Edit{{At: refused.ID, New: m.Bytes(m.ID)}}), Status: 200})
	default:
		s.NoteSubscription(uri, true)
		finish(st, m, []byte(`{}`))
	}
}

func (x *exchange) setLevel(ctx context.Context, c *Class, s Session, conn *bridge.Conn, st *bridge.Stream) bool {
	m := c.Message
	name, _ := framing.String(m.Bytes(m.Param("level")))
	level := mcp.ParseLevel(name)
	f := conn.Facts()
	switch {
	case !era.HasCapability(f.Capabilities(), "logging") && f.Era == mcp.Modern:
		fail(st, m, &bridge.Error{Code: mcp.CodeMethodNotFound, Message: "this server does not log"})
	case f.Era == mcp.Legacy && s.Exclusive():
		if level != mcp.NoLevel {
			s.SetLevel(level)
			s.Link().NoteLevel(level)
		}
		return false // the server answers
	case level == mcp.NoLevel:
		fail(st, m, &bridge.Error{Code: mcp.CodeInvalidParams, Message: "unknown log level; use one of debug, info, notice, warning, error, critical, alert, emergency"})
	default:
		s.SetLevel(level)
		if f.Era == mcp.Legacy {
			s.Link().SetSessionLevel(ctx, conn, s, level)
		}
		finish(st, m, []byte(`{}`))
	}
	return true
}

func finish(st *bridge.Stream, m *framing.Message, result []byte) {
	st.Finish(bridge.Answer{Frame: bridge.ResultFrame(m.Bytes(m.ID), result), Status: 200})
}

func fail(st *bridge.Stream, m *framing.Message, err *bridge.Error) {
	st.Finish(bridge.Answer{Frame: framing.Whole(err.WithID(m.Bytes(m.ID)).Body(true)), Status: 200})
}

// notification serves one notification of a session. What it means for a server that does not run any more is nothing.
func (x *exchange) notification(c *Class, s Session) {
	m, ctx, link := c.Message, x.r.Context(), s.Link()
	conn := link.Live()
	switch {
	case c.Method == mcp.Cancelled:
		link.CancelWhere(conn, m.Bytes(m.Param("requestId")), m.Bytes(m.Param("reason")), func(e *bridge.Exchange) bool {
			return e.Session == bridge.Session(s)
		})
	case conn == nil:
	case c.Method == mcp.Initialized:
		link.Initialized(ctx, conn)
	case c.Method == mcp.Progress: // of an answer to a question: its token is the server's own
		if conn.Facts().Era == mcp.Legacy {
			_ = conn.Forward(ctx, framing.Whole(m.Raw))
		}
	default:
		if s.Exclusive() && conn.Facts().Era == mcp.Legacy {
			_ = conn.Forward(ctx, framing.Whole(m.Raw))
		}
	}
}

// batch serves an array of a 2025-03-26 session: each member as if it had come alone, all answers together (FRM-24,
// HTTP-L-30, translation 17.4).
func (x *exchange) batch(c *Class, s Session) *bridge.Error {
	members, answers := x.members(c, s)
	if answers == 0 {
		for _, b := range members {
			x.oneWay(b, s)
		}
		return x.accepted()
	}
	st := bridge.NewStream(answers, s.PostLimits())
	for _, b := range members {
		switch {
		case b.err != nil:
			st.Finish(bridge.Answer{Frame: framing.Whole(b.err.Body(true)), Status: 200})
		case b.class.Message.Kind == framing.Request:
			if err := x.dispatch(b.class, s, st); err != nil {
				fail(st, b.class.Message, err)
			}
		default:
			x.oneWay(b, s)
		}
	}
	x.relaySession(s, st, true)
	return nil
}

type member struct {
	class *Class
	err   *bridge.Error
}

func (x *exchange) members(c *Class, s Session) (list []member, answers int) {
	view := SessionView{Present: true, Known: true, Version: s.Version()}
	for _, raw := range c.Batch {
		class, err := ClassifyMember(x.r.Header, raw, view)
		if err != nil || class.Message.Kind == framing.Request {
			answers++
		}
		list = append(list, member{class, err})
	}
	return list, answers
}

func (x *exchange) oneWay(b member, s Session) {
	if b.class.Message.Kind == framing.Notification {
		x.notification(b.class, s)
	} else {
		s.Answer(b.class.Message)
	}
}
