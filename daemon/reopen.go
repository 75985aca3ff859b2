package daemon

import (
	"context"
	"errors"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/session"
	"mcpbridge/framing"
)

// errOtherVersion is the end of a session whose server now speaks another revision (design section 8): the client starts over.
var errOtherVersion = errors.New("the server negotiates another revision than when the session began")

// reopen gives a session of an earlier run, or of another replica, a link: the handshake is replayed, then what the session
// had established (design decisions 6 and 7).
func (e *endpoint) reopen(ctx context.Context, s *session.Session) *bridge.Error {
	link, err := e.sessionLink(s.Principal(), s.Capabilities(), s.InitParams(), true)
	if err != nil {
		return err
	}
	s.Bind(link, e.exclusive())
	e.seed(s, link)
	link.Attach(s)
	conn, err := link.Conn(ctx)
	if err != nil {
		e.leave(s)
		return err
	}
	if v, _ := e.hello(conn.Facts(), string(s.Version())); v != s.Version() {
		e.leave(s)
		return (&bridge.Error{Status: 404, Code: mcp.CodeInvalidRequest, Reason: bridge.ReasonSessionUnknown,
			Message: "the server speaks another revision now; send initialize again"}).Because(errOtherVersion)
	}
	if !e.exclusive() {
		e.join(ctx, s, link, conn)
	}
	e.log.log.Info().Str("session", s.Short()).Msg("session goes on with a new link")
	return nil
}

// seed tells a session's own link what to establish when it is opened.
func (e *endpoint) seed(s *session.Session, link *bridge.Link) {
	if !e.exclusive() {
		return
	}
	link.NoteLevel(s.Level())
	for _, uri := range s.Subscriptions() {
		link.NoteSubscription(s, []byte(uri), true)
	}
}

// join establishes on a shared link what a session had, and tells its client that lists may have changed: nobody knows what
// happened while the bridge was away.
func (e *endpoint) join(ctx context.Context, s *session.Session, link *bridge.Link, conn *bridge.Conn) {
	if level := s.Level(); level != mcp.NoLevel {
		link.SetSessionLevel(ctx, conn, s, level)
	}
	for _, uri := range s.Subscriptions() {
		if _, err := link.Subscribe(ctx, conn, s, []byte(uri)); err == nil {
			s.Notify(framing.Whole([]byte(`{"jsonrpc":"2.0","method":"`+mcp.ResourcesUpdated+`","params":{"uri":`+uri+`}}`)), mcp.ResourcesUpdated+" "+uri)
		}
	}
	for _, method := range bridge.ListChanges(conn.Facts().Capabilities()) {
		s.Notify(framing.Whole([]byte(`{"jsonrpc":"2.0","method":"`+method+`"}`)), method)
	}
}
