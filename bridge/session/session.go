// Package session keeps legacy sessions of Streamable HTTP: their ids, what the client said in its handshake, the streams
// it can resume, the questions the server has put to it, and the notifications that wait for a stream. It knows neither
// HTTP nor how a server is reached.
package session

import (
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
	if l.Retain == 0 {
		l.Retain = 5 * time.Minute
	}
	return l
}

// Hello is what a client said in its initialize request, and what was agreed.
type Hello struct {
	Version      mcp.Version
	ClientInfo   []byte // raw
	Capabilities []byte // raw
}

// Session is one legacy session. It implements bridge.Session. One lock guards its state.
type Session struct {
	id        string
	principal bridge.Principal
	hello     Hello
	link      *bridge.Link
	exclusive bool
	limits    Limits

	mu       sync.Mutex
	level    mcp.Level
	asks     map[string]*ask // by our id, decoded
	lastAsk  int64
	streams  []*kept          // that can be resumed, oldest first
	standing []*bridge.Stream // open streams of the session's own, newest last
	backlog  []note
	waiting  int // bytes of notifications in the backlog
	active   int // HTTP exchanges under way
	used     time.Time
	ended    bool
}

type kept struct {
	stream   *bridge.Stream
	own      bool // of the session itself, not of a POST
	readers  int  // more than one while an old one has not noticed yet that it lost the stream
	detached time.Time
}

// ID is the value of Mcp-Session-Id.
func (s *Session) ID() string { return s.id }

// Version is the negotiated revision.
func (s *Session) Version() mcp.Version { return s.hello.Version }

// Link is the relation to the server that serves the session.
func (s *Session) Link() *bridge.Link { return s.link }

// Exclusive reports whether the link serves this session alone.
func (s *Session) Exclusive() bool { return s.exclusive }

// ClientInfo is what the client said it is, raw; Capabilities what it declared, raw.
func (s *Session) ClientInfo() []byte { return s.hello.ClientInfo }

// Capabilities is what the client declared, raw.
func (s *Session) Capabilities() []byte { return s.hello.Capabilities }

// Level is the log level the client set, mcp.NoLevel before it did.
func (s *Session) Level() mcp.Level {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

// SetLevel stores the log level the client set.
func (s *Session) SetLevel(l mcp.Level) {
	s.mu.Lock()
	s.level = l
	s.mu.Unlock()
}

// Declares implements bridge.Session.
func (s *Session) Declares(feature string) bool {
	return era.HasCapability(s.hello.Capabilities, feature)
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

// touch makes a session count as used now.
func (s *Session) touch(now time.Time) {
	s.mu.Lock()
	s.used = now
	s.mu.Unlock()
}

// idle reports for how long nothing has happened, zero while something does: an exchange, an open stream, an open question,
// a request at the server whose client is away (case 54). The clock starts anew when that is over.
func (s *Session) idle(now time.Time) time.Duration {
	busy := s.calling()
	s.mu.Lock()
	defer s.mu.Unlock()
	if busy || s.active > 0 || len(s.standing) > 0 || len(s.asks) > 0 || s.runningLocked() {
		s.used = now
	}
	return now.Sub(s.used)
}

// calling reports whether the server works on a request of the session.
func (s *Session) calling() bool {
	if s.link == nil {
		return false
	}
	c := s.link.Live()
	if c == nil {
		return false
	}
	_, n := c.Youngest(func(e *bridge.Exchange) bool { return e.Session == bridge.Session(s) })
	return n > 0
}

func (s *Session) runningLocked() bool {
	for _, k := range s.streams {
		if !k.own && k.readers == 0 && !k.stream.Over() {
			return true
		}
	}
	return false
}
