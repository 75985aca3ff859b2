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

const (
	// watchGather is how long resources that are subscribed to one after the other are gathered for one listen (translation 8.3).
	watchGather = 50 * time.Millisecond
	// watchAck is how long a modern server may take to acknowledge a listen.
	watchAck = 5 * time.Second
	// watchPause is the wait after a server has ended a listen in good order, for the legacy clients cannot know (translation 8.3).
	watchPause = 30 * time.Second
	// Waits between tries of a listen that was lost (SUB-11).
	watchMin, watchMax = time.Second, 30 * time.Second
)

// watch is the listen a link keeps at its modern server for its legacy sessions (translation 8.3). One goroutine, which is there while
// somebody wants to hear of changes, opens it, and another when more is wanted. At a remote server the new one is there before the
// old one ends. A server over stdio has one at a time, and what may have been missed between is told: servers of the official Go
// SDK keep but the newest listen of a connection, and forget it with an earlier one.
//
//	                      wanted, or more wanted            acknowledged
//	nothing ─▶ gathering ─────────────────────▶ opening ──────────────────▶ listening
//	              ▲                                │ refused, lost             │ lost, ended, server replaced
//	              └──────────────── pausing ◀──────┴───────────────────────────┘
//
// All fields but kick are guarded by the link's lock.
type watch struct {
	kick    chan struct{} // full when there may be something to do
	running bool
	lists   bool // changes of lists are wanted
	missed  bool // something may have happened that no listen told of
	pending map[string][]watchWaiter
	refused *Conn // the connection that has no listens
}

// watchWaiter is a session that waits to be subscribed to a resource.
type watchWaiter struct {
	session Session
	done    chan *Error // buffered
}

// upstreamListen is one listen at a modern server.
type upstreamListen struct {
	conn     *Conn
	call     *call
	want     era.Listen
	acked    chan struct{}
	honoured era.Listen // before acked is closed, of the reading goroutine alone
	deliver  func(*framing.Message)
}

// listen opens a listen of the bridge's own.
func (c *Conn) listen(ctx context.Context, want era.Listen, deliver func(*framing.Message)) (*upstreamListen, error) {
	u := &upstreamListen{conn: c, want: want, acked: make(chan struct{}), deliver: deliver}
	u.call = &call{reply: make(chan *framing.Message, 1), started: time.Now(), endless: true, listen: u}
	u.call.stage.Store(sent)
	if err := c.add(u.call); err != nil {
		return nil, err
	}
	params := OwnParams(c.facts.Version, `"notifications":`+string(want.Filter()))
	if err := c.send(ctx, ownRequest(u.call.id, mcp.Listen, params), u.call); err != nil {
		c.drop(u.call)
		return nil, c.ownError(err)
	}
	return u, nil
}

// note takes what the server sends for the listen.
func (u *upstreamListen) note(m *framing.Message) {
	select {
	case <-u.acked:
		u.deliver(m)
	default:
		if m.MethodIs(mcp.Acknowledged) {
			u.honoured, _ = era.ReadListen(m)
			close(u.acked)
		}
	}
}

// close ends the listen.
func (u *upstreamListen) close() {
	if u != nil && u.conn.drop(u.call) {
		u.conn.tellCancelled(u.call.id, nil)
	}
}

// covers reports whether the listen tells of all that is wanted, as far as the server is willing to.
func (u *upstreamListen) covers(c *Conn, want era.Listen) bool {
	if u == nil || u.conn != c || want.Changes&^u.honoured.Changes&^u.want.Changes != 0 {
		return false
	}
	return !slices.ContainsFunc(want.URIs, func(uri []byte) bool { return !u.want.HasURI(uri) })
}

// Changes tells that a session wants to hear of changes. Before a legacy server, which tells them unasked, it does nothing.
func (l *Link) Changes() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch.lists = true
	l.watchLocked()
}

// watchLocked has the goroutine look at what is wanted, and starts it if there is something.
func (l *Link) watchLocked() {
	w := &l.watch
	if w.kick == nil {
		w.kick = make(chan struct{}, 1)
	}
	select {
	case w.kick <- struct{}{}:
	default:
	}
	if !w.running && !l.closed && l.conn != nil && l.conn.facts.Era == mcp.Modern && (w.lists || len(w.pending) > 0 || l.heldLocked()) {
		w.running = true
		l.wg.Go(l.keepWatch)
	}
}

