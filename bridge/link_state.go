package bridge

import (
	"context"
	"slices"
	"time"

	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Initialized tells that the client of an exclusive link has finished its handshake; the first time it is passed on.
func (l *Link) Initialized(ctx context.Context, c *Conn) {
	l.mu.Lock()
	first := !l.initialized && l.cfg.Exclusive
	l.initialized = true
	l.mu.Unlock()
	if first && c.Facts().Era == mcp.Legacy {
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
	l.state.levels[s] = level
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
// server's answer decides; held says that the bridge may answer by itself (translation 8.4).
func (l *Link) Subscribe(ctx context.Context, c *Conn, s Session, uri []byte) (refused *framing.Message, err *Error) {
	l.mu.Lock()
	who, held := l.state.subs[string(uri)]
	full := !held && len(l.state.subs) >= l.cfg.Limits.Subscriptions
	if held && !slices.Contains(who, s) {
		l.state.subs[string(uri)] = append(who, s)
	}
	l.mu.Unlock()
	switch {
	case held:
		return nil, nil
	case full:
		return nil, &Error{Code: mcp.CodeInternal, Reason: ReasonOverload, Message: "too many resource subscriptions on server " + l.cfg.Name}
	}
	m, failed := c.RoundTrip(ctx, mcp.ResourcesSubscribe, append(append([]byte(`{"uri":`), uri...), '}'))
	if failed != nil {
		return nil, terminated(l.cfg.Name, failed)
	}
	if m.Kind == framing.Error {
		return m, nil
	}
	l.mu.Lock()
	if !slices.Contains(l.state.subs[string(uri)], s) {
		l.state.subs[string(uri)] = append(l.state.subs[string(uri)], s)
	}
	l.mu.Unlock()
	return nil, nil
}

// Unsubscribe releases a URI for one session; the last holder's release reaches the server.
func (l *Link) Unsubscribe(ctx context.Context, c *Conn, s Session, uri []byte) {
	l.mu.Lock()
	who := slices.DeleteFunc(slices.Clone(l.state.subs[string(uri)]), func(o Session) bool { return o == s })
	last := len(who) == 0 && len(l.state.subs[string(uri)]) > 0
	if last {
		delete(l.state.subs, string(uri))
	} else if len(who) > 0 {
		l.state.subs[string(uri)] = who
	}
	l.mu.Unlock()
	if last {
		_, _ = c.RoundTrip(ctx, mcp.ResourcesUnsubscribe, append(append([]byte(`{"uri":`), uri...), '}'))
	}
}
