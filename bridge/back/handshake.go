package back

import (
	"context"
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
	m, err := a.call(ctx, mcp.Initialize, offering(a.o, a.offer))
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

// greet ends the handshake.
func (a *attempt) greet(ctx context.Context, f bridge.Facts) error {
	if err := (greeting{a.conn, a.o, a.back.cfg.Limits.Probe}).greet(ctx, f); err != nil {
		_ = a.end(ctx)
		return a.failed(mcp.Initialized)
	}
	return nil
}
