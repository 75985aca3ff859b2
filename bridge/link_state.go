package bridge

import (
	"context"
	"errors"
	"slices"
	"time"

	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// restore brings a fresh connection to the state the clients know, and tells them that things may have changed while the
// server was away (STD-05, SUB-16).
func (l *Link) restore(ctx context.Context, c *Conn) {
	if c.Facts().Era != mcp.Legacy {
		return
	}
	l.mu.Lock()
	level := l.state.level
	uris := make([]string, 0, len(l.state.subs))
	for uri, who := range l.state.subs {
		if len(who) == 0 { // it was about to be released
			delete(l.state.subs, uri)
			continue
		}
		uris = append(uris, uri)
	}
	l.mu.Unlock()
	for _, s := range l.listeners() {
		s.narrowed(c.Facts().Capabilities())
	}
	if level != mcp.NoLevel {
		_, _ = c.RoundTrip(ctx, mcp.SetLevel, []byte(`{"level":"`+level.String()+`"}`))
	}
	for _, uri := range uris {
		_, _ = c.RoundTrip(ctx, mcp.ResourcesSubscribe, uriParams(uri))
	}
	l.tellAll(c, uris)
}

// ListChanges names the notifications of changed lists that a server with these raw capabilities may send.
func ListChanges(capabilities []byte) (methods []string) {
	for _, k := range [...]struct{ capability, method string }{
		{"tools", mcp.ToolsListChanged}, {"prompts", mcp.PromptsListChanged}, {"resources", mcp.ResourcesListChanged},
	} {
		if era.HasCapability(capabilities, k.capability, "listChanged") {
			methods = append(methods, k.method)
		}
	}
	return methods
}

// Initialized tells that the client of an exclusive link has finished its handshake. It is passed on to a connection that
// was opened without it, once.
func (l *Link) Initialized(ctx context.Context, c *Conn) {
	l.mu.Lock()
	held := l.held == c
	if held {
		l.held = nil
	}
	l.initialized = true
	l.mu.Unlock()
	if held {
		_ = c.Notify(ctx, mcp.Initialized, nil)
	}
}

// NoteLevel remembers the level an exclusive client set, to be restored on a new connection.
func (l *Link) NoteLevel(level mcp.Level) {
	l.mu.Lock()
	l.state.level = level
	l.mu.Unlock()
}

// NoteSubscription remembers what an exclusive client subscribed to or released; uri is a raw JSON string. Beyond
// Limits.Subscriptions a URI works but is not restored after the server's end.
func (l *Link) NoteSubscription(s Session, uri []byte, on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !on:
		delete(l.state.subs, string(uri))
	case len(l.state.subs) < l.cfg.Limits.Subscriptions:
		l.state.subs[string(uri)] = []Session{s}
	}
}

// SetSessionLevel stores the level of one session of a shared link and gives the server the lowest wanted by any
// (translation 9.3).
func (l *Link) SetSessionLevel(ctx context.Context, c *Conn, s Session, level mcp.Level) {
	l.mu.Lock()
	if slices.Contains(l.sessions, s) { // it may have left meanwhile
		l.state.levels[s] = level
	}
	l.mu.Unlock()
	l.EnsureLevel(ctx, c, level)
}

// EnsureLevel makes a legacy server log at level or below before a request that wants it is sent. It waits at most one
// second for the server's word, then goes on (translation 9.1). A level once lowered stays.
func (l *Link) EnsureLevel(ctx context.Context, c *Conn, level mcp.Level) {
	if level == mcp.NoLevel || c.Facts().Era != mcp.Legacy || !era.HasCapability(c.Facts().Hello.Capabilities, "logging") {
		return
	}
	l.mu.Lock()
	enough := l.state.level != mcp.NoLevel && l.state.level <= level
	if !enough {
		l.state.level = level
	}
	l.mu.Unlock()
	if enough {
		return
	}
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	_, _ = c.RoundTrip(ctx, mcp.SetLevel, []byte(`{"level":"`+level.String()+`"}`))
}

