// Package session keeps legacy sessions of Streamable HTTP: their ids, what the client said in its handshake, the streams
// it can resume, the questions the server has put to it, and the notifications that wait for a stream. It knows neither
// HTTP nor how a server is reached.
package session

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Limits bound what one session holds. Zero values mean the defaults.
type Limits struct {
	// Questions the server may have open at the client. Above it a further one is refused. Default 256.
	Questions int
	// Backlog is how many notifications wait while the client has no stream of its own; equal kinds are merged, the
	// oldest beyond it is dropped (HTTP-L-32). Default 256.
	Backlog int
	// Streams is how many streams are kept for a client to resume. The oldest that has ended goes first. Default 64.
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
	asks     map[string]*ask // by our raw id
	lastAsk  int64
	streams  []*kept          // that can be resumed, oldest first
	standing []*bridge.Stream // open streams of the session's own, newest last
	backlog  []note
	active   int // HTTP exchanges under way
	used     time.Time
	ended    bool
}

type ask struct {
	conn *bridge.Conn
	id   []byte // the server's id, raw
	via  bridge.Sink
}

type kept struct {
	stream   *bridge.Stream
	own      bool // of the session itself, not of a POST
	reader   bool
	detached time.Time
}

type note struct {
	frame framing.Frame
	key   string
	ask   bool
}

func (n note) put(st *bridge.Stream) {
	if n.ask {
		st.Ask(n.frame)
		return
	}
	st.Notify(n.frame, n.key)
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

// idleSince reports since when nothing has happened; ok is false while something does: an exchange, an open stream, an
// open question (case 54).
func (s *Session) idleSince() (t time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.active == 0 && len(s.standing) == 0 && len(s.asks) == 0 && !s.runningLocked()
}

func (s *Session) runningLocked() bool {
	for _, k := range s.streams {
		if !k.own && !k.reader && !k.stream.Over() {
			return true
		}
	}
	return false
}

// Ask implements bridge.Session: the question goes out under a string id of the session's own, so that it never looks
// like one of the client's (translation 4.1).
func (s *Session) Ask(c *bridge.Conn, m *framing.Message, via bridge.Sink) {
	s.mu.Lock()
	if s.ended || len(s.asks) >= s.limits.Questions {
		s.mu.Unlock()
		c.Refuse(m, mcp.CodeInternal, "the client has too many open questions")
		return
	}
	s.lastAsk++
	id := append(strconv.AppendInt([]byte(`"mb-`), s.lastAsk, 10), '"')
	s.asks[string(id)] = &ask{conn: c, id: m.Bytes(m.ID), via: via}
	s.mu.Unlock()
	f := framing.Rewrite(m.Raw, []framing.Edit{{At: m.ID, New: id}})
	if via != nil {
		via.Ask(f)
		return
	}
	s.deliver(note{frame: f, ask: true})
}

// Answer takes the client's answer to a question and passes it to the server that asked. Answers to nothing are dropped.
func (s *Session) Answer(m *framing.Message) {
	id := string(m.Bytes(m.ID))
	s.mu.Lock()
	a := s.asks[id]
	delete(s.asks, id)
	s.mu.Unlock()
	if a != nil {
		a.conn.Answer(a.id, framing.Rewrite(m.Raw, []framing.Edit{{At: m.ID, New: a.id}}))
	}
}

// Withdraw implements bridge.Session.
func (s *Session) Withdraw(c *bridge.Conn, m *framing.Message, id []byte) {
	s.mu.Lock()
	var found *ask
	var ours string
	for k, a := range s.asks {
		if a.conn == c && string(a.id) == string(id) {
			found, ours = a, k
		}
	}
	delete(s.asks, ours)
	s.mu.Unlock()
	if found != nil {
		s.tell(found, framing.Rewrite(m.Raw, era.CancelEdits(m, []byte(ours))))
	}
}

// ConnClosed implements bridge.Session.
func (s *Session) ConnClosed(c *bridge.Conn) {
	s.mu.Lock()
	gone := map[string]*ask{}
	for k, a := range s.asks {
		if a.conn == c {
			gone[k] = a
			delete(s.asks, k)
		}
	}
	s.mu.Unlock()
	for id, a := range gone {
		s.tell(a, framing.Whole([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`,"reason":"the server ended"}}`)))
	}
}

func (s *Session) tell(a *ask, f framing.Frame) {
	if a.via != nil {
		a.via.Notify(f, "")
		return
	}
	s.Notify(f, "")
}

// Notify implements bridge.Session: the message goes on exactly one stream of the session's own, the newest (HTTP-L-12,
// case 50), or waits for one.
func (s *Session) Notify(f framing.Frame, key string) { s.deliver(note{frame: f, key: key}) }

func (s *Session) deliver(n note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := len(s.standing); i > 0 {
		n.put(s.standing[i-1])
		return
	}
	s.keepLocked(n)
}

func (s *Session) keepLocked(n note) {
	if s.ended {
		return
	}
	if n.key != "" {
		for i := range s.backlog {
			if s.backlog[i].key == n.key {
				s.backlog[i] = n
				return
			}
		}
	}
	if len(s.backlog) >= s.limits.Backlog {
		i := max(0, slices.IndexFunc(s.backlog, func(n note) bool { return !n.ask }))
		s.backlog = slices.Delete(s.backlog, i, i+1)
	}
	s.backlog = append(s.backlog, n)
}
