package back

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"mcpbridge/bridge"
	"mcpbridge/framing"
	"mcpbridge/framing/sse"
)

// events is the HTTP+SSE transport of 2024-11-05 (B5): one stream for all that comes, and a POST for every message, which is
// answered on the stream. The end of the stream is the end of the connection, as that of a process is (SSE-07, SSE-11).
type events struct {
	*wire
	dec *sse.Decoder
	at  *url.URL // where messages go
}

// errForeignEndpoint is what a server is refused for that would have messages, and credentials, sent elsewhere (SSE-06).
const errForeignEndpoint = "names an endpoint of another origin"

// events opens a connection over HTTP+SSE (VER-36).
func (d *dialing) events(ctx context.Context) (*bridge.Conn, error) {
	u := &events{wire: newWire(d.remote)}
	u.carry = u
	limited, stop := context.WithTimeoutCause(ctx, handshakeTime, errors.New("it did not open an event stream within "+handshakeTime.String()))
	defer stop()
	resp, err := u.connect(limited)
	if err != nil {
		u.finish(errGone)
		return nil, err
	}
	c := bridge.NewConn(u, d.o.Conn)
	u.begin(func() { u.read(resp) })
	if err := d.handshake(ctx, c); err != nil {
		_ = c.Close(context.WithoutCancel(ctx))
		if e, ok := errors.AsType[*errorAnswer](err); ok {
			return nil, &refusal{text: e.Error()}
		}
		return nil, err
	}
	return c, nil
}

// connect opens the stream, which lives as long as the connection, and reads where messages go, within ctx (SSE-02).
func (u *events) connect(ctx context.Context) (*http.Response, error) {
	late := context.AfterFunc(ctx, func() { u.end(context.Cause(ctx)) })
	defer late()
	resp, err := u.remote.do(u.ctx, u.remote.order(http.MethodGet, u.remote.at, typeEvents))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp) != typeEvents {
		discard(resp)
		if s, ok := reject(resp).(*statusError); ok && !s.outage() {
			return nil, &refusal{text: "a GET opens no event stream (HTTP " + resp.Status + ")"}
		}
		return nil, reject(resp)
	}
	u.dec = sse.NewDecoder(resp.Body, u.remote.cfg.Limits.Line)
	first, err := u.dec.Next()
	switch {
	case err != nil && u.ctx.Err() != nil:
		err = context.Cause(u.ctx)
	case err != nil:
		err = &refusal{text: "the event stream of a GET ends at once"}
	case first.Name != "endpoint":
		err = &refusal{text: "the event stream of a GET does not begin with the event endpoint"}
	default:
		err = u.aim(string(first.Data))
	}
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// aim sets where messages go. The reference is relative to the address of the stream (case 44).
func (u *events) aim(ref string) error {
	at, err := u.remote.at.Parse(strings.TrimSpace(ref))
	switch {
	case err != nil:
		return &refusal{text: "the event endpoint holds no address"}
	case !sameOrigin(u.remote.at, at):
		return &refusal{text: "the server " + errForeignEndpoint + ", " + origin(at)}
	}
	u.at = at
	return nil
}

// read delivers what comes on the stream.
func (u *events) read(resp *http.Response) {
	defer resp.Body.Close()
	for {
		ev, err := u.dec.Next()
		if err != nil {
			u.finish(errors.New("it closed its event stream"))
			return
		}
		if ev.Name == "message" {
			m, err := framing.Scan(ev.Data)
			u.deliver(u.ctx, delivery{m: m, raw: ev.Data, err: err})
		}
	}
}

// request implements carrier. A POST that is refused fails the request: its answer will not come on the stream.
func (u *events) request(p *parcel) {
	<-u.ready
	if err := u.push(p.ctx, p.m); err != nil {
		u.conclude(p, nil, err)
		if s, ok := errors.AsType[*statusError](err); ok && s.status == http.StatusNotFound {
			u.finish(errors.New("the server does not know the session any more"))
		}
	}
}

func (u *events) push(ctx context.Context, m *framing.Message) error {
	resp, err := u.remote.do(ctx, u.remote.post(u.at, m.Raw))
	if err != nil {
		return err
	}
	defer discard(resp)
	if resp.StatusCode >= 300 {
		return reject(resp)
	}
	return nil // any success counts, and its body means nothing (SSE-04)
}

// oneWay implements carrier.
func (u *events) oneWay(p *parcel) { _ = u.push(p.ctx, p.m) }

// cancel implements carrier.
func (u *events) cancel(p *parcel, _ int64) { _ = u.push(p.ctx, p.m) }

// goodbye implements carrier: the closed stream says it.
func (u *events) goodbye(context.Context) {}

var _ bridge.Upstream = (*events)(nil)
