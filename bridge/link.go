package bridge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
)

// Back opens connections to one server, one at a time.
type Back interface {
	// Open starts the server if it does not run and establishes a connection, in the era wanted if the server has it
	// (design decision 17). It returns once the handshake is done.
	Open(ctx context.Context, o OpenOptions) (*Conn, error)
	// Halt ends the server; a later Open starts it anew.
	Halt(ctx context.Context) error
	// Close ends the server for good.
	Close(ctx context.Context) error
}

// OpenOptions say how a connection is to be established.
type OpenOptions struct {
	Want   mcp.Era
	Params []byte // params object of initialize, should the connection be opened in the legacy era
	// HoldInitialized leaves notifications/initialized to the client whose handshake this is (translation 2.3).
	HoldInitialized bool
	Conn            ConnConfig
}

// LinkConfig describes a link.
type LinkConfig struct {
	Name   string // of the server
	Want   mcp.Era
	Params []byte // see OpenOptions
	// Exclusive links belong to one legacy session: messages without an owner are that session's, and nothing is
	// filtered between legacy peers (design section 8).
	Exclusive bool
	// Reopened links serve a session whose client has finished its handshake with an earlier link: the first opening restores
	// what the session established, as a later one does.
	Reopened bool
	// Single links serve one request: nothing is subscribed to on them.
	Single bool
	// Keep has the server opened again by itself when it dies, whether or not somebody listens.
	Keep bool
	// Remote tells that the server is reached over HTTP (translation 12.1).
	Remote bool
	// Profile is what Params declare, for links of modern clients (translation 14.3).
	Profile era.Profile
	// Roots is the raw result of roots/list for servers whose client has none, nil for none.
	Roots []byte
	// Elicited is told the ids of elicitations a legacy server calls complete (CLF-04); nil if nobody wants to know.
	Elicited func(id string)
	Back     Back
	Limits   Limits
	Events   EventFunc
	Mirror   MirrorRules
}

// Link is one running relation to a server. It opens the server when a message needs it, opens it again after it died,
// and then restores what the clients established: the handshake, the log level, the subscriptions (STD-05).
//
//	        Conn            handshake done
//	idle ─────────▶ opening ─────────────▶ live
//	 ▲                 │ failed              │ server ended, Halt
//	 └─────────────────┴─────────────────────┘        Close: any ─▶ closed
type Link struct {
	cfg    LinkConfig
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu          sync.Mutex
	conn        *Conn
	opening     *opening
	sessions    []Session
	reversals   []*reversal // calls that wait for their client's answers
	state       linkState
	opened      int // connections opened so far
	lastUse     time.Time
	closed      bool
	catalog     catalog
	initialized bool // the client of an exclusive link has finished its handshake
	reviving    bool // revive runs
	watch       watch
	held        *Conn // waits for notifications/initialized from that client
}

// linkState is what must be restored on a new connection.
type linkState struct {
	level  mcp.Level                // sent to the server, NoLevel if none was
	levels map[Session]mcp.Level    // wanted by sessions of a shared link
	subs   map[string][]Session     // raw URI -> who subscribed
	busy   map[string]chan struct{} // raw URI -> closed when the server has been told of a change
}

type opening struct {
	done chan struct{}
	conn *Conn
	err  error
}

var errLinkClosed = errors.New("link is closed")

// NewLink returns a link that has not been opened yet. ctx bounds its life.
func NewLink(ctx context.Context, cfg LinkConfig) *Link {
	cfg.Limits = cfg.Limits.WithDefaults()
	l := &Link{cfg: cfg, lastUse: time.Now(), initialized: cfg.Reopened,
		state: linkState{level: mcp.NoLevel, levels: map[Session]mcp.Level{}, subs: map[string][]Session{},
			busy: map[string]chan struct{}{}}}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	return l
}

// LivesOn reports whether the link serves more than one request.
func (l *Link) LivesOn() bool { return !l.cfg.Single }

// Name is the name of the server.
func (l *Link) Name() string { return l.cfg.Name }

// Profile is what the link declares to its server (translation 14.3).
func (l *Link) Profile() era.Profile { return l.cfg.Profile }

// Conn returns the live connection, opening one if there is none. Concurrent callers wait for the same opening.
func (l *Link) Conn(ctx context.Context) (*Conn, *Error) {
	l.mu.Lock()
	l.lastUse = time.Now()
	if l.closed {
		l.mu.Unlock()
		return nil, l.stopped()
	}
	if c := l.conn; c != nil {
		l.mu.Unlock()
		return c, nil
	}
	op := l.opening
	if op == nil {
		op = &opening{done: make(chan struct{})}
		l.opening = op
		l.wg.Go(func() { l.open(op) })
	}
	l.mu.Unlock()
	select {
	case <-op.done:
		if op.err != nil {
			if l.ctx.Err() != nil {
				return nil, l.stopped()
			}
			return nil, l.unavailable(op.err)
		}
		return op.conn, nil
	case <-ctx.Done():
		return nil, Unavailable("gave up waiting for server " + l.cfg.Name + " to start").Because(context.Cause(ctx))
	}
}

