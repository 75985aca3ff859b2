package front

import (
	"context"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Parked keeps the calls of modern clients that a legacy server asks something in (translation 5).
type Parked interface {
	// Call sends a request that may be asked something. Unless it fails, ex.Sink is finished exactly once, and release is called
	// when the server's call is over, which may be long after that.
	Call(ctx context.Context, link *bridge.Link, conn *bridge.Conn, release func(), ex *bridge.Exchange) (bridge.Dispatched, *bridge.Error)
	// Retry continues the call whose request state ex carries, before a link is chosen. known is false for a state that is none of
	// the bridge's. With neither a request nor an error, the request is to be run from its start. check judges the request's
	// headers by the link the call is on.
	Retry(ctx context.Context, ex *bridge.Exchange, state string, check func(*bridge.Link, *bridge.Conn) *bridge.Error) (d bridge.Dispatched, known bool, err *bridge.Error)
}

// exchangeOf is a modern request as the core sees it.
func (x *exchange) exchangeOf(c *Class, st *bridge.Stream) *bridge.Exchange {
	return &bridge.Exchange{Message: c.Message, Era: mcp.Modern, Version: c.Version, Method: c.Method, Traits: c.Traits,
		Principal: x.who, Level: requestLevel(c.Message), Headers: paramHeaders(x.r.Header), Sink: st}
}

// retry serves a request that continues an earlier one. It reports false for any other.
func (x *exchange) retry(c *Class) (served bool, err *bridge.Error) {
	if !c.Traits.MayAsk || x.cfg.Parked == nil {
		return false, nil
	}
	state, ok := framing.String(c.Message.Bytes(c.Message.Param("requestState")))
	if !ok {
		return false, nil
	}
	ctx, st := x.r.Context(), bridge.NewStream(1, bridge.StreamLimits{})
	d, _, err := x.cfg.Parked.Retry(ctx, x.exchangeOf(c, st), state, func(link *bridge.Link, conn *bridge.Conn) *bridge.Error {
		return x.checkParams(ctx, c, link, conn)
	})
	if err != nil || d == nil {
		return false, err
	}
	x.relayModern(st, d)
	return true, nil
}

// relayModern carries what comes back for a modern request. A client that leaves cancels it (HTTP-M-17).
func (x *exchange) relayModern(st *bridge.Stream, d bridge.Dispatched) {
	r := relay{exchange: x, st: st, gone: func() { d.Cancel([]byte(`"the client closed the stream"`)) }}
	r.run(false)
}

// lease is a link on loan. Whoever has it last gives it back.
type lease struct {
	link    *bridge.Link
	release func() // nil once somebody else sees to it
}

func (l *lease) end() {
	if l.release != nil {
		l.release()
	}
}

// forward sends a modern request. Before a legacy server one that may be asked something takes the link along.
func (x *exchange) forward(ctx context.Context, l *lease, conn *bridge.Conn, ex *bridge.Exchange) (bridge.Dispatched, *bridge.Error) {
	if conn.Facts().Era != mcp.Legacy || !ex.Traits.MayAsk || x.cfg.Parked == nil {
		return conn.Dispatch(ctx, ex)
	}
	d, err := x.cfg.Parked.Call(ctx, l.link, conn, l.release, ex)
	if err == nil {
		l.release = nil
	}
	return d, err
}
