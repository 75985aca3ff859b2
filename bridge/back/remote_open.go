package back

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// dialing opens one connection to a remote server, in one way after the other if need be.
type dialing struct {
	remote *Remote
	o      bridge.OpenOptions
	offer  mcp.Version // the legacy revision the server named, "" for none
	failed []string    // what was tried, and why it was refused
}

// refusal is the answer of a server that could be asked and does not speak the era or transport.
type refusal struct {
	text   string
	events bool        // it may speak HTTP+SSE (CON-18)
	modern mcp.Version // it says that it is modern after all, and names this version (VER-08)
}

func (e *refusal) Error() string { return e.text }

// run tries what is to be tried, see the package comment.
func (d *dialing) run(ctx context.Context) (*bridge.Conn, error) {
	r := d.remote
	if r.cfg.EventsFirst && r.cfg.Protocol != mcp.Modern {
		c, err := d.events(ctx)
		if err == nil || !d.refused(err) {
			return c, err
		}
	}
	switch k := r.knowledge(); {
	case r.cfg.Protocol == mcp.Legacy:
		return d.older(ctx, true)
	case r.cfg.Protocol != mcp.Modern && !k.legacy.IsZero():
		d.offer = k.offer
		c, err := d.remembered(ctx, k)
		if err == nil || !d.refused(err) {
			return c, err
		}
		r.learn(knowledge{}) // it has changed: all is tried again
	}
	return d.discover(ctx, mcp.LatestModern, false)
}

// remembered opens the connection as the last one was.
func (d *dialing) remembered(ctx context.Context, k knowledge) (*bridge.Conn, error) {
	if k.events {
		return d.events(ctx)
	}
	return d.legacy(ctx)
}

// refused notes a refusal, and reports whether the error is one; any other ends the opening.
func (d *dialing) refused(err error) bool {
	f, ok := errors.AsType[*refusal](err)
	if ok {
		d.failed = append(d.failed, f.text)
	}
	return ok
}

// sum is an error about everything that was tried, the first failures first (VER-37).
func (d *dialing) sum(err error) error {
	if len(d.failed) == 0 {
		return err
	}
	before := strings.Join(d.failed, "; then ")
	if err.Error() == d.failed[len(d.failed)-1] {
		return errors.New(before)
	}
	return fmt.Errorf("%s; then: %w", before, err)
}

// discover probes (VER-30 to VER-35) and goes on as the answer says.
func (d *dialing) discover(ctx context.Context, v mcp.Version, again bool) (*bridge.Conn, error) {
	p, err := d.remote.probe(ctx, v)
	if err != nil {
		return nil, err
	}
	if again {
		p = p.AfterRetry()
	}
	switch p.Verdict {
	case era.VerdictModern:
		return d.modern(ctx, p)
	case era.VerdictRetry:
		return d.discover(ctx, p.Version, true)
	case era.VerdictLegacy:
		d.failed = append(d.failed, "it does not speak "+string(mcp.LatestModern)+" ("+p.Reason+")")
		if d.remote.cfg.Protocol == mcp.Modern {
			return nil, d.sum(errors.New("its era is pinned to modern by the setting protocol"))
		}
		if len(p.Listed) > 0 {
			d.offer = p.Version
		}
		return d.older(ctx, again)
	case era.VerdictRefused:
		return nil, errors.New("it speaks " + string(p.Version) + ", but " + p.Reason)
	}
	return nil, errors.New("no common revision: " + p.Reason)
}

// older opens the connection in the legacy era, and remembers that the server has it alone.
func (d *dialing) older(ctx context.Context, again bool) (*bridge.Conn, error) {
	c, err := d.legacy(ctx)
	if f, ok := errors.AsType[*refusal](err); ok && f.modern != "" && !again { // it was not itself when it was probed
		return d.discover(ctx, f.modern, true)
	}
	if err == nil {
		d.remote.learn(knowledge{legacy: time.Now(), offer: d.offer})
		return c, nil
	}
	if f, ok := errors.AsType[*refusal](err); ok && f.events {
		d.refused(err)
		if c, err = d.events(ctx); err == nil {
			d.remote.learn(knowledge{legacy: time.Now(), events: true, offer: d.offer})
			return c, nil
		}
		if _, ok := errors.AsType[*refusal](err); ok && strings.Contains(err.Error(), errForeignEndpoint) {
			return nil, d.sum(err)
		} else if ok {
			return nil, d.sum(errors.New(d.failed[len(d.failed)-1]))
		}
	}
	return nil, d.sum(err)
}

