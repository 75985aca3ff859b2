package back

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
	"mcpbridge/procman"
)

// stopTimeout bounds the ladder for a server that could not be opened.
const stopTimeout = 15 * time.Second

// refusal tells that a server could be asked and does not speak an era.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

// attempt opens one connection, in one era after the other if need be.
type attempt struct {
	back *Stdio
	o    bridge.OpenOptions
	proc procman.Process
	conn *bridge.Conn
}

func (a *attempt) try(ctx context.Context, e mcp.Era) error {
	if err := a.connect(ctx); err != nil {
		return err
	}
	if e == mcp.Modern {
		return a.discover(ctx)
	}
	return a.initialize(ctx)
}

// connect makes sure there is a live connection in the probing phase. A server that ended on the other era's question is
// started again, and its end is no crash (VER-24).
func (a *attempt) connect(ctx context.Context) error {
	if a.conn != nil && a.conn.Err() == nil {
		return nil
	}
	if a.proc != nil {
		a.back.sup.Forgive(a.proc)
	}
	p, err := a.back.process(ctx)
	if err != nil {
		return err
	}
	a.proc, a.conn = p, bridge.NewConn(a.back.pipe(p), a.o.Conn)
	return nil
}

// drop ends a connection that led nowhere.
func (a *attempt) drop(ctx context.Context) {
	if a.conn != nil && a.conn.Err() == nil {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer stop()
		_ = a.conn.Close(ctx)
	}
}

// discover probes for the modern era (VER-20 to VER-25).
func (a *attempt) discover(ctx context.Context) error {
	version := mcp.LatestModern
	for retried := false; ; retried = true {
		m, err := a.ask(ctx, version)
		if err != nil {
			return err
		}
		p := era.ClassifyProbe(m, mcp.ModernVersions())
		if retried {
			p = p.AfterRetry()
		}
		switch p.Verdict {
		case era.VerdictModern:
			a.conn.Establish(bridge.Facts{Era: mcp.Modern, Version: p.Version, Discovery: *p.Discovery})
			return nil
		case era.VerdictRetry:
			version = p.Version
		case era.VerdictLegacy:
			return &refusal{"it does not speak " + string(version) + " (" + p.Reason + ")"}
		default:
			return fmt.Errorf("no common revision: %s", p.Reason)
		}
	}
}

// ask sends the probe. Silence and the server's end are answers too: not modern.
func (a *attempt) ask(ctx context.Context, v mcp.Version) (*framing.Message, error) {
	pctx, stop := context.WithTimeout(ctx, a.back.cfg.Limits.Probe)
	defer stop()
	m, err := a.conn.RoundTrip(pctx, mcp.Discover, bridge.OwnParams(v, ""))
	switch {
	case err == nil:
		return m, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case a.conn.Err() != nil:
		return nil, &refusal{"it ended on server/discover: " + err.Error()}
	default:
		return nil, &refusal{"it did not answer server/discover"}
	}
}

// initialize carries out the legacy handshake (LEG-01 to LEG-03).
func (a *attempt) initialize(ctx context.Context) error {
	a.conn.Greeting()
	m, err := a.conn.RoundTrip(ctx, mcp.Initialize, a.o.Params)
	if err != nil {
		if a.conn.Err() != nil {
			return fmt.Errorf("it ended on initialize: %w", err)
		}
		return err
	}
	if m.Kind == framing.Error {
		return &refusal{"it refused initialize: " + errorText(m)}
	}
	hello, err := era.ParseInitialize(m)
	if err != nil {
		return err
	}
	f := bridge.Facts{Era: mcp.Legacy, Version: hello.Version, Hello: hello, HelloRaw: m.Bytes(m.Result)}
	if a.o.HoldInitialized {
		a.conn.Establish(f)
		return nil
	}
	if err := a.conn.Notify(ctx, mcp.Initialized, nil); err != nil {
		return err
	}
	f.Completions = a.completes(ctx, hello)
	a.conn.Establish(f)
	return nil
}

// completes asks a 2024-11-05 server, which cannot declare it, whether it completes arguments (translation 2.2). Only
// modern clients are told.
func (a *attempt) completes(ctx context.Context, h era.Hello) bool {
	if h.Version != mcp.V20241105 || a.o.Want != mcp.Modern ||
		!era.HasCapability(h.Capabilities, "prompts") && !era.HasCapability(h.Capabilities, "resources") {
		return false
	}
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

func errorText(m *framing.Message) string {
	v, _ := framing.Lookup(m.Raw, framing.Members(m.Raw, m.Error), "message")
	text, ok := framing.String(m.Bytes(v))
	if !ok {
		return "error without a message"
	}
	return text[:min(len(text), 300)]
}
