package daemon

import (
	"context"
	"sync"
	"sync/atomic"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/front"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/parked"
	"mcpbridge/bridge/pool"
	"mcpbridge/bridge/session"
	"mcpbridge/config"
	"mcpbridge/framing"
	"mcpbridge/procman"
	"mcpbridge/telemetry"
)

// endpoint joins what belongs to one configured server: its links and its legacy sessions. It implements front.Endpoint.
type endpoint struct {
	name      string
	path      string // the name as it stands in a URL
	cfg       *config.Server
	isolation string
	pool      *pool.Pool
	sessions  *session.Store
	opening   func(era.Profile) []byte // initialize params of links that no single client's handshake can stand for
	breaker   *procman.Breaker
	pinned    mcp.Era       // era the configuration says the server speaks
	verdict   *back.Verdict // of a local server
	remote    *back.Remote  // nil of a local server
	parked    *parked.Table
	missing   func() error // why the command cannot be started, nil if it can
	log       *serverLogger
	file      *telemetry.ServerLog // nil if none is kept

	leaving  chan struct{} // closed when no new work is taken
	once     sync.Once
	jobs     sync.WaitGroup
	stopJobs context.CancelFunc
	inflight gate
	calls    atomic.Int64
	failed   atomic.Int64
	restarts atomic.Int64
	lastExit atomic.Pointer[ending]
}

var _ front.Endpoint = (*endpoint)(nil)

// Name implements front.Endpoint.
func (e *endpoint) Name() string { return e.name }

// Modern implements front.Endpoint. A modern client has no session: its principal is what links are told apart by
// (design decision 4, META-07).
func (e *endpoint) Modern(p bridge.Principal, capabilities []byte) (*bridge.Link, func(), *bridge.Error) {
	profile := e.profile(capabilities)
	k := e.key(mcp.Modern, p, profile)
	switch {
	case e.isolation == config.IsolationRequest:
	case e.isModern(k): // it is told with each request what the client can do
		l, err := e.pool.Any(k, e.opening(profile))
		return l, func() {}, err
	default:
		l, err := e.pool.Shared(k, e.opening(profile))
		return l, func() {}, err
	}
	l, err := e.pool.Single(k, e.opening(profile))
	if err != nil {
		return nil, nil, err
	}
	return l, func() { e.pool.Release(l) }, nil
}

// isModern reports whether the server runs and speaks modern to those who share a link of this kind.
func (e *endpoint) isModern(k pool.Key) bool {
	for _, l := range e.pool.Group(k) {
		if c := l.Live(); c != nil && c.Facts().Era == mcp.Modern {
			return true
		}
	}
	return false
}

// Running implements front.Endpoint.
func (e *endpoint) Running(p bridge.Principal) []*bridge.Link {
	if e.isolation == config.IsolationRequest {
		return e.pool.Singles(p)
	}
	return e.pool.Group(e.key(mcp.Modern, p, 0))
}

// profile is what a link is to declare for a modern client with these capabilities (translation 14.3).
func (e *endpoint) profile(capabilities []byte) (p era.Profile) {
	features := e.cfg.Profile
	switch {
	case e.cfg.OverDeclare:
		features = config.ProfileAll()
	case features == nil:
		return era.ProfileOf(capabilities)
	}
	for _, name := range features {
		p |= featureProfiles[name]
	}
	return p
}

var featureProfiles = map[string]era.Profile{
	config.FeatureForm: era.ElicitForm, config.FeatureURL: era.ElicitURL, config.FeatureRoots: era.Roots,
	config.FeatureSampling: era.Sampling, config.FeatureSamplingTools: era.Sampling | era.SamplingTools,
}

// key is what tells shared links apart (design section 8, link identity).
func (e *endpoint) key(want mcp.Era, p bridge.Principal, profile era.Profile) pool.Key {
	if e.pinned != mcp.EraUnknown { // clients of both eras are served in the one the server is known to speak
		want = e.pinned
	}
	k := pool.Key{Era: want, Principal: p, Profile: profile}
	if e.isolation == config.IsolationShared {
		k.Principal = ""
	}
	return k
}

