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

// initialize carries out the legacy handshake (LEG-01 to LEG-03).
func (a *attempt) initialize(ctx context.Context) error {
	began := time.Now()
	a.conn.Greeting()
	m, err := a.call(ctx, mcp.Initialize, a.params())
	if err != nil {
		return a.failed(mcp.Initialize)
	}
	a.slow = time.Since(began) > a.back.cfg.Limits.Probe
	if m.Kind == framing.Error {
		return &failure{text: "it refused initialize: " + errorText(m), refused: true}
	}
	hello, err := era.ParseInitialize(m)
	if err != nil {
		return err
	}
	return a.greet(ctx, bridge.Facts{Era: mcp.Legacy, Version: hello.Version, Hello: hello, HelloRaw: m.Bytes(m.Result)})
}

// failed tells why a step of the handshake failed: the server has ended, or the time is up.
func (a *attempt) failed(method string) error {
	if a.conn.Err() != nil {
		return a.ended(method, false)
	}
	return a.late(method)
}

// params is what initialize says. A handshake of the bridge's own offers the revision the server has named (VER-11); that
// of a client passes as it is (translation 1.3).
func (a *attempt) params() []byte {
	if a.offer == "" || a.o.Want != mcp.Modern {
		return a.o.Params
	}
	raw := a.o.Params
	all := framing.Span{End: uint32(len(raw))}
	return framing.Rewrite(raw, framing.EditObject(nil, raw, all, framing.Members(raw, all),
		framing.Op{Name: "protocolVersion", Value: strconv.AppendQuote(nil, string(a.offer))})).Bytes()
}

// greet ends the handshake. The handler takes over before the server hears of it, because some answer
// notifications/initialized with a request at once.
func (a *attempt) greet(ctx context.Context, f bridge.Facts) error {
	asks := a.mayComplete(&f)
	if !asks {
		a.conn.Establish(f)
	}
	if a.o.HoldInitialized {
		return nil
	}
	if err := a.conn.Notify(ctx, mcp.Initialized, nil); err != nil {
		_ = a.end(ctx)
		return a.failed(mcp.Initialized)
	}
	if asks {
		f.Completions = a.completes(ctx)
		a.conn.Establish(f)
	}
	return nil
}

// mayComplete tells a 2024-11-05 server, which cannot declare whether it completes arguments. Only modern clients are
// told (translation 2.2).
func (a *attempt) mayComplete(f *bridge.Facts) bool {
	return f.Version == mcp.V20241105 && a.o.Want == mcp.Modern && !a.o.HoldInitialized &&
		(era.HasCapability(f.Hello.Capabilities, "prompts") || era.HasCapability(f.Hello.Capabilities, "resources"))
}

// completes asks for the completion of an argument that cannot exist: -32601 and silence mean no (FEA-11).
func (a *attempt) completes(ctx context.Context) bool {
	ctx, stop := context.WithTimeout(ctx, a.back.cfg.Limits.Probe)
	defer stop()
	m, err := a.conn.RoundTrip(ctx, mcp.Complete, []byte(
		`{"ref":{"type":"ref/prompt","name":"mcpbridge: no such prompt"},"argument":{"name":"none","value":""}}`))
	if err != nil {
		return false
	}
	v, _ := framing.Lookup(m.Raw, framing.Members(m.Raw, m.Error), "code")
	return m.Kind == framing.Result || string(m.Bytes(v)) != strconv.Itoa(mcp.CodeMethodNotFound)
}
