package session

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"sync"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

// Config bounds a store.
type Config struct {
	// Sessions is how many sessions may be open at once; one more is refused with 429. Default 1,000.
	Sessions int
	// Idle is how long a session may lie still before it ends (HTTP-L-33); it is looked at twenty times in that span, at
	// most once a second. Default 30 minutes; negative: for ever.
	Idle time.Duration
	// Session are the limits of each session.
	Session Limits
	// Ended is called once for every session that ends, for whatever reason, outside all locks.
	Ended func(*Session)
}

// Store holds the sessions of all endpoints of a bridge, or of one.
type Store struct {
	cfg Config

	mu   sync.Mutex
	byID map[string]*Session // guarded by mu
	stop bool                // guarded by mu
}

// NewStore returns an empty store.
func NewStore(cfg Config) *Store {
	if cfg.Sessions == 0 {
		cfg.Sessions = 1000
	}
	if cfg.Idle == 0 {
		cfg.Idle = 30 * time.Minute
	}
	cfg.Session = cfg.Session.withDefaults()
	return &Store{cfg: cfg, byID: map[string]*Session{}}
}

// Reserve checks that another session may be opened, before a server is started for it. It reserves nothing: Add decides.
func (st *Store) Reserve() *bridge.Error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.roomLocked()
}

func (st *Store) roomLocked() *bridge.Error {
	switch {
	case st.stop:
		return &bridge.Error{Status: 503, Code: mcp.CodeInternal, Reason: bridge.ReasonStopping, Message: "the bridge is stopping", Retry: 1}
	case len(st.byID) >= st.cfg.Sessions:
		return &bridge.Error{Status: 429, Code: mcp.CodeInternal, Reason: bridge.ReasonSessionLimit, Retry: 10,
			Message: "too many sessions are open; end one with DELETE, or raise limits.sessions"}
	}
	return nil
}

// New returns a session that is not yet in the store, so that it can be attached to its link before the handshake.
// exclusive tells that the link serves nobody else.
func (st *Store) New(p bridge.Principal, link *bridge.Link, exclusive bool) *Session {
	return &Session{id: newID(), principal: p, link: link, exclusive: exclusive, limits: st.cfg.Session, level: mcp.NoLevel,
		asks: map[string]*ask{}, used: time.Now()}
}

// Add completes a session with its handshake and puts it into the store.
func (st *Store) Add(s *Session, h Hello) *bridge.Error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.roomLocked(); err != nil {
		return err
	}
	s.hello = h
	s.touch(time.Now())
	st.byID[s.id] = s
	return nil
}

// newID returns 192 random bits in visible ASCII (HTTP-L-18, SEC-02).
func newID() string {
	var b [24]byte
	_, _ = rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Find returns the live session of that id if it belongs to the principal; a session of another principal does not exist
// for this one (HTTP-L-29). It counts as used now, so that it is still there when the caller enters it.
func (st *Store) Find(id string, p bridge.Principal) *Session {
	st.mu.Lock()
	defer st.mu.Unlock()
	s := st.byID[id]
	if s == nil || s.principal != p {
		return nil
	}
	s.touch(time.Now())
	return s
}

// Remove ends a session.
func (st *Store) Remove(s *Session) {
	st.mu.Lock()
	known := st.byID[s.id] == s
	delete(st.byID, s.id)
	st.mu.Unlock()
	if known {
		st.end(s)
	}
}

// end ends a session that is out of the store. The streams of running calls stay open for those who read them: whoever
// ends the calls gives each its answer (rule 3).
func (st *Store) end(s *Session) {
	for _, o := range s.finish() {
		o.Close()
	}
	if st.cfg.Ended != nil {
		st.cfg.Ended(s)
	}
}

// Len is the number of open sessions.
func (st *Store) Len() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.byID)
}

// Run ends idle sessions until ctx ends.
func (st *Store) Run(ctx context.Context) {
	t := time.NewTicker(max(st.cfg.Idle/20, time.Second))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			for _, s := range st.sweep(time.Now()) {
				st.end(s)
			}
		}
	}
}

// sweep takes the sessions that have been idle for too long out of the store, and has the others forget old streams.
func (st *Store) sweep(now time.Time) (idle []*Session) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for id, s := range st.byID {
		s.trim(now)
		if d := s.idle(now); st.cfg.Idle > 0 && d >= st.cfg.Idle {
			delete(st.byID, id)
			idle = append(idle, s)
		}
	}
	return idle
}

// Close refuses new sessions and ends all open ones.
func (st *Store) Close() {
	st.mu.Lock()
	st.stop = true
	all := st.byID
	st.byID = map[string]*Session{}
	st.mu.Unlock()
	for _, s := range all {
		st.end(s)
	}
}
