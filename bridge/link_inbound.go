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
	if l.cfg.Want == mcp.Modern {
		l.askModern(c, m)
		return
	}
	feature, id := featureOf(m), m.Bytes(m.ID)
	for ex := l.askee(c, feature); ex != nil; ex = l.askee(c, feature) {
		if c.Question(id, ex, ex.Session) {
			ex.Session.Ask(c, m, ex.Sink)
			return
		}
	}
	if l.parks(c) { // a link that clients of both eras share
		l.askModern(c, m)
		return
	}
	if s := l.sole(); s != nil {
		c.Question(id, nil, s)
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

// askee returns the running call a question of the server is put to, nil if there is none or it would be a guess between
// principals (SEC-08).
func (l *Link) askee(c *Conn, feature string) *Exchange {
	var who Principal
	guess := false
	fits := func(e *Exchange) bool {
		return e.Session != nil && e.Traits.MayAsk && (l.cfg.Exclusive || feature != "" && e.Session.Declares(feature))
	}
	if ex := c.Origin(); ex != nil && fits(ex) { // it came on the stream of that call
		return ex
	}
	ex, n := c.Youngest(func(e *Exchange) bool {
		if !fits(e) {
			return false
		}
		guess = guess || who != "" && who != e.Principal
		who = e.Principal
		return true
	})
	if !l.cfg.Exclusive && (guess || n > 1 && who == Anonymous) {
		return nil
	}
	return ex
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
	case m.MethodIs(mcp.ElicitationComplete) && !l.cfg.Exclusive:
		if id, ok := framing.String(m.Bytes(m.Param("elicitationId"))); ok && l.cfg.Elicited != nil {
			l.cfg.Elicited(id)
		}
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
	l.updatedHeld(f, uri)
}

// updatedHeld gives a resource update to the sessions that hold the URI or one above it.
func (l *Link) updatedHeld(f framing.Frame, uri string) {
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

// logMessage gives a log message to the one request it can belong to if that admits it, one that belongs to none to the
// sessions whose level admits it, else to the bridge's own log; it never guesses one onto a modern stream (translation 9,
// LOG-01, LOG-02, LOG-09).
func (l *Link) logMessage(c *Conn, m *framing.Message) {
	level, _ := framing.String(m.Bytes(m.Param("level")))
	at := mcp.ParseLevel(level)
	switch ex := l.logOwner(c); {
	case ex != nil && l.admits(ex, at):
		ex.Sink.Notify(framing.Whole(m.Raw), "")
	case ex == nil && l.deliverLog(m, at):
	default:
		l.cfg.Events.emit(Event{Server: l.cfg.Name, Kind: EventServerLog, Detail: string(m.Bytes(m.Params))})
	}
}

// logOwner returns the request a log message belongs to: the only one that runs; on an exclusive link the youngest; among
// several of one principal the only one that wants messages at all, as long as none is a session's (translation 9.1, 9.3).
func (l *Link) logOwner(c *Conn) *Exchange {
	if ex := c.Origin(); ex != nil {
		return ex
	}
	var who Principal
	var wants *Exchange
	levels, guess := 0, false
	ex, n := c.Youngest(func(e *Exchange) bool {
		guess = guess || e.Session != nil || e.Principal == Anonymous || who != "" && who != e.Principal
		who = e.Principal
		if e.level() != mcp.NoLevel {
			wants = e
			levels++
		}
		return true
	})
	switch {
	case n == 1 || l.cfg.Exclusive:
		return ex
	case levels == 1 && !guess:
		return wants
	}
	return nil
}

func (l *Link) admits(ex *Exchange, at mcp.Level) bool {
	if ex.Era == mcp.Modern {
		level := ex.level()
		return level != mcp.NoLevel && at >= level
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
		if _, ok := s.(*Listener); ok {
			continue // LOG-02
		}
		if l.cfg.Exclusive || l.sessionAdmits(s, at) {
			s.Notify(framing.Whole(m.Raw), "")
			sent = true
		}
	}
	return sent
}

func (l *Link) withdraw(c *Conn, m *framing.Message) {
	id := m.Bytes(m.Param("requestId"))
	if !c.forgetQuestion(id) {
		return
	}
	c.withdrawHeld(id)
	c.withdrawModern(id)
	for _, s := range l.attached() {
		s.Withdraw(c, m, id)
	}
}

// other passes a notification the bridge does not know: between legacy peers of an exclusive link always, from a modern
// server only while exactly one request is open that it can be about (translation 3.3). Elsewhere nobody can be given it.
func (l *Link) other(c *Conn, m *framing.Message) {
	s := l.sole()
	modern := c.Facts().Era == mcp.Modern
	ex, n := c.Youngest(func(e *Exchange) bool { return modern || s != nil && e.Session == s })
	if origin := c.Origin(); origin != nil && (modern || s != nil && origin.Session == s) {
		ex, n = origin, 1
	}
	switch {
	case n == 1:
		ex.Sink.Notify(framing.Whole(m.Raw), "")
	case s != nil && !modern:
		s.Notify(framing.Whole(m.Raw), "")
	default:
		l.cfg.Events.emit(Event{Server: l.cfg.Name, Kind: EventDropped, Detail: m.MethodName()})
	}
}
