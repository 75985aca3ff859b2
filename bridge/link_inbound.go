package bridge

import (
	"slices"
	"strings"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// ServerRequest takes a request of a legacy server to its client. On an exclusive link it is the session's; on a shared one
// it goes to the youngest running call whose client declared the feature, which costs presentation only, since the answer
// returns by id (translation 5.10). What nobody can be asked is refused at once, so that the server is not held up.
func (l *Link) ServerRequest(c *Conn, m *framing.Message) {
	feature := featureOf(m)
	asker := func(e *Exchange) bool {
		return e.Session != nil && e.Traits.MayAsk && (l.cfg.Exclusive || feature != "" && e.Session.Declares(feature))
	}
	id := m.Bytes(m.ID)
	if ex, _ := c.Youngest(asker); ex != nil {
		c.Question(id, ex)
		ex.Session.Ask(c, m, ex.Sink)
		return
	}
	if s := l.sole(); s != nil {
		c.Question(id, nil)
		s.Ask(c, m, nil)
		return
	}
	switch {
	case feature == "":
		c.Refuse(m, mcp.CodeMethodNotFound, "the client side of the bridge has no method "+m.MethodName())
	default:
		c.Refuse(m, mcp.CodeMethodNotFound, feature+" was not declared by the client of this request")
	}
}

// featureOf names the client feature a server's request needs, "" for a method nobody knows.
func featureOf(m *framing.Message) string {
	switch {
	case m.MethodIs(mcp.ElicitationCreate):
		return "elicitation"
	case m.MethodIs(mcp.SamplingCreateMessage):
		return "sampling"
	case m.MethodIs(mcp.RootsList):
		return "roots"
	}
	return ""
}

// sole returns the session of an exclusive link.
func (l *Link) sole() Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.cfg.Exclusive || len(l.sessions) != 1 {
		return nil
	}
	return l.sessions[0]
}

// ServerNotification takes a notification that names no request of ours.
func (l *Link) ServerNotification(c *Conn, m *framing.Message) {
	switch {
	case m.MethodIs(mcp.ToolsListChanged):
		l.catalog.expire()
		l.listChanged(c, m)
	case m.MethodIs(mcp.PromptsListChanged), m.MethodIs(mcp.ResourcesListChanged):
		l.listChanged(c, m)
	case m.MethodIs(mcp.ResourcesUpdated):
		if c.Facts().Era == mcp.Legacy {
			l.updated(framing.Whole(m.Raw), string(m.Bytes(m.Param("uri"))))
		}
	case m.MethodIs(mcp.LogMessage):
		l.logMessage(c, m)
	case m.MethodIs(mcp.Cancelled):
		l.withdraw(c, m)
	default:
		l.other(c, m)
	}
}

func (l *Link) listChanged(c *Conn, m *framing.Message) {
	if c.Facts().Era == mcp.Legacy {
		l.broadcast(framing.Whole(m.Raw), m.MethodName())
	}
}

func (l *Link) broadcast(f framing.Frame, key string) {
	for _, s := range l.attached() {
		s.Notify(f, key)
	}
}

func (l *Link) attached() []Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sessions)
}

// updated gives a resource update to the sessions that hold the URI or one above it; on an exclusive link to its session
// whatever it holds (SUB-15, design section 8).
func (l *Link) updated(f framing.Frame, uri string) {
	if s := l.sole(); s != nil {
		s.Notify(f, mcp.ResourcesUpdated+" "+uri)
		return
	}
	var who []Session
	l.mu.Lock()
	for held, sessions := range l.state.subs {
		if !below(uri, held) {
			continue
		}
		for _, s := range sessions {
			if !slices.Contains(who, s) {
				who = append(who, s)
			}
		}
	}
	l.mu.Unlock()
	for _, s := range who {
		s.Notify(f, mcp.ResourcesUpdated+" "+uri)
	}
	if len(who) == 0 {
		l.cfg.Events.emit(Event{Server: l.cfg.Name, Kind: EventDropped, Detail: mcp.ResourcesUpdated})
	}
}

// below reports whether the raw URI uri is held itself or lies below it, path segment by path segment.
func below(uri, held string) bool {
	if uri == held {
		return true
	}
	if len(held) < 2 {
		return false
	}
	prefix := held[:len(held)-1] // without the closing quote
	if !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	return strings.HasPrefix(uri, prefix)
}

// logMessage gives a log message to the one request it can belong to, else to the sessions of a shared link whose level
// admits it, else to the bridge's own log; it never guesses one onto a modern stream (translation 9, LOG-01, LOG-02,
// LOG-09).
func (l *Link) logMessage(c *Conn, m *framing.Message) {
	level, _ := framing.String(m.Bytes(m.Param("level")))
	at := mcp.ParseLevel(level)
	ex, n := c.Youngest(func(*Exchange) bool { return true })
	if n > 1 && !l.cfg.Exclusive {
		ex, n = c.Youngest(func(e *Exchange) bool { return e.Level != mcp.NoLevel && e.Level <= at })
	}
	switch {
	case ex != nil && (n == 1 || l.cfg.Exclusive) && l.admits(ex, at):
		ex.Sink.Notify(framing.Whole(m.Raw), "")
	case l.deliverLog(m, at):
	default:
		l.cfg.Events.emit(Event{Server: l.cfg.Name, Kind: EventServerLog, Detail: string(m.Bytes(m.Params))})
	}
}

func (l *Link) admits(ex *Exchange, at mcp.Level) bool {
	if ex.Era == mcp.Modern {
		return ex.Level != mcp.NoLevel && at >= ex.Level
	}
	return l.cfg.Exclusive || l.sessionAdmits(ex.Session, at)
}

func (l *Link) sessionAdmits(s Session, at mcp.Level) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	want, set := l.state.levels[s]
	return !set || at >= want
}

func (l *Link) deliverLog(m *framing.Message, at mcp.Level) bool {
	sent := false
	for _, s := range l.attached() {
		if l.cfg.Exclusive || l.sessionAdmits(s, at) {
			s.Notify(framing.Whole(m.Raw), "")
			sent = true
		}
	}
	return sent
}

func (l *Link) withdraw(c *Conn, m *framing.Message) {
	id := m.Bytes(m.Param("requestId"))
	if c.Facts().Era == mcp.Modern || len(id) == 0 {
		return
	}
	for _, s := range l.attached() {
		s.Withdraw(c, m, id)
	}
}

// other passes a notification the bridge does not know between legacy peers of an exclusive link; elsewhere nobody can
// be given it (translation 3.3).
func (l *Link) other(c *Conn, m *framing.Message) {
	s := l.sole()
	if s == nil || c.Facts().Era != mcp.Legacy {
		l.cfg.Events.emit(Event{Server: l.cfg.Name, Kind: EventDropped, Detail: m.MethodName()})
		return
	}
	if ex, n := c.Youngest(func(e *Exchange) bool { return e.Session == s }); n == 1 {
		ex.Sink.Notify(framing.Whole(m.Raw), "")
		return
	}
	s.Notify(framing.Whole(m.Raw), "")
}