// Subscribe counts a session of a shared link as a holder of a URI. The first holder's request goes to the server and the
// server's answer decides; for a later one the bridge answers by itself (translation 8.4). The server has Limits.Timeout
// to answer (CAN-08).
func (l *Link) Subscribe(ctx context.Context, c *Conn, s Session, uri []byte) (refused *framing.Message, err *Error) {
	ctx, stop := context.WithTimeout(ctx, l.cfg.Limits.Timeout)
	defer stop()
	if c.Facts().Era == mcp.Modern {
		return nil, l.subscribeUpstream(ctx, c, s, string(uri))
	}
	done, failed := l.change(ctx, string(uri))
	if failed != nil {
		return nil, unanswered(l.cfg.Name, failed)
	}
	defer done()
	switch held, full := l.hold(s, string(uri)); {
	case held:
		return nil, nil
	case full:
		return nil, &Error{Code: mcp.CodeInternal, Reason: ReasonOverload, Message: "too many resource subscriptions on server " + l.cfg.Name}
	}
	m, failed := c.RoundTrip(ctx, mcp.ResourcesSubscribe, uriParams(string(uri)))
	if failed != nil {
		return nil, unanswered(l.cfg.Name, failed)
	}
	if m.Kind == framing.Error {
		return m, nil
	}
	if !l.holdNew(s, string(uri)) { // the session has left
		_, _ = c.RoundTrip(ctx, mcp.ResourcesUnsubscribe, uriParams(string(uri)))
	}
	return nil, nil
}

// hold adds a holder to a URI that is held.
func (l *Link) hold(s Session, uri string) (held, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	who, held := l.state.subs[uri]
	if held && !slices.Contains(who, s) && slices.Contains(l.sessions, s) {
		l.state.subs[uri] = append(who, s)
	}
	// Those whose first request is under way count too, this one included.
	return held, !held && len(l.state.subs)+len(l.state.busy) > l.cfg.Limits.Subscriptions
}

// holdNew enters the first holder of a URI, unless that session has left.
func (l *Link) holdNew(s Session, uri string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.sessions, s) {
		return false
	}
	l.state.subs[uri] = []Session{s}
	return true
}

// Unsubscribe releases a URI for one session; the last holder's release reaches the server.
func (l *Link) Unsubscribe(ctx context.Context, c *Conn, s Session, uri []byte) {
	ctx, stop := context.WithTimeout(ctx, l.cfg.Limits.Timeout)
	defer stop()
	l.mu.Lock()
	who := slices.DeleteFunc(slices.Clone(l.state.subs[string(uri)]), func(o Session) bool { return o == s })
	last := len(who) == 0 && len(l.state.subs[string(uri)]) > 0
	if last || len(who) > 0 {
		l.state.subs[string(uri)] = who // also when nobody is left: the server has not been told yet
	}
	l.mu.Unlock()
	if last {
		l.unhold(ctx, c, string(uri))
	}
}

// lingerTime is how long a resource stays subscribed to after its last holder has left, for one who comes back at once
// (translation 8.2).
const lingerTime = 2 * time.Second

// linger releases resources whose last holder has left, after a while and if they are still held by nobody.
func (l *Link) linger(ctx context.Context, uris []string) {
	t := time.NewTimer(lingerTime)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return
	}
	for _, uri := range uris {
		if c := l.Live(); c != nil {
			l.unhold(ctx, c, uri)
		}
	}
}

// unhold tells the server that nobody holds a URI any more, unless somebody does again.
func (l *Link) unhold(ctx context.Context, c *Conn, uri string) {
	done, err := l.change(ctx, uri)
	if err != nil {
		return
	}
	defer done()
	l.mu.Lock()
	again := len(l.state.subs[uri]) > 0
	if !again {
		delete(l.state.subs, uri)
		l.watchLocked()
	}
	l.mu.Unlock()
	if !again && c.Facts().Era == mcp.Legacy {
		_, _ = c.RoundTrip(ctx, mcp.ResourcesUnsubscribe, uriParams(uri))
	}
}

// change lets one at a time tell the server about a URI, so that what it was told last is what holds. Call done when the
// server has answered.
func (l *Link) change(ctx context.Context, uri string) (done func(), err error) {
	mine := make(chan struct{})
	for {
		l.mu.Lock()
		other := l.state.busy[uri]
		if other == nil {
			l.state.busy[uri] = mine
		}
		l.mu.Unlock()
		if other == nil {
			return func() {
				l.mu.Lock()
				delete(l.state.busy, uri)
				l.mu.Unlock()
				close(mine)
			}, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func uriParams(uri string) []byte { return []byte(`{"uri":` + uri + `}`) }

// unanswered is the failure of a request the bridge made for a client.
func unanswered(name string, err error) *Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{Code: mcp.CodeInternal, Reason: ReasonTimeout, Message: "server " + name + " did not answer in time"}
	}
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	return terminated(name, err)
}
