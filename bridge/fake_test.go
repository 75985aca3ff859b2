package bridge_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// patience bounds every wait of a test for something that must happen.
const patience = 10 * time.Second

var errDied = errors.New("exit status 3")

// server is an upstream whose other end is the test.
type server struct {
	got  chan []byte // what the bridge sent
	out  chan func(bridge.Receiver)
	dead chan struct{}
	once sync.Once
	err  error

	mu   sync.Mutex
	plug chan struct{} // not nil: the queue is full until it is closed
	slow chan struct{} // not nil: taking a message takes until it is closed
}

func newServer() *server {
	return &server{got: make(chan []byte, 1<<15), out: make(chan func(bridge.Receiver)), dead: make(chan struct{})}
}

func (s *server) Send(ctx context.Context, f framing.Frame, _ bool) error {
	s.mu.Lock()
	slow := s.slow
	s.mu.Unlock()
	if slow != nil {
		<-slow
	}
	for {
		s.mu.Lock()
		plug := s.plug
		s.mu.Unlock()
		select {
		case <-s.dead:
			return s.err
		default:
		}
		if plug == nil {
			s.got <- slices.Clone(f.Bytes())
			return nil
		}
		select {
		case <-plug:
		case <-s.dead:
			return s.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// block makes the queue full; the function returned makes room.
func (s *server) block() (unblock func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	plug := make(chan struct{})
	s.plug = plug
	return func() {
		s.mu.Lock()
		s.plug = nil
		s.mu.Unlock()
		close(plug)
	}
}

// dawdle makes the taking of messages, for which there is room, take until the function returned is called.
func (s *server) dawdle() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slow := make(chan struct{})
	s.slow = slow
	return func() { close(slow) }
}

func (s *server) Serve(r bridge.Receiver) error {
	for {
		select {
		case f := <-s.out:
			f(r)
		case <-s.dead:
			return s.err
		}
	}
}

func (s *server) Close(context.Context) error { s.die(errors.New("stopped")); return nil }

func (s *server) die(err error) { s.once.Do(func() { s.err = err; close(s.dead) }) }

// tell runs f in the reading goroutine and returns when it is done.
func (s *server) tell(f func(bridge.Receiver)) {
	done := make(chan struct{})
	select {
	case s.out <- func(r bridge.Receiver) { defer close(done); f(r) }:
		<-done
	case <-s.dead:
	}
}

// say sends a line and returns when the bridge has dealt with it.
func (s *server) say(line string) {
	s.tell(func(r bridge.Receiver) {
		m, err := framing.Scan([]byte(line))
		if err != nil {
			r.Malformed([]byte(line), err)
			return
		}
		r.Message(m)
	})
}

// next is the next message the bridge sent.
func (s *server) next(t *testing.T) *framing.Message {
	t.Helper()
	select {
	case b := <-s.got:
		m, err := framing.Scan(b)
		if err != nil {
			t.Fatalf("the bridge sent %q: %v", b, err)
		}
		return m
	case <-time.After(patience):
		t.Fatal("the bridge sent nothing")
		return nil
	}
}

// quiet checks that the bridge has sent nothing.
func (s *server) quiet(t *testing.T) {
	t.Helper()
	select {
	case b := <-s.got:
		t.Fatalf("the bridge sent %s", b)
	default:
	}
}

// expect checks the next message the bridge sent.
func (s *server) expect(t *testing.T, want string) {
	t.Helper()
	if got := string(s.next(t).Raw); got != want {
		t.Fatalf("the bridge sent\n%s, want\n%s", got, want)
	}
}

// openAt is how many requests of clients are open at a server.
func openAt(c *bridge.Conn) int {
	_, n := c.Youngest(func(*bridge.Exchange) bool { return true })
	return n
}

func idOf(m *framing.Message) string { return string(m.Bytes(m.ID)) }

// sink records what comes back for an exchange.
type sink struct {
	mu      sync.Mutex
	notes   []string
	keys    []string
	asks    []string
	answers []bridge.Answer
	done    chan struct{}
}

func newSink() *sink { return &sink{done: make(chan struct{})} }

func (s *sink) Notify(f framing.Frame, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes, s.keys = append(s.notes, string(f.Bytes())), append(s.keys, key)
}

func (s *sink) Ask(f framing.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks = append(s.asks, string(f.Bytes()))
}

func (s *sink) Finish(a bridge.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers = append(s.answers, a); len(s.answers) == 1 {
		close(s.done)
	}
}

// answer waits for the one answer.
func (s *sink) answer(t *testing.T) string {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		t.Fatal("no answer")
	}
	return s.only(t)
}

// only is the answer that is there.
func (s *sink) only(t *testing.T) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.answers) != 1 {
		t.Fatalf("%d answers, want 1", len(s.answers))
	}
	return string(s.answers[0].Frame.Bytes())
}

func (s *sink) open(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.answers) != 0 {
		t.Fatalf("answered: %s", s.answers[0].Frame.Bytes())
	}
}

func (s *sink) noted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.notes)
}

// session is a legacy session that records what it is given.
type session struct {
	features  []string
	mu        sync.Mutex
	asked     []string // ids
	via       []bridge.Sink
	notes     []string
	withdrawn []string
	closed    int
	listening bool
	onAsk     func(c bridge.Questioner, m *framing.Message)
	onClosed  func()
}

