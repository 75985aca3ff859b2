package front

import (
	"context"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// modern serves a message of the modern era: self-contained, without session (ledger 4).
func (x *exchange) modern(c *Class) *bridge.Error {
	if c.Message.Kind != framing.Request {
		return x.modernNotification(c)
	}
	link, release, err := x.cfg.Endpoint.Modern(x.who)
	if err != nil {
		return err.WithID(c.Message.Bytes(c.Message.ID))
	}
	defer release()
	conn, err := link.Conn(x.r.Context())
	if err != nil {
		return err.WithID(c.Message.Bytes(c.Message.ID))
	}
	if err = x.modernRequest(c, link, conn); err != nil {
		if next := x.again(link, conn, err); next != nil {
			err = x.modernRequest(c, link, next)
		}
	}
	if err != nil {
		return err.WithID(c.Message.Bytes(c.Message.ID))
	}
	return nil
}

// modernNotification accepts and drops, save a cancellation that names one running request of the same principal
// (HTTP-M-07). A server that does not run is not started for it.
func (x *exchange) modernNotification(c *Class) *bridge.Error {
	if c.Method == mcp.Cancelled {
		x.cancelModern(c.Message)
	}
	return x.accepted()
}

// cancelModern cancels the one running request a cancellation names; with several of that id it names none (HTTP-M-07).
func (x *exchange) cancelModern(m *framing.Message) {
	id := m.Bytes(m.Param("requestId"))
	mine := func(e *bridge.Exchange) bool {
		return e.Era == mcp.Modern && e.Principal == x.who && string(e.Message.Bytes(e.Message.ID)) == string(id)
	}
	var at *bridge.Conn
	total := 0
	for _, link := range x.cfg.Endpoint.Running(x.who) {
		conn := link.Live()
		if conn == nil {
			continue
		}
		if _, n := conn.Youngest(mine); n > 0 {
			at, total = conn, total+n
		}
	}
	if total == 1 {
		at.CancelWhere(id, m.Bytes(m.Param("reason")), mine)
	}
}

func (x *exchange) modernRequest(c *Class, link *bridge.Link, conn *bridge.Conn) *bridge.Error {
	ctx, m, facts := x.r.Context(), c.Message, conn.Facts()
	if facts.Era == mcp.Legacy {
		switch c.Method {
		case mcp.Discover:
			return x.local(m, facts.Hello.DiscoverResult(era.DiscoverOptions{Completions: facts.Completions,
				KeepListChanged: true, KeepSubscribe: link.LivesOn()}))
		case mcp.Listen:
			return x.listen(c, link, conn)
		}
		if err := checkState(c); err != nil {
			return err
		}
	}
	if err := x.checkParams(ctx, c, link, conn); err != nil {
		return err
	}
	level := requestLevel(m)
	if facts.Era == mcp.Legacy {
		link.EnsureLevel(ctx, conn, level)
	}
	st := bridge.NewStream(1, bridge.StreamLimits{})
	ticket, err := conn.Dispatch(ctx, &bridge.Exchange{Message: m, Era: mcp.Modern, Version: c.Version, Method: c.Method,
		Traits: c.Traits, Principal: x.who, Level: level, Headers: paramHeaders(x.r.Header), Sink: st})
	if err != nil {
		return err
	}
	r := relay{exchange: x, st: st, gone: func() { ticket.Cancel([]byte(`"the client closed the stream"`)) }}
	if c.Method == mcp.Listen {
		r.stop = func() {
			if ticket.Cancel([]byte(`"the bridge stops"`)) {
				st.Finish(bridge.Answer{Frame: bridge.ListenEnd(m.Bytes(m.ID)), Status: 200})
			}
		}
	}
	r.run(c.Method == mcp.Listen)
	return nil
}

// checkState refuses a retry of something that was never asked: before a legacy server the bridge gives out no request
// state, so that any is forged, and running the call would not be what the client meant (translation 11.4).
func checkState(c *Class) *bridge.Error {
	if !c.Traits.MayAsk || !c.Message.Param("requestState").OK() {
		return nil
	}
	return refuse(c.Message, mcp.CodeInvalidParams, bridge.ReasonRequestState,
		"cannot continue: params.requestState is none of this bridge's. Send the request without it.")
}

func requestLevel(m *framing.Message) mcp.Level {
	v := m.MetaMember(mcp.MetaLogLevel)
	if !v.OK() {
		return mcp.NoLevel
	}
	name, _ := framing.String(m.Bytes(v))
	return mcp.ParseLevel(name)
}

// checkParams is check 12 of HTTP-M-41. A header that does not fit is judged by a list that is at most a second old
// (XMH-18).
func (x *exchange) checkParams(ctx context.Context, c *Class, link *bridge.Link, conn *bridge.Conn) *bridge.Error {
	if c.Method != mcp.ToolsCall {
		return nil
	}
	err := CheckParams(c, x.r.Header, link.ToolParams(ctx, conn, c.Name, false))
	if err != nil {
		err = CheckParams(c, x.r.Header, link.ToolParams(ctx, conn, c.Name, true))
	}
	return err
}

// listen serves a listen in front of a legacy server until the client leaves, the server is taken away or the bridge stops (translation
// 8.2, SUB-09). A client that does not read loses the stream before it loses a change without knowing.
func (x *exchange) listen(c *Class, link *bridge.Link, conn *bridge.Conn) *bridge.Error {
	st := bridge.NewStream(1, bridge.StreamLimits{EndFull: true})
	l, err := link.Listen(x.r.Context(), conn, &bridge.Exchange{Message: c.Message, Era: mcp.Modern, Version: c.Version, Method: c.Method,
		Traits: c.Traits, Principal: x.who, Sink: st})
	if err != nil {
		return err
	}
	defer link.Detach(l)
	r := relay{exchange: x, st: st, gone: func() {}, stop: l.End}
	r.run(true)
	return nil
}
