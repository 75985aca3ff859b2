package back

import (
	"context"
	"strconv"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// offering is what initialize says. A handshake of the bridge's own offers the revision the server has named (VER-11); that
// of a client passes as it is (translation 1.3).
func offering(o bridge.OpenOptions, offer mcp.Version) []byte {
	if offer == "" || o.Want != mcp.Modern {
		return o.Params
	}
	all := framing.Span{End: uint32(len(o.Params))}
	return framing.Rewrite(o.Params, framing.EditObject(nil, o.Params, all, framing.Members(o.Params, all),
		framing.Op{Name: "protocolVersion", Value: strconv.AppendQuote(nil, string(offer))})).Bytes()
}

// greeting is the end of a legacy handshake.
type greeting struct {
	conn     *bridge.Conn
	o        bridge.OpenOptions
	patience time.Duration // for an answer that need not come
}

// greet ends the handshake. The handler takes over before the server hears of it, because some answer
// notifications/initialized with a request at once. An error tells that the server could not be told.
func (g greeting) greet(ctx context.Context, f bridge.Facts) error {
	asks := g.mayComplete(&f)
	if !asks {
		g.conn.Establish(f)
	}
	if g.o.HoldInitialized {
		return nil
	}
	if err := g.conn.Notify(ctx, mcp.Initialized, nil); err != nil {
		return err
	}
	if asks {
		f.Completions = g.completes(ctx)
		g.conn.Establish(f)
	}
	return nil
}

// mayComplete tells a 2024-11-05 server, which cannot declare whether it completes arguments. Only modern clients are
// told (translation 2.2).
func (g greeting) mayComplete(f *bridge.Facts) bool {
	return f.Version == mcp.V20241105 && g.o.Want == mcp.Modern && !g.o.HoldInitialized &&
		(era.HasCapability(f.Hello.Capabilities, "prompts") || era.HasCapability(f.Hello.Capabilities, "resources"))
}

// completes asks for the completion of an argument that cannot exist: -32601 and silence mean no (FEA-11).
func (g greeting) completes(ctx context.Context) bool {
	ctx, stop := context.WithTimeout(ctx, g.patience)
	defer stop()
	m, err := g.conn.RoundTrip(ctx, mcp.Complete, []byte(
		`{"ref":{"type":"ref/prompt","name":"mcpbridge: no such prompt"},"argument":{"name":"none","value":""}}`))
	if err != nil {
		return false
	}
	v, _ := framing.Lookup(m.Raw, framing.Members(m.Raw, m.Error), "code")
	return m.Kind == framing.Result || string(m.Bytes(v)) != strconv.Itoa(mcp.CodeMethodNotFound)
}
