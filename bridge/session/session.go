// Package session keeps legacy sessions of Streamable HTTP: their ids, what the client said in its handshake, the streams
// it can resume, the questions the server has put to it, and the notifications that wait for a stream. It knows neither
// HTTP nor how a server is reached.
//
// A session outlives its place in memory (design decision 6). Its id is sealed and carries what is needed to open it again:
//
//	           Add                 request                 Delete, Idle or Life is over
//	handshake ------>    live    ----------->    live    ------------------------------> buried: 404 until Life is over
//	                      ^ |
//	open, by the next     | | Close (the bridge stops), or shelved at the cap
//	request (Reopen)      | v
//	                     away, known by its id and its Fact
//
// A session whose handshake makes too long an id has a random one: it is live or gone.
package session

import (
	"encoding/hex"
	"sync"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
)

// Limits bound what one session holds. Zero values mean the defaults.
type Limits struct {
	// Questions the server may have open at the client. Above it a further one is refused. Default 256.
	Questions int
	// Backlog is how many notifications wait while the client has no stream of its own; equal kinds are merged, the
	// oldest beyond it is dropped (HTTP-L-32). Questions that wait do not count: Questions bounds them. Default 256.
	Backlog int
	// BacklogBytes is the size of the notifications that wait; beyond it too the oldest are dropped. One alone always
	// stays. Default 4 MiB.
	BacklogBytes int
	// Streams is how many streams are kept for a client to resume; those being read count, but are never dropped. The
	// oldest that has ended goes first. Default 64.
	Streams int
	// Replay is how many bytes of a stream are kept for replay. Default 1 MiB.
	Replay int
	// Retain is how long a stream without a reader is kept. Default 5 minutes.
	Retain time.Duration
	// Subscriptions is how many resource URIs are remembered for a session that is opened again, and SubscriptionBytes their
	// size. What is beyond works, but ends with the link. Default 1,000 and 64 KiB.
	Subscriptions, SubscriptionBytes int
}

func (l Limits) withDefaults() Limits {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&l.Questions, 256)
	def(&l.Backlog, 256)
	def(&l.BacklogBytes, 4<<20)
	def(&l.Streams, 64)
	def(&l.Replay, 1<<20)
	def(&l.Subscriptions, 1000)
	def(&l.SubscriptionBytes, 64<<10)
	if l.Retain == 0 {
		l.Retain = 5 * time.Minute
	}
	return l
}

// Session is one legacy session. It implements bridge.Session. One lock guards its state.
type Session struct {
	store     *Store
	uid       [16]byte
	id        string
	sealed    bool // it can be opened again by its id
	issued    time.Time
	principal bridge.Principal
	hello     Hello
	link      *bridge.Link
	exclusive bool

	mu            sync.Mutex
	level         mcp.Level
	subscriptions []string        // raw JSON strings, oldest first
	asks          map[string]*ask // by our id, decoded; nil before the first
	lastAsk       int64
	streams       []*kept          // that can be resumed, oldest first
	standing      []*bridge.Stream // open streams of the session's own, newest last
	backlog       []note
	waiting       int // bytes of notifications in the backlog
	active        int // HTTP exchanges under way
	used          time.Time
	ended         bool

	changed      bool      // level or subscriptions, since a fact was saved
	saved        time.Time // when a fact was saved
	savedUse     time.Time // and what it said
	savedRunning bool
}

type kept struct {
	stream   *bridge.Stream
	own      bool // of the session itself, not of a POST
	readers  int  // more than one while an old one has not noticed yet that it lost the stream
	detached time.Time
}

// ID is the value of Mcp-Session-Id, from Add on.
func (s *Session) ID() string { return s.id }

// Short names the session in logs. It opens nothing.
func (s *Session) Short() string { return hex.EncodeToString(s.uid[:4]) }

// Principal is whose session it is.
func (s *Session) Principal() bridge.Principal { return s.principal }

// Version is the negotiated revision.
func (s *Session) Version() mcp.Version { return s.hello.Version }

// Link is the relation to the server that serves the session.
func (s *Session) Link() *bridge.Link { return s.link }

// Exclusive reports whether the link serves this session alone.
func (s *Session) Exclusive() bool { return s.exclusive }

// Bind gives a session that is being opened again its link. exclusive tells that the link serves nobody else.
func (s *Session) Bind(link *bridge.Link, exclusive bool) { s.link, s.exclusive = link, exclusive }

// ClientInfo is what the client said it is, raw.
func (s *Session) ClientInfo() []byte { return s.hello.ClientInfo }

// Capabilities is what the client declared, raw.
func (s *Session) Capabilities() []byte { return s.hello.Capabilities }

// InitParams is the params object of the client's initialize request, byte for byte.
func (s *Session) InitParams() []byte { return s.hello.Params }

// SameServer reports whether a server with these raw capabilities is what the client shook hands with, as far as is known.
func (s *Session) SameServer(capabilities []byte) bool {
	return s.hello.Server == [8]byte{} || s.hello.Server == Digest(capabilities)
}

// Level is the log level the client set, mcp.NoLevel before it did.
func (s *Session) Level() mcp.Level {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

// SetLevel stores the log level the client set.
func (s *Session) SetLevel(l mcp.Level) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.level != l {
		s.level, s.changed = l, true
		s.note()
	}
}

// Declares implements bridge.Session.
func (s *Session) Declares(feature string) bool {
	return era.HasCapability(s.hello.Capabilities, feature)
}

// Listening implements bridge.Session: a client reads a stream of the session's own.
func (s *Session) Listening() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.standing) > 0
}

// Enter marks the begin of an HTTP exchange, Leave its end. A session with one under way is not idle.
func (s *Session) Enter() {
	s.mu.Lock()
	s.active++
	s.mu.Unlock()
}

// Leave marks the end of an HTTP exchange.
func (s *Session) Leave() {
	s.mu.Lock()
	s.active--
	s.used = time.Now()
	s.mu.Unlock()
}
