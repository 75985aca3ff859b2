package back

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// streamable is the Streamable HTTP transport of 2025-03-26 to 2025-11-25 (B4): a session, a POST for every message, and a GET
// for what the server sends of its own accord. A session that the server has lost is replaced by another without the
// connection's end (HTTP-L-22).
type streamable struct {
	*wire
	check checker
	turn  chan struct{} // full while a session is being opened anew

	mu      sync.Mutex
	session session
	hello   *framing.Message // the initialize request
	status  int              // of HTTP, of its answer
	listens bool             // the GET stream has been begun
}

// session is what a server has given the bridge (HTTP-L-18, HTTP-L-24).
type session struct {
	id      string // "" if it gave none
	version mcp.Version
	over    chan struct{} // closed when another has taken its place
}

func newStreamable(r *Remote) *streamable {
	u := &streamable{wire: newWire(r), turn: make(chan struct{}, 1), session: session{over: make(chan struct{})}}
	u.carry = u
	u.check = checker{wire: u.wire, wrong: func(p era.Probe) bool {
		return p.Verdict == era.VerdictModern && newestLegacy(p.Discovery.SupportedVersions) == ""
	}}
	return u
}

func (u *streamable) current() session {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.session
}

// dress adds the headers of a session.
func (s session) dress(o *order) *order {
	if s.id != "" {
		o.header.Set(mcp.HeaderSessionID, s.id)
	}
	if s.version >= mcp.V20250618 {
		o.header.Set(mcp.HeaderProtocolVersion, string(s.version))
	}
	return o
}

func (u *streamable) mail(s session, m *framing.Message) *order {
	return s.dress(u.remote.post(u.remote.at, m.Raw))
}

// request implements carrier.
func (u *streamable) request(p *parcel) {
	<-u.ready
	if p.m.MethodIs(mcp.Initialize) {
		u.initialize(p)
		return
	}
	m := p.m
	for try := 1; ; try++ {
		s := u.current()
		got := u.remote.ask(p.ctx, u.mail(s, m), m.Bytes(m.ID), u.each(p))
		if errors.Is(got.err, errCut) && got.cursor.id != "" {
			got = u.resume(p, s, m.Bytes(m.ID), got.cursor)
		}
		switch {
		case p.ctx.Err() != nil:
			return
		case try == 1 && s.lost(&got): // it was not carried out: nobody knew the session
			if err := u.renew(p.ctx, s); err != nil {
				u.conclude(p, nil, err)
				return
			}
			continue
		case try == 1 && got.final == nil && u.remote.mayRepeat(p.ctx, p.m, got.err):
			m = again(p.m, 2)
			continue
		}
		u.conclude(p, got.final, got.err)
		got.finish()
		if _, bare := errors.AsType[*statusError](got.err); bare && got.status < 500 {
			u.check.doubt()
		}
		return
	}
}

// lost reports whether a server refused a request because it does not know the session: by 404 (HTTP-L-21), if that is not about an
// unknown method, or as many do by a 400 that speaks of the session.
func (s session) lost(got *reply) bool {
	switch {
	case s.id == "":
		return false
	case got.status == http.StatusNotFound:
		return got.final == nil || errorCode(got.final) != mcp.CodeMethodNotFound
	case got.status == http.StatusBadRequest && (got.final == nil || !got.final.ID.OK()):
		return strings.Contains(strings.ToLower(got.text), "session")
	}
	return false
}

// initialize carries the first request. What is not its answer is not looked at.
func (u *streamable) initialize(p *parcel) {
	got, s := u.introduce(p.ctx, p.m)
	u.mu.Lock()
	u.hello, u.status = p.m, got.status
	if got.final != nil {
		s.over = u.session.over
		u.session = s
	}
	u.mu.Unlock()
	u.conclude(p, got.final, got.err)
	got.finish()
}

// introduce makes the POST of an initialize request, without a session and a version of the header (HTTP-L-24).
func (u *streamable) introduce(ctx context.Context, m *framing.Message) (reply, session) {
	s := session{over: make(chan struct{})}
	resp, err := u.remote.do(ctx, u.mail(session{}, m))
	if err != nil {
		return reply{err: err}, s
	}
	if id := resp.Header.Get(mcp.HeaderSessionID); plainText(id) {
		s.id = id
	}
	got := u.remote.hear(ctx, resp, m.Bytes(m.ID), func(*framing.Message, []byte, error) {})
	if got.final != nil && got.final.Kind == framing.Result {
		if hello, err := era.ParseInitialize(got.final); err == nil {
			s.version = hello.Version
		}
	}
	return got, s
}

