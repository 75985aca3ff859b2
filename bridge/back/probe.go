package back

import (
	"context"
	"fmt"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// discover probes for the modern era (VER-20 to VER-25). Once a server has answered with a recognised modern error there
// is no way back to the handshake, whatever comes then (VER-08).
func (a *attempt) discover(ctx context.Context, only bool) error {
	p, err := a.probe(ctx, mcp.LatestModern, only)
	if err != nil {
		return err
	}
	if p.Verdict != era.VerdictRetry {
		return a.conclude(p)
	}
	again, err := a.probe(ctx, p.Version, only)
	if err == nil {
		err = a.conclude(again.AfterRetry())
	}
	if err != nil {
		return fmt.Errorf("%s; then: %v", p.Reason, err) // not wrapped: it counts as no refusal of the era
	}
	return nil
}

// conclude acts on a classified answer.
func (a *attempt) conclude(p era.Probe) error {
	switch p.Verdict {
	case era.VerdictModern:
		a.conn.Establish(bridge.Facts{Era: mcp.Modern, Version: p.Version, Discovery: *p.Discovery})
		return nil
	case era.VerdictLegacy:
		if len(p.Listed) > 0 {
			a.offer = p.Version
		}
		return &failure{text: "it does not speak " + string(mcp.LatestModern) + " (" + p.Reason + ")", refused: true}
	case era.VerdictRefused:
		return fmt.Errorf("it speaks %s, but %s", p.Version, p.Reason)
	}
	return fmt.Errorf("no common revision: %s", p.Reason)
}

// probe asks once. Silence and the server's end are answers too: not modern. A server of which nothing else will be tried
// has as much time as the start as a whole (VER-26).
func (a *attempt) probe(ctx context.Context, v mcp.Version, only bool) (era.Probe, error) {
	limited, stop := ctx, context.CancelFunc(func() {})
	if !only {
		limited, stop = context.WithTimeout(ctx, a.back.cfg.Limits.Probe)
	}
	defer stop()
	m, err := a.call(limited, mcp.Discover, bridge.OwnParams(v, ""))
	switch {
	case err == nil:
		return era.ClassifyProbe(m, mcp.ModernVersions()), nil
	case a.conn.Err() != nil:
		return era.Probe{}, a.ended(mcp.Discover, true)
	case ctx.Err() != nil:
		return era.Probe{}, a.late(mcp.Discover)
	}
	a.silent = true
	return era.Probe{}, &failure{text: "it did not answer " + mcp.Discover, refused: true}
}

// errorText is the message of an error response, cut to what fits into another error.
func errorText(m *framing.Message) string {
	v, _ := framing.Lookup(m.Raw, framing.Members(m.Raw, m.Error), "message")
	text, ok := framing.String(m.Bytes(v))
	if !ok || text == "" {
		return "error without a message"
	}
	return cut(text, maxErrorText)
}