// subscribeUpstream subscribes a session to a resource of a modern server.
func (l *Link) subscribeUpstream(ctx context.Context, c *Conn, s Session, uri string) *Error {
	if !era.HasCapability(c.facts.Discovery.Capabilities, "resources", "subscribe") {
		return &Error{Code: mcp.CodeMethodNotFound, Reason: ReasonNotCarried, Message: "server " + l.cfg.Name + " does not tell of changes of resources"}
	}
	l.mu.Lock()
	who, held := l.state.subs[uri]
	switch {
	case held:
		if !slices.Contains(who, s) && slices.Contains(l.sessions, s) {
			l.state.subs[uri] = append(who, s)
		}
		l.mu.Unlock()
		return nil
	case len(l.state.subs)+len(l.watch.pending) >= l.cfg.Limits.Subscriptions:
		l.mu.Unlock()
		return &Error{Code: mcp.CodeInternal, Reason: ReasonOverload, Message: "too many resource subscriptions on server " + l.cfg.Name}
	}
	w := watchWaiter{s, make(chan *Error, 1)}
	if l.watch.pending == nil {
		l.watch.pending = map[string][]watchWaiter{}
	}
	l.watch.lists = true
	l.watch.pending[uri] = append(l.watch.pending[uri], w)
	l.watchLocked()
	l.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return unanswered(l.cfg.Name, context.Cause(ctx))
	}
}

// keepWatch is the goroutine of a watch.
func (l *Link) keepWatch() {
	var now *upstreamListen
	wait := watchMin
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		var ended <-chan *framing.Message
		if now != nil {
			ended = now.call.reply
		}
		select {
		case <-l.watch.kick:
		case <-pause.C:
		case m, graceful := <-ended:
			now = nil
			l.missChanges()
			if graceful && m.Kind == framing.Result {
				pause.Reset(watchPause)
			} else {
				pause.Reset(wait)
				wait = min(2*wait, watchMax)
			}
			continue
		case <-l.ctx.Done():
			l.settleWatch(nil, l.stopped())
			return
		}
		if !l.gather() {
			continue
		}
		c, want, over := l.watchWants()
		if over {
			now.close()
			return
		}
		if c == nil || now.covers(c, want) {
			l.settleWatch(now, nil)
			continue
		}
		if now != nil && now.conn == c && !l.cfg.Remote {
			now.close()
			now = nil
			l.missChanges()
		}
		next, err := l.openWatch(c, want)
		if err != nil {
			if again := l.watchFailed(c, err); again {
				pause.Reset(wait)
				wait = min(2*wait, watchMax)
			}
			continue
		}
		if now != nil && now.conn == c {
			now.close()
		}
		now, wait = next, watchMin
		l.settleWatch(now, nil)
		l.tellMissed(c)
	}
}

