package session_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/session"
	"mcpbridge/framing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is an upstream that remembers what it was sent, and the back that opens it.
type server struct {
	dead chan struct{}
	once sync.Once

	mu   sync.Mutex
	sent []string
}

func newServer() *server { return &server{dead: make(chan struct{})} }

func (s *server) Send(_ context.Context, f framing.Frame, _ bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, string(f.Bytes()))
	return nil
}

func (s *server) Serve(bridge.Receiver) error { <-s.dead; return errors.New("gone") }

func (s *server) Close(context.Context) error { s.once.Do(func() { close(s.dead) }); return nil }

func (s *server) Halt(context.Context) error { return nil }

func (s *server) Open(_ context.Context, o bridge.OpenOptions) (*bridge.Conn, error) {
	c := bridge.NewConn(s, o.Conn)
	c.Establish(bridge.Facts{Era: mcp.Legacy, Version: mcp.V20251125})
	return c, nil
}

// got returns what the server was sent and forgets it.
func (s *server) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.sent
	s.sent = nil
	return out
}

// handler owns a connection that no link has.
type handler struct{}

func (handler) ServerRequest(*bridge.Conn, *framing.Message)       {}
func (handler) InputRequired(bridge.Ticket, *framing.Message) bool { return false }

func (handler) ServerNotification(*bridge.Conn, *framing.Message) {}
func (handler) Closed(*bridge.Conn, error)                        {}

// connect returns a connection that ends with the test.
func connect(t *testing.T) (*bridge.Conn, *server) {
	t.Helper()
	v := newServer()
	c, _ := v.Open(t.Context(), bridge.OpenOptions{Conn: bridge.ConnConfig{Name: "srv", Handler: handler{}}})
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c, v
}

// open returns a session in a store of its own.
func open(t *testing.T, cfg session.Config) (*session.Store, *session.Session) {
	t.Helper()
	st := session.NewStore(cfg)
	return st, add(t, st, bridge.Local)
}

func add(t *testing.T, st *session.Store, p bridge.Principal) *session.Session {
	t.Helper()
	s := st.New(p, nil, false)
	if err := st.Add(s, session.Hello{Version: mcp.V20251125, ClientInfo: []byte(`{"name":"c"}`), Capabilities: []byte(`{"sampling":{}}`)}); err != nil {
		t.Fatalf("cannot add session: %v", err)
	}
	return s
}

// eventID is the id of a message of a stream.
func eventID(stream string, seq int64) string { return stream + "_" + strconv.FormatInt(seq, 10) }

func scan(t *testing.T, raw string) *framing.Message {
	t.Helper()
	m, err := framing.Scan([]byte(raw))
	if err != nil {
		t.Fatalf("scan %s: %v", raw, err)
	}
	return m
}

func text(s string) framing.Frame { return framing.Whole([]byte(s)) }

// take reads what a stream has for its client.
func take(st *bridge.Stream) []string {
	batch, _ := st.Take()
	var out []string
	for _, o := range batch {
		out = append(out, string(o.Frame.Bytes()))
	}
	return out
}

func over(st *bridge.Stream) bool {
	_, last := st.Take()
	return last
}

// same compares what came with what should have.
func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got  %s\n want %s", what, strings.Join(got, " | "), strings.Join(want, " | "))
	}
}

// ask has the server put a question with that id to the session, as a link does.
func ask(t *testing.T, s *session.Session, c *bridge.Conn, id string, via bridge.Sink) {
	t.Helper()
	c.Question([]byte(id), nil, s)
	s.Ask(c, scan(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"roots/list"}`), via)
}

func question(id string) string { return `{"jsonrpc":"2.0","id":"` + id + `","method":"roots/list"}` }
