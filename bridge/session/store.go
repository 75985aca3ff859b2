package session

import (
	"context"
	"sync"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

// Config bounds a store.
type Config struct {
	// Sessions bounds how many sessions may be open at once, those that are being reopened included, in all stores that share it;
	// one more is refused with 429. Default: 1,000 of this store alone.
	Sessions *Cap
	// Idle is how long a session may lie still; beyond that it ends (HTTP-L-33). Default 30 minutes; negative: for ever.
	Idle time.Duration
	// Life is how long a session may live from its handshake on, used or not; beyond that it ends as soon as no request is under
	// way. Default 7 days; negative: for ever.
	Life time.Duration
	// Shelve is how long a session has to lie still before it may be taken out of memory to make room for another at the cap.
	// Its next request opens it again. Default 1 minute; negative: never.
	Shelve time.Duration
	// Session are the limits of each session.
	Session Limits
	// Ended is called once for every session that ends or leaves memory, for whatever reason, outside all locks.
	Ended func(*Session)
	// Endpoint is what the sessions belong to: an id opens nothing at another.
	Endpoint string
	// Sealer seals ids. nil: ids are random, and sessions end with the store.
	Sealer Sealer
	// Facts keeps what changes about sessions. nil: as long as the store lives, and MaxMemory of them.
	Facts Facts
}

func (c Config) withDefaults() Config {
	def := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	if c.Sessions == nil {
		c.Sessions = NewCap(1000)
	}
	def(&c.Idle, 30*time.Minute)
	def(&c.Life, 7*24*time.Hour)
	def(&c.Shelve, time.Minute)
	c.Session = c.Session.withDefaults()
	return c
}

// Store holds the sessions of one endpoint.
type Store struct {
	cfg     Config
	facts   Facts
	changed chan struct{}   // has an element when a session has something to save
	life    context.Context // ends with Close
	end     context.CancelFunc
	wg      sync.WaitGroup // sessions that are being opened again

	mu      sync.Mutex
	byID    map[string]*Session // guarded by mu
	dying   map[string]struct{} // guarded by mu; ids that are being buried
	flights map[string]*flight  // guarded by mu; ids that are being opened again
	stop    bool                // guarded by mu
}

// NewStore returns an empty store.
func NewStore(cfg Config) *Store {
	st := &Store{cfg: cfg.withDefaults(), facts: cfg.Facts, changed: make(chan struct{}, 1),
		byID: map[string]*Session{}, dying: map[string]struct{}{}, flights: map[string]*flight{}}
	if st.facts == nil {
		st.facts = newMemory(MaxMemory)
	}
	st.life, st.end = context.WithCancel(context.Background())
	st.cfg.Sessions.join(st)
	return st
}

// Reserve checks that another session may be opened, before a server is started for it. It reserves nothing: Add decides.
func (st *Store) Reserve() *bridge.Error {
	st.mu.Lock()
	stop := st.stop
	st.mu.Unlock()
	switch {
	case stop:
		return stopping()
	case st.cfg.Sessions.full() && st.cfg.Sessions.idlest(time.Now()) == nil:
		return tooMany()
	}
	return nil
}

func tooMany() *bridge.Error {
	return &bridge.Error{Status: 429, Code: mcp.CodeInternal, Reason: bridge.ReasonSessionLimit, Retry: 10,
		Message: "too many sessions are open; end one with DELETE, or raise limits.sessions"}
}

func stopping() *bridge.Error {
	return &bridge.Error{Status: 503, Code: mcp.CodeInternal, Reason: bridge.ReasonStopping, Message: "the bridge is stopping", Retry: 1}
}

// New returns a session that is not yet in the store, so that it can be attached to its link before the handshake.
// exclusive tells that the link serves nobody else.
func (st *Store) New(p bridge.Principal, link *bridge.Link, exclusive bool) *Session {
	return &Session{store: st, uid: newUID(), issued: time.Now().Round(0), principal: p, link: link, exclusive: exclusive,
		level: mcp.NoLevel, used: time.Now()}
}

// Add completes a session with its handshake, which gives it its id, and puts it into the store.
func (st *Store) Add(s *Session, h Hello) *bridge.Error {
	s.hello = h.own()
	if len(h.Params) > 0 {
		s.id = st.seal(&record{uid: s.uid, issued: s.issued, server: h.Server, version: h.Version, params: s.hello.Params}, s.principal)
	}
	if s.sealed = s.id != ""; !s.sealed {
		s.id = randomID()
	}
	if !st.cfg.Sessions.room() {
		return tooMany()
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.stop {
		st.cfg.Sessions.release()
		return stopping()
	}
	s.touch(time.Now())
	st.byID[s.id] = s
	s.note() // its level may have been set before
	return nil
}

// shelve takes a session that may be shelved out of memory, and reports whether it did: it may have been used meanwhile.
func (st *Store) shelve(s *Session, now time.Time) bool {
	st.mu.Lock()
	if st.byID[s.id] != s || s.idle(now) < st.cfg.Shelve {
		st.mu.Unlock()
		return false
	}
	s.save(all, now, false)
	delete(st.byID, s.id)
	st.cfg.Sessions.release()
	st.mu.Unlock()
	st.finish(s)
	return true
}

// Find returns the live session of that id if it belongs to the principal; a session of another principal does not exist
// for this one (HTTP-L-29). It counts as used now, so that it is still there when the caller enters it.
func (st *Store) Find(id string, p bridge.Principal) *Session {
	now := time.Now()
	st.mu.Lock()
	s := st.byID[id]
	if s == nil || s.principal != p {
		st.mu.Unlock()
		return nil
	}
	if !s.over(now) {
		s.touch(now)
		st.mu.Unlock()
		return s
	}
	st.takeLocked(s)
	st.mu.Unlock()
	st.bury(s)
	return nil
}

// Len is the number of open sessions.
func (st *Store) Len() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.byID)
}

// live lists the sessions there are.
func (st *Store) live() []*Session {
	st.mu.Lock()
	defer st.mu.Unlock()
	list := make([]*Session, 0, len(st.byID))
	for _, s := range st.byID {
		list = append(list, s)
	}
	return list
}

// finish ends a session that is out of the store, if there is one. The streams of running calls stay open for those who read
// them: whoever ends the calls gives each its answer (rule 3).
func (st *Store) finish(s *Session) {
	if s == nil {
		return
	}
	for _, o := range s.finish() {
		o.Close()
	}
	if st.cfg.Ended != nil {
		st.cfg.Ended(s)
	}
}

// Close refuses new sessions and takes all open ones out of memory. It deletes none: the next store with the same keys opens
// them again.
func (st *Store) Close() {
	st.mu.Lock()
	st.stop = true
	st.mu.Unlock()
	st.end()
	st.wg.Wait()
	st.cfg.Sessions.part(st)
	st.mu.Lock()
	open := st.byID
	st.byID = map[string]*Session{}
	st.mu.Unlock()
	now := time.Now()
	for _, s := range open {
		st.cfg.Sessions.release()
		s.idle(now) // one that is in use is in use until now
		s.save(all, now, false)
		st.finish(s)
	}
}