// gather waits a moment for more to be wanted. It reports false when the link is closed.
func (l *Link) gather() bool {
	t := time.NewTimer(watchGather)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// watchWants returns the connection to listen at, nil if there is none now, and what for. over tells that nobody wants
// anything any more, and that the goroutine has been taken off.
func (l *Link) watchWants() (c *Conn, want era.Listen, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c = l.conn
	if l.closed || !l.watch.lists && len(l.watch.pending) == 0 && !l.heldLocked() || c != nil && c.facts.Era != mcp.Modern {
		l.watch.running = false
		return nil, want, true
	}
	if c == nil || c == l.watch.refused {
		return nil, want, false
	}
	want.Changes = era.ChangesOf(c.facts.Discovery.Capabilities)
	for uri, who := range l.state.subs {
		if len(who) > 0 {
			want.URIs = append(want.URIs, []byte(uri))
		}
	}
	for uri := range l.watch.pending {
		want.URIs = append(want.URIs, []byte(uri))
	}
	slices.SortFunc(want.URIs, slices.Compare)
	return c, want, false
}

var errWatchLost = errors.New("the server ended the listen")

// watchRefusal is a server's own error to a listen.
type watchRefusal struct{ message *framing.Message }

func (r watchRefusal) Error() string {
	return "server refuses to tell of changes: " + string(r.message.Bytes(r.message.Error))
}

// openWatch opens a listen and waits for its acknowledgement.
func (l *Link) openWatch(c *Conn, want era.Listen) (*upstreamListen, error) {
	ctx, stop := context.WithTimeout(l.ctx, watchAck)
	defer stop()
	u, err := c.listen(ctx, want, l.changed)
	if err != nil {
		return nil, err
	}
	select {
	case <-u.acked:
		return u, nil
	case m, ok := <-u.call.reply:
		if ok && m.Kind == framing.Error {
			return nil, watchRefusal{m}
		}
		return nil, errWatchLost
	case <-ctx.Done():
		u.close()
		return nil, context.Cause(ctx)
	}
}

// watchFailed tells those who wait that there is no listen. again tells that it may be tried again.
func (l *Link) watchFailed(c *Conn, err error) (again bool) {
	l.cfg.Events.emit(Event{Server: l.cfg.Name, Kind: EventDropped, Detail: mcp.Listen, Err: err})
	again = c.Err() == nil
	e := unanswered(l.cfg.Name, err)
	if r, ok := errors.AsType[watchRefusal](err); ok {
		e = &Error{Code: mcp.CodeInternal, Reason: ReasonNotCarried, Message: r.Error()}
		if refusalCode(r.message) == "-32601" {
			e.Code, again = mcp.CodeMethodNotFound, false
			l.mu.Lock()
			l.watch.refused = c
			l.mu.Unlock()
		}
	}
	l.settleWatch(nil, e)
	return again
}

func refusalCode(m *framing.Message) string {
	e := m.Bytes(m.Error)
	v, _ := framing.Lookup(e, framing.Members(e, whole(e)), "code")
	if !v.OK() {
		return ""
	}
	return string(e[v.Start:v.End])
}

// settleWatch answers those who wait for a resource: it is in what the server has honoured, or it is not, or err is why.
func (l *Link) settleWatch(u *upstreamListen, err *Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u == nil && err == nil { // the server is being started, or has no listens
		if l.watch.refused == nil || l.watch.refused != l.conn {
			return
		}
		err = &Error{Code: mcp.CodeMethodNotFound, Reason: ReasonNotCarried, Message: "server " + l.cfg.Name + " does not tell of changes"}
	}
	for uri, waiters := range l.watch.pending {
		outcome := err
		switch {
		case err != nil:
		case u.honoured.HasURI([]byte(uri)):
			l.holdAllLocked(uri, waiters)
		case !u.want.HasURI([]byte(uri)):
			continue // it came too late for this listen
		default:
			outcome = &Error{Code: mcp.CodeInvalidParams, Reason: ReasonNotCarried, Data: []byte(`"uri":` + uri),
				Message: "server " + l.cfg.Name + " did not accept the subscription"}
		}
		for _, w := range waiters {
			w.done <- outcome
		}
		delete(l.watch.pending, uri)
	}
}

// holdAllLocked enters the first holders of a resource, those that are still there.
func (l *Link) holdAllLocked(uri string, waiters []watchWaiter) {
	var who []Session
	for _, w := range waiters {
		if slices.Contains(l.sessions, w.session) && !slices.Contains(who, w.session) {
			who = append(who, w.session)
		}
	}
	l.state.subs[uri] = who
}

// changed delivers what a listen tells: to legacy clients without the subscription id (translation 8.3).
func (l *Link) changed(m *framing.Message) {
	f := framing.Rewrite(m.Raw, era.SubscriptionEdits(m, nil))
	switch {
	case m.MethodIs(mcp.ResourcesUpdated):
		l.updatedHeld(f, string(m.Bytes(m.Param("uri"))))
	case m.MethodIs(mcp.ToolsListChanged), m.MethodIs(mcp.PromptsListChanged), m.MethodIs(mcp.ResourcesListChanged):
		l.broadcast(f, m.MethodName())
	default:
		l.cfg.Events.emit(Event{Server: l.cfg.Name, Kind: EventDropped, Detail: m.MethodName()})
	}
}

// missChanges notes that from here on something may happen that nobody hears of.
func (l *Link) missChanges() {
	l.mu.Lock()
	l.watch.missed = true
	l.mu.Unlock()
}

// tellMissed tells the sessions that anything may have changed while there was no listen (SUB-16).
func (l *Link) tellMissed(c *Conn) {
	l.mu.Lock()
	missed := l.watch.missed
	l.watch.missed = false
	var uris []string
	for uri, who := range l.state.subs {
		if len(who) > 0 {
			uris = append(uris, uri)
		}
	}
	l.mu.Unlock()
	if missed {
		l.tellAll(c, uris)
	}
}

// tellAll tells that the lists of a server may have changed, and these resources.
func (l *Link) tellAll(c *Conn, uris []string) {
	for _, method := range ListChanges(c.Facts().Capabilities()) {
		l.broadcast(framing.Whole([]byte(`{"jsonrpc":"2.0","method":"`+method+`"}`)), method)
	}
	for _, uri := range uris {
		l.updatedHeld(framing.Whole([]byte(`{"jsonrpc":"2.0","method":"`+mcp.ResourcesUpdated+`","params":{"uri":`+uri+`}}`)), uri)
	}
}

// listensTools reports whether a listen is open that tells of changes of tools: the catalog learns from any (STD-09).
func (c *Conn) listensTools() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.calls {
		switch {
		case k.listen != nil && k.listen.want.Changes.Has(mcp.ToolsListChanged):
			return true
		case k.ex != nil && k.endless:
			if filter, err := era.ReadListen(k.ex.Message); err == nil && filter.Changes.Has(mcp.ToolsListChanged) {
				return true
			}
		}
	}
	return false
}