// exclusive reports whether a legacy session gets a link of its own. Isolation by request exists for modern clients only:
// what a session says has to reach one process (translation 14.2).
func (e *endpoint) exclusive() bool {
	return e.isolation != config.IsolationShared && e.isolation != config.IsolationPrincipal
}

// OpenSession implements front.Endpoint.
func (e *endpoint) OpenSession(ctx context.Context, p bridge.Principal, o era.Opening, params []byte) (front.Session, []byte, *bridge.Error) {
	if err := e.sessions.Reserve(); err != nil {
		return nil, nil, err
	}
	params = legacyVersion(o, params)
	link, err := e.sessionLink(p, o.Capabilities, params, false)
	if err != nil {
		return nil, nil, err
	}
	s := e.sessions.New(p, link, e.exclusive())
	link.Attach(s)
	conn, err := link.Conn(ctx)
	if err != nil {
		e.leave(s)
		return nil, nil, err
	}
	version, result := e.hello(conn.Facts(), o.Requested)
	h := session.Hello{Version: version, ClientInfo: o.ClientInfo, Capabilities: o.Capabilities, Params: params,
		Server: session.Digest(conn.Facts().Capabilities())}
	if err := e.sessions.Add(s, h); err != nil {
		e.leave(s)
		return nil, nil, err
	}
	return s, result, nil
}

func (e *endpoint) sessionLink(p bridge.Principal, capabilities, params []byte, reopened bool) (*bridge.Link, *bridge.Error) {
	if e.exclusive() {
		return e.pool.Exclusive(params, reopened)
	}
	profile := era.ProfileOf(capabilities)
	return e.pool.Shared(e.key(mcp.Legacy, p, profile), e.opening(profile))
}

// legacyVersion makes sure that a client which asks for a revision without handshake does not get one from a server that
// speaks both eras (VER-43).
func legacyVersion(o era.Opening, params []byte) []byte {
	v := mcp.NegotiateLegacy(o.Requested)
	if string(v) == o.Requested {
		return params
	}
	all := framing.Span{End: uint32(len(params))}
	return framing.Rewrite(params, framing.EditObject(nil, params, all, framing.Members(params, all),
		framing.Op{Name: "protocolVersion", Value: []byte(`"` + string(v) + `"`)})).Bytes()
}

// hello is the answer to a client's handshake: the server's own where the link is the session's, one made from what is
// known of the server otherwise (translation 2.1, 2.3, VER-41).
func (e *endpoint) hello(f *bridge.Facts, requested string) (mcp.Version, []byte) {
	if f.Era == mcp.Modern {
		v := mcp.NegotiateLegacy(requested)
		return v, f.Discovery.InitializeResult(v, e.name)
	}
	if e.exclusive() {
		return f.Version, f.HelloRaw
	}
	v := mcp.NegotiateLegacy(requested)
	return v, f.Hello.InitializeResult(v, e.name)
}

// FindSession implements front.Endpoint.
func (e *endpoint) FindSession(ctx context.Context, id string, p bridge.Principal) (front.Session, *bridge.Error) {
	s := e.sessions.Find(id, p)
	if s == nil {
		var err *bridge.Error
		if s, err = e.sessions.Reopen(ctx, id, p, e.reopen); s == nil {
			return nil, err
		}
	}
	return s, nil
}

// EndSession implements front.Endpoint.
func (e *endpoint) EndSession(id string, p bridge.Principal) bool { return e.sessions.Delete(id, p) }

// leave takes a session that has ended off its link, and ends the link with it if it was the session's own.
func (e *endpoint) leave(s *session.Session) {
	s.Link().Detach(s)
	e.pool.Release(s.Link())
}
