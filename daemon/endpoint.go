package daemon

import (
	"context"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/front"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/pool"
	"mcpbridge/bridge/session"
	"mcpbridge/config"
	"mcpbridge/framing"
)

// endpoint joins what belongs to one configured server: its links and its legacy sessions. It implements front.Endpoint.
type endpoint struct {
	name      string
	isolation string
	pool      *pool.Pool
	sessions  *session.Store
	opening   []byte // initialize params of the bridge's own, for links that no single client's handshake can stand for
}

var _ front.Endpoint = (*endpoint)(nil)

// Name implements front.Endpoint.
func (e *endpoint) Name() string { return e.name }

// Modern implements front.Endpoint. A modern client has no session: its principal is what links are told apart by
// (design decision 4, META-07).
func (e *endpoint) Modern(p bridge.Principal) (*bridge.Link, *bridge.Error) {
	return e.pool.Shared(e.key(mcp.Modern, p), e.opening)
}

func (e *endpoint) key(want mcp.Era, p bridge.Principal) pool.Key {
	k := pool.Key{Era: want, Principal: p}
	if e.isolation == config.IsolationShared {
		k.Principal = ""
	}
	return k
}

// OpenSession implements front.Endpoint.
func (e *endpoint) OpenSession(ctx context.Context, p bridge.Principal, o era.Opening, params []byte) (front.Session, []byte, *bridge.Error) {
	if err := e.sessions.Reserve(); err != nil {
		return nil, nil, err
	}
	exclusive := e.isolation != config.IsolationShared && e.isolation != config.IsolationPrincipal
	link, err := e.sessionLink(p, o, params, exclusive)
	if err != nil {
		return nil, nil, err
	}
	s := e.sessions.New(p, link, exclusive)
	link.Attach(s)
	conn, err := link.Conn(ctx)
	if err != nil {
		e.leave(s)
		return nil, nil, err
	}
	version, result := e.hello(conn.Facts(), o, exclusive)
	if err := e.sessions.Add(s, session.Hello{Version: version, ClientInfo: o.ClientInfo, Capabilities: o.Capabilities}); err != nil {
		e.leave(s)
		return nil, nil, err
	}
	return s, result, nil
}

func (e *endpoint) sessionLink(p bridge.Principal, o era.Opening, params []byte, exclusive bool) (*bridge.Link, *bridge.Error) {
	if exclusive {
		return e.pool.Exclusive(legacyVersion(o, params))
	}
	return e.pool.Shared(e.key(mcp.Legacy, p), e.opening)
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
func (e *endpoint) hello(f *bridge.Facts, o era.Opening, exclusive bool) (mcp.Version, []byte) {
	if f.Era == mcp.Modern {
		v, d := mcp.NegotiateLegacy(o.Requested), f.Discovery
		d.Capabilities = era.WithoutChanges(d.Capabilities)
		return v, d.InitializeResult(v, e.name)
	}
	if exclusive {
		return f.Version, f.HelloRaw
	}
	v := mcp.NegotiateLegacy(o.Requested)
	return v, f.Hello.InitializeResult(v, e.name)
}

// FindSession implements front.Endpoint.
func (e *endpoint) FindSession(id string, p bridge.Principal) (front.Session, bool) {
	s := e.sessions.Find(id, p)
	if s == nil {
		return nil, false
	}
	return s, true
}

// EndSession implements front.Endpoint.
func (e *endpoint) EndSession(s front.Session) {
	if s, ok := s.(*session.Session); ok {
		e.sessions.Remove(s)
	}
}

// leave takes a session that has ended off its link, and ends the link with it if it was the session's own.
func (e *endpoint) leave(s *session.Session) {
	s.Link().Detach(s)
	e.pool.Release(s.Link())
}