// modern opens the connection in the modern era; for a legacy client, in the legacy one if the server lists a revision of that
// (design decision 17).
func (d *dialing) modern(ctx context.Context, p era.Probe) (*bridge.Conn, error) {
	if v := newestLegacy(p.Discovery.SupportedVersions); d.o.Want == mcp.Legacy && v != "" && d.remote.cfg.Protocol == mcp.EraUnknown {
		c, err := d.legacy(ctx)
		if err == nil || !d.refused(err) {
			return c, err
		}
	}
	u := newStateless(d.remote)
	c := bridge.NewConn(u, d.o.Conn)
	c.Establish(bridge.Facts{Era: mcp.Modern, Version: p.Version, Discovery: *p.Discovery})
	return c, nil
}

func newestLegacy(list []string) (v mcp.Version) {
	for _, s := range list {
		if mcp.Version(s).Era() == mcp.Legacy {
			v = max(v, mcp.Version(s))
		}
	}
	return v
}

// probeID is the id of the probe, which has a POST of its own and nothing to do with the ids of a connection.
const probeID = "1"

// probe asks once for the server's discovery. An error is no verdict: the server could not be asked (VER-35).
func (r *Remote) probe(ctx context.Context, v mcp.Version) (era.Probe, error) {
	ctx, stop := context.WithTimeoutCause(ctx, handshakeTime, errors.New("it did not answer "+mcp.Discover+" within "+handshakeTime.String()))
	defer stop()
	body := append([]byte(`{"jsonrpc":"2.0","id":`+probeID+`,"method":"`+mcp.Discover+`","params":`), bridge.OwnParams(v, "")...)
	o := r.post(r.at, append(body, '}'))
	o.header.Set(mcp.HeaderProtocolVersion, string(v))
	o.header.Set(mcp.HeaderMethod, mcp.Discover)
	got := r.ask(ctx, o, []byte(probeID), func(*framing.Message, []byte, error) {})
	defer got.finish()
	var s *statusError
	var p *protocolError
	switch {
	case got.status >= 500 && got.final != nil:
		return era.Probe{}, &statusError{status: got.status}
	case got.final != nil:
		return era.ClassifyProbe(got.final, mcp.ModernVersions()), nil
	case errors.As(got.err, &s) && !s.outage():
		return era.Probe{Verdict: era.VerdictLegacy, Version: mcp.LatestLegacy, Reason: s.Error()}, nil
	case errors.As(got.err, &p):
		return era.Probe{Verdict: era.VerdictLegacy, Version: mcp.LatestLegacy, Reason: p.text}, nil
	}
	return era.Probe{}, got.err
}

// legacy carries out a handshake over Streamable HTTP (LEG-01 to LEG-03).
func (d *dialing) legacy(ctx context.Context) (*bridge.Conn, error) {
	u := newStreamable(d.remote)
	c := bridge.NewConn(u, d.o.Conn)
	if err := d.handshake(ctx, c); err != nil {
		_ = c.Close(context.WithoutCancel(ctx))
		return nil, u.judge(err)
	}
	return c, nil
}

// handshake is the one of both legacy transports.
func (d *dialing) handshake(ctx context.Context, c *bridge.Conn) error {
	limited, stop := context.WithTimeoutCause(ctx, handshakeTime, errors.New("it did not answer initialize within "+handshakeTime.String()))
	defer stop()
	c.Greeting()
	m, err := c.RoundTrip(limited, mcp.Initialize, offering(d.o, d.offer))
	if err != nil {
		return err
	}
	if m.Kind == framing.Error {
		return &errorAnswer{m}
	}
	hello, err := era.ParseInitialize(m)
	if err != nil {
		return err
	}
	g := greeting{conn: c, o: d.o, patience: d.remote.cfg.Limits.Probe}
	return g.greet(limited, bridge.Facts{Era: mcp.Legacy, Version: hello.Version, Hello: hello, HelloRaw: m.Bytes(m.Result)})
}

// errorAnswer is initialize answered with an error.
type errorAnswer struct{ m *framing.Message }

func (e *errorAnswer) Error() string { return "it refused initialize: " + errorText(e.m) }
