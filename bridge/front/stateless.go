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
	served, err := x.retry(c)
	if !served && err == nil {
		err = x.serveModern(c)
	}
	if err != nil {
		return err.WithID(c.Message.Bytes(c.Message.ID))
	}
	return nil
}

// serveModern chooses a link for a request and serves it.
func (x *exchange) serveModern(c *Class) *bridge.Error {
	capabilities := c.Message.Bytes(c.Message.MetaMember(mcp.MetaClientCapabilities))
	link, release, err := x.cfg.Endpoint.Modern(x.who, capabilities)
	if err != nil {
		return err
	}
	l := &lease{link, release}
	defer l.end()
	conn, err := link.Conn(x.r.Context())
	if err != nil {
		return err
	}
	if err = x.modernRequest(c, l, conn); err != nil {
		if next := x.again(link, conn, err); next != nil {
			err = x.modernRequest(c, l, next)
		}
	}
	return err
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
		return e.Era == mcp.Modern && e.Principal == x.who && e.Is(id)
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

func (x *exchange) modernRequest(c *Class, l *lease, conn *bridge.Conn) *bridge.Error {
	ctx, m, facts := x.r.Context(), c.Message, conn.Facts()
	if facts.Era == mcp.Legacy {
		switch c.Method {
		case mcp.Discover:
			return x.local(m, facts.Hello.DiscoverResult(era.DiscoverOptions{Completions: facts.Completions,
				KeepListChanged: true, KeepSubscribe: l.link.LivesOn()}))
		case mcp.Listen:
			return x.listen(c, l.link, conn)
		}
		if x.cfg.Parked == nil && c.Traits.MayAsk && m.Param("requestState").OK() {
			return bridge.InvalidState()
		}
	}
	if c.Method == mcp.Listen {
		return x.listenModern(c, l.link, conn)
	}
	if err := x.checkParams(ctx, c, l.link, conn); err != nil {
		return err
	}
	st := bridge.NewStream(1, bridge.StreamLimits{})
	ex := x.exchangeOf(c, st)
	if facts.Era == mcp.Legacy {
		l.link.EnsureLevel(ctx, conn, ex.Level)
	}
	d, err := x.forward(ctx, l, conn, ex)
	if err != nil {
		return err
	}
	x.relayModern(st, d)
	return nil
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
	if c.Method != mcp.ToolsCall || x.host != nil {
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