func (s *session) Declares(f string) bool { return slices.Contains(s.features, f) }

func (s *session) Ask(c bridge.Questioner, m *framing.Message, via bridge.Sink) {
	s.mu.Lock()
	s.asked, s.via = append(s.asked, idOf(m)), append(s.via, via)
	s.mu.Unlock()
	if s.onAsk != nil {
		s.onAsk(c, m)
	}
}

func (s *session) Withdraw(_ bridge.Questioner, _ *framing.Message, id []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.withdrawn = append(s.withdrawn, string(id))
}

func (s *session) Notify(f framing.Frame, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, string(f.Bytes()))
}

func (s *session) Listening() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listening
}

func (s *session) ConnClosed(*bridge.Conn) {
	s.mu.Lock()
	s.closed++
	s.mu.Unlock()
	if s.onClosed != nil {
		s.onClosed()
	}
}

// take returns and forgets the notifications.
func (s *session) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.notes
	s.notes = nil
	return n
}

func (s *session) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// handler records what a connection hands up.
type handler struct {
	mu       sync.Mutex
	requests []string
	notes    []string
	closed   int
	onClosed func()
}

func (h *handler) ServerRequest(_ *bridge.Conn, m *framing.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, string(m.Raw))
}

func (h *handler) InputRequired(bridge.Ticket, *framing.Message) bool { return false }

func (h *handler) ServerNotification(_ *bridge.Conn, m *framing.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, string(m.Raw))
}

func (h *handler) Closed(*bridge.Conn, error) {
	h.mu.Lock()
	h.closed++
	h.mu.Unlock()
	if h.onClosed != nil {
		h.onClosed()
	}
}

// events collects events.
type events struct {
	mu   sync.Mutex
	list []bridge.Event
}

func (e *events) add(ev bridge.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
}

func (e *events) count(k bridge.EventKind) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.list {
		if ev.Kind == k {
			n++
		}
	}
	return n
}

func legacyFacts(caps string) bridge.Facts {
	return bridge.Facts{Era: mcp.Legacy, Version: mcp.V20250618,
		Hello: era.Hello{Version: mcp.V20250618, Capabilities: []byte(caps)}}
}

func modernFacts(caps string) bridge.Facts {
	return bridge.Facts{Era: mcp.Modern, Version: mcp.V20260728, Discovery: era.Discovery{Capabilities: []byte(caps)}}
}

// rig is a connection with a fake server and a recording handler.
type rig struct {
	*server
	conn *bridge.Conn
	h    *handler
	ev   *events
}

func newRig(t *testing.T, l bridge.Limits, f bridge.Facts) *rig {
	r := probingRig(t, l)
	r.conn.Establish(f)
	return r
}

func probingRig(t *testing.T, l bridge.Limits) *rig {
	r := &rig{server: newServer(), h: &handler{}, ev: &events{}}
	r.conn = bridge.NewConn(r.server, bridge.ConnConfig{Name: "srv", Handler: r.h, Limits: l, Events: r.ev.add})
	t.Cleanup(func() { _ = r.conn.Close(context.Background()) })
	return r
}

// exchange makes a client's request of the legacy era.
func exchange(line string) (*bridge.Exchange, *sink) {
	m, err := framing.Scan([]byte(line))
	if err != nil {
		panic(err)
	}
	s := newSink()
	method := m.MethodName()
	return &bridge.Exchange{Message: m, Era: mcp.Legacy, Version: mcp.V20250618, Method: method, Traits: mcp.TraitsOf(method),
		Principal: bridge.Local, Level: mcp.NoLevel, Sink: s}, s
}

// call is a tools/call of a client, id and token raw; an empty token leaves it out.
func call(id, token string) (*bridge.Exchange, *sink) {
	meta := ""
	if token != "" {
		meta = `,"_meta":{"progressToken":` + token + `}`
	}
	return exchange(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"t"` + meta + `}}`)
}

// dispatch sends an exchange and returns the id it has at the server.
func (r *rig) dispatch(t *testing.T, ex *bridge.Exchange) (bridge.Ticket, string) {
	t.Helper()
	return dispatch(t, r.conn, r.server, ex)
}

func dispatch(t *testing.T, c *bridge.Conn, s *server, ex *bridge.Exchange) (bridge.Ticket, string) {
	t.Helper()
	ticket, err := c.Dispatch(t.Context(), ex)
	if err != nil {
		t.Fatalf("Dispatch: %v", err)
	}
	return ticket, idOf(s.next(t))
}

func result(id, body string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":` + body + `}` }

func progress(token, value string) string {
	return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":` + value + `}}`
}

// has checks that an error of the bridge carries a reason and answers an id.
func has(t *testing.T, answer, id string, reason bridge.Reason) {
	t.Helper()
	if !strings.Contains(answer, `"id":`+id+`,`) || !strings.Contains(answer, `"source":"bridge","reason":"`+string(reason)+`"`) {
		t.Fatalf("got %s, want an error of the bridge with id %s and reason %s", answer, id, reason)
	}
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s:\n got %q\nwant %q", what, got, want)
	}
}