// unavailable is the error of a request whose server cannot be opened.
func (l *Link) unavailable(err error) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	e := Unavailable("server " + l.cfg.Name + " is not available: " + err.Error()).Because(err)
	e.Retry = max(e.Retry, int(math.Ceil(retryAfter(err).Seconds())))
	return e
}

// stopped is the error of a request for a server that is being stopped.
func (l *Link) stopped() *Error {
	e := Unavailable("server " + l.cfg.Name + " is being stopped").Because(errLinkClosed)
	e.Reason = ReasonStopping
	return e
}

// Live returns the live connection, nil if there is none. It opens nothing.
func (l *Link) Live() *Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn
}

func (l *Link) open(op *opening) {
	defer close(op.done)
	ctx, stop := context.WithTimeoutCause(l.ctx, l.cfg.Limits.Start, startTimeout(l.cfg.Limits.Start))
	defer stop()
	l.mu.Lock()
	again := l.opened > 0 || l.cfg.Reopened
	hold := l.cfg.Exclusive && !l.initialized
	l.mu.Unlock()
	c, err := l.cfg.Back.Open(ctx, OpenOptions{Want: l.cfg.Want, Params: l.cfg.Params, HoldInitialized: hold, Conn: l.connConfig()})
	if err == nil && again {
		l.restore(ctx, c)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opening = nil
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		op.err = err
		return
	}
	l.opened++
	l.wg.Go(func() { <-c.Done() })
	if op.err = c.Err(); op.err != nil { // it ended behind its handshake: nothing of anybody's was sent
		l.reviveLocked()
		return
	}
	l.conn, op.conn = c, c
	l.watch.missed = l.watch.missed || again
	l.watchLocked()
	if hold && c.Facts().Era == mcp.Legacy {
		l.held = c
	}
	l.cfg.Events.emit(Event{Server: l.cfg.Name, Kind: EventOpened, Detail: string(c.Facts().Version)})
}

func (l *Link) connConfig() ConnConfig {
	c := ConnConfig{Name: l.cfg.Name, Handler: l, Limits: l.cfg.Limits, Events: l.cfg.Events,
		Tools: l.cfg.Mirror.rewriter(l.cfg.Name, l.cfg.Events)}
	if l.cfg.Remote {
		c.Remote, c.Drops = l, l.cfg.Mirror.drops(l.cfg.Name, l.cfg.Events)
	}
	return c
}

type startTimeout time.Duration

func (t startTimeout) Error() string {
	return "it was not ready within " + time.Duration(t).String() + " (setting startTimeout)"
}

// Closed forgets a connection that ended; the next message opens another.
func (l *Link) Closed(c *Conn, err error) {
	l.mu.Lock()
	if l.conn == c { // else Rest has ended it, because nobody needs it
		l.conn = nil
		l.reviveLocked()
	}
	sessions := slices.Clone(l.sessions)
	l.mu.Unlock()
	for _, s := range sessions {
		s.ConnClosed(c)
	}
	l.cfg.Events.emit(Event{Server: l.cfg.Name, Kind: EventClosed, Err: err})
}

// Attach adds a legacy session to the link, Detach removes it and what it held.
func (l *Link) Attach(s Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions = append(l.sessions, s)
}

// Detach removes a legacy session and releases its subscriptions and log level. On a shared link its requests are
// cancelled and what it was asked is refused; an exclusive link ends with its session.
func (l *Link) Detach(s Session) {
	l.mu.Lock()
	l.sessions = slices.DeleteFunc(l.sessions, func(o Session) bool { return o == s })
	delete(l.state.levels, s)
	if len(l.sessions) == 0 {
		l.watch.lists = false
	}
	l.watchLocked()
	var free []string
	for uri, who := range l.state.subs {
		had := len(who) > 0
		who = slices.DeleteFunc(who, func(o Session) bool { return o == s })
		l.state.subs[uri] = who
		if had && len(who) == 0 {
			free = append(free, uri)
		}
	}
	c := l.conn
	l.lastUse = time.Now()
	l.mu.Unlock()
	if l.cfg.Exclusive {
		return
	}
	l.endReversals(s)
	if len(free) > 0 {
		l.background(func(ctx context.Context) { l.linger(ctx, free) })
	}
	if c != nil {
		tell := c.release(s)
		l.background(tell)
	}
}

// background runs a short best-effort job that the link waits for when it is closed.
func (l *Link) background(f func(context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.wg.Go(func() {
		ctx, stop := context.WithTimeout(l.ctx, 5*time.Second)
		defer stop()
		f(ctx)
	})
}

// Close ends the server and waits for everything the link started, the reading of the server included, within ctx.
func (l *Link) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	if l.conn != nil {
		l.conn.retire()
	}
	l.mu.Unlock()
	l.cancel(errLinkClosed)
	for _, s := range l.listeners() {
		s.end(Answer{}) // without a result: the client listens again, if the server is still there (SUB-11)
	}
	err := l.cfg.Back.Close(ctx)
	done := make(chan struct{})
	go func() { l.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	}
	return err
}