// judge tells what a handshake that failed says about the server (VER-08, VER-36, CON-18).
func (u *streamable) judge(err error) error {
	u.mu.Lock()
	status := u.status
	u.mu.Unlock()
	var s *statusError
	var p *protocolError
	var e *errorAnswer
	switch {
	case errors.As(err, &e) && status >= 500:
		return &statusError{status: status}
	case errors.As(err, &e):
		f := &refusal{text: e.Error(), events: mayBeEvents(status)}
		if v := era.ClassifyProbe(e.m, mcp.ModernVersions()); v.Verdict == era.VerdictRetry {
			f.modern = v.Version
		}
		return f
	case errors.As(err, &s) && !s.outage():
		return &refusal{text: "initialize: " + s.Error(), events: mayBeEvents(s.status)}
	case errors.As(err, &p):
		return &refusal{text: "initialize: " + p.text}
	}
	return err
}

// mayBeEvents reports whether a server that refuses initialize so may be one of HTTP+SSE (CON-18).
func mayBeEvents(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return true
	}
	return false
}

// renew replaces a session that the server has lost. Of several who have found that, one does it.
func (u *streamable) renew(ctx context.Context, lost session) error {
	select {
	case u.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-u.turn }()
	if u.current().over != lost.over {
		return nil
	}
	ctx, stop := context.WithTimeoutCause(ctx, handshakeTime, errors.New("it did not answer initialize within "+handshakeTime.String()))
	defer stop()
	got, s := u.introduce(ctx, u.hello)
	defer got.finish()
	switch {
	case got.err != nil:
		return got.err
	case got.final.Kind == framing.Error:
		return &errorAnswer{got.final}
	case s.version != lost.version: // what was translated so far may not fit any more
		u.finish(errors.New("the server has lost the session and negotiates another revision now"))
		return context.Cause(u.ctx)
	}
	u.core.Lost() // before the new session can ask anything
	u.mu.Lock()
	u.session = s
	u.mu.Unlock()
	if u.introduced() {
		u.tell(ctx, s, initialized)
	}
	close(lost.over)
	u.begin(func() { u.core.Renewed(u.ctx) })
	return nil
}

// initialized is the notification of that name.
var initialized = mustScan(`{"jsonrpc":"2.0","method":"` + mcp.Initialized + `"}`)

func mustScan(text string) *framing.Message {
	m, err := framing.Scan([]byte(text))
	if err != nil {
		panic(err)
	}
	return m
}

// introduced reports whether the server has been told that the handshake is over.
func (u *streamable) introduced() bool {
	u.wire.mu.Lock()
	defer u.wire.mu.Unlock()
	return u.greeted != nil
}

// tell makes the POST of a message that has no answer (HTTP-L-03).
func (u *streamable) tell(ctx context.Context, s session, m *framing.Message) (status int, err error) {
	resp, err := u.remote.do(ctx, u.mail(s, m))
	if err != nil {
		return 0, err
	}
	discard(resp)
	return resp.StatusCode, nil
}

// oneWay implements carrier.
func (u *streamable) oneWay(p *parcel) {
	<-u.ready
	s := u.current()
	if status, err := u.tell(p.ctx, s, p.m); err == nil && status == http.StatusNotFound && s.id != "" {
		_ = u.renew(p.ctx, s) // what it was about is gone with the session
	}
	if p.m.MethodIs(mcp.Initialized) {
		u.mu.Lock()
		first := !u.listens
		u.listens = true
		u.mu.Unlock()
		if first {
			u.begin(u.listen)
		}
	}
}

// cancel implements carrier: dropping the stream alone would mean nothing (HTTP-L-16, HTTP-L-17).
func (u *streamable) cancel(p *parcel, request int64) {
	if !u.underway(request) {
		return
	}
	ctx, stop := context.WithTimeout(p.ctx, dialTime)
	defer stop()
	_, _ = u.tell(ctx, u.current(), p.m)
	u.drop(request)
}

// goodbye implements carrier (HTTP-L-23). A server that has no word for it, or is away, forgets the session by itself.
func (u *streamable) goodbye(ctx context.Context) {
	s := u.current()
	if s.id == "" {
		return
	}
	if resp, err := u.remote.do(ctx, s.dress(u.remote.order(http.MethodDelete, u.remote.at, typeJSON))); err == nil {
		discard(resp)
	}
}

var _ bridge.Upstream = (*streamable)(nil)
