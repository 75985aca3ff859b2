package parked

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/seal"
	"mcpbridge/framing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a legacy server whose other end is the test, and the back that opens it.
type server struct {
	facts bridge.Facts
	live  *upstream
	opens int
}

type upstream struct {
	in   chan func(bridge.Receiver)
	dead chan struct{}
	once sync.Once

	mu   sync.Mutex
	sent []*framing.Message
}

var errDied = errors.New("exit status 3")

func (s *server) Open(_ context.Context, o bridge.OpenOptions) (*bridge.Conn, error) {
	s.live = &upstream{in: make(chan func(bridge.Receiver)), dead: make(chan struct{})}
	s.opens++
	c := bridge.NewConn(s.live, o.Conn)
	c.Establish(s.facts)
	return c, nil
}

func (s *server) Halt(ctx context.Context) error { return s.Close(ctx) }

func (s *server) Close(context.Context) error {
	if s.live != nil {
		s.live.die()
	}
	return nil
}

func (u *upstream) die() { u.once.Do(func() { close(u.dead) }) }

func (u *upstream) Close(context.Context) error { u.die(); return nil }

func (u *upstream) Send(_ context.Context, f framing.Frame, _ bool) error {
	m, err := framing.Scan(f.Bytes())
	if err != nil {
		return err
	}
	select {
	case <-u.dead:
		return errDied
	default:
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sent = append(u.sent, m)
	return nil
}

func (u *upstream) Serve(r bridge.Receiver) error {
	for {
		select {
		case f := <-u.in:
			f(r)
		case <-u.dead:
			return errDied
		}
	}
}

// rig is a table with a link to a fake server, in a bubble of synthetic time.
type rig struct {
	t      *testing.T
	table  *Table
	link   *bridge.Link
	server *server
	given  int // links given back
}

const everything = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{}}`

var fullProfile = era.ProfileOf([]byte(everything))

func box(t testing.TB, seed byte) *seal.Box {
	t.Helper()
	ring, err := seal.NewRing([32]byte{seed})
	if err != nil {
		t.Fatal(err)
	}
	return ring.Box("request state")
}

func run(t *testing.T, cfg Config, f func(t *testing.T, r *rig)) {
	t.Helper()
	runWith(t, cfg, fullProfile, f)
}

func runWith(t *testing.T, cfg Config, profile era.Profile, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cfg, profile)
		defer r.close()
		f(t, r)
		r.table.Close()
		if r.table.Open() != 0 || r.table.Len() != 0 {
			t.Errorf("%d calls are open and %d known after the end", r.table.Open(), r.table.Len())
		}
	})
}

func newRig(t *testing.T, cfg Config, profile era.Profile) *rig {
	cfg.Server, cfg.Box = "srv", box(t, 1)
	r := &rig{t: t, table: New(cfg), server: &server{facts: bridge.Facts{Era: mcp.Legacy, Version: mcp.V20251125,
		Hello: era.Hello{Version: mcp.V20251125, Capabilities: []byte(`{"tools":{},"logging":{}}`)}}}}
	r.link = bridge.NewLink(context.Background(), bridge.LinkConfig{Name: "srv", Want: mcp.Modern, Back: r.server, Profile: profile,
		Roots: cfg.Roots, Elicited: r.table.Elicited})
	return r
}

func (r *rig) close() {
	r.table.Close()
	_ = r.link.Close(context.Background())
}

// taken returns what the server got and forgets it.
func (u *upstream) taken() []*framing.Message {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := u.sent
	u.sent = nil
	return list
}

// request is one request of a client.
type request struct {
	id   string
	d    bridge.Dispatched
	err  *bridge.Error
	sink *sink
}

type sink struct {
	mu      sync.Mutex
	notes   []string
	answers []bridge.Answer
}

func (s *sink) Notify(f framing.Frame, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, string(f.Bytes()))
}

func (s *sink) Ask(framing.Frame) { panic("a modern client was asked by a request") }

func (s *sink) Finish(a bridge.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, a)
}

const deploy = `"name":"deploy","arguments":{"n":1.10}`

// caller is who sends a request, and what it can.
type caller struct {
	principal bridge.Principal
	caps      string
	method    string
}

func tools() caller { return caller{bridge.Local, everything, mcp.ToolsCall} }

func exchangeOf(t testing.TB, c caller, id, params string) (*bridge.Exchange, *sink) {
	t.Helper()
	ex, ok := tryExchange(c, id, params)
	if !ok {
		t.Fatalf("no message: %s", params)
	}
	return ex, ex.Sink.(*sink)
}

// tryExchange is exchangeOf for params that may be nonsense.
func tryExchange(c caller, id, params string) (*bridge.Exchange, bool) {
	m, err := framing.Scan([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + c.method + `","params":{` + params +
		`,"_meta":{"progressToken":` + id + `,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + c.caps + `}}}`))
	if err != nil {
		return nil, false
	}
	s := &sink{}
	return &bridge.Exchange{Message: m, Era: mcp.Modern, Version: mcp.V20260728, Method: c.method, Traits: mcp.TraitsOf(c.method),
		Principal: c.principal, Level: mcp.NoLevel, Sink: s}, true
}

// send does what a front does with a request.
func (r *rig) send(c caller, id, params string) *request {
	r.t.Helper()
	ex, s := exchangeOf(r.t, c, id, params)
	q := &request{id: id, sink: s}
	if text, ok := framing.String(ex.Message.Bytes(ex.Message.Param("requestState"))); ok {
		var known bool
		q.d, known, q.err = r.table.Retry(context.Background(), ex, text, nil)
		if q.d != nil || q.err != nil {
			synctest.Wait()
			return q
		}
		_ = known
	}
	conn, err := r.link.Conn(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	q.d, q.err = r.table.Call(context.Background(), r.link, conn, func() { r.given++ }, ex)
	synctest.Wait()
	return q
}

func (r *rig) call(id string) *request { r.t.Helper(); return r.send(tools(), id, deploy) }

// retry sends the request again with answers and the state of an earlier result.
func (r *rig) retry(c caller, id string, asked *request, answers string) *request {
	r.t.Helper()
	params := deploy + `,"requestState":` + asked.state(r.t)
	if answers != "" {
		params += `,"inputResponses":` + answers
	}
	return r.send(c, id, params)
}

// say has the server send a message.
func (r *rig) say(line string) {
	r.t.Helper()
	m, err := framing.Scan([]byte(line))
	if err != nil {
		r.t.Fatalf("%s: %v", line, err)
	}
	done := make(chan struct{})
	r.server.live.in <- func(rc bridge.Receiver) { defer close(done); rc.Message(m) }
	<-done
	synctest.Wait()
}

func (r *rig) ask(id, method, params string) {
	r.t.Helper()
	r.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
}

// sure asks for a yes or no.
func (r *rig) sure(id string) {
	r.t.Helper()
	r.ask(id, mcp.ElicitationCreate, `{"message":"Sure?","requestedSchema":{"type":"object","properties":{"y":{"type":"boolean"}},"required":["y"]}}`)
}

func (r *rig) sample(id string) {
	r.t.Helper()
	r.ask(id, mcp.SamplingCreateMessage, `{"messages":[],"maxTokens":1}`)
}

// next is the next message the server got.
func (r *rig) next() *framing.Message {
	r.t.Helper()
	synctest.Wait()
	u := r.server.live
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.sent) == 0 {
		r.t.Fatal("the server got nothing")
	}
	m := u.sent[0]
	u.sent = u.sent[1:]
	return m
}

// got checks the next message the server got.
func (r *rig) got(want string) {
	r.t.Helper()
	if m := string(r.next().Raw); m != want {
		r.t.Fatalf("the server got %s, want %s", m, want)
	}
}

func (r *rig) quiet() {
	r.t.Helper()
	synctest.Wait()
	u := r.server.live
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, m := range u.sent {
		r.t.Fatalf("the server got %s", m.Raw)
	}
}

// called is the id under which the server got the call.
func (r *rig) called() string {
	r.t.Helper()
	m := r.next()
	if m.Kind != framing.Request || m.Param("requestState").OK() || m.Param("inputResponses").OK() {
		r.t.Fatalf("the server got %s, want the call without what belongs to the bridge", m.Raw)
	}
	return string(m.Bytes(m.ID))
}

func (r *rig) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// window lets the time pass in which questions are collected.
func (r *rig) window() { r.pass(30 * time.Millisecond) }

// answer is the one answer of a request.
func (q *request) answer(t *testing.T) string {
	t.Helper()
	if q.err != nil {
		return string(q.err.WithID([]byte(q.id)).Body(false))
	}
	q.sink.mu.Lock()
	defer q.sink.mu.Unlock()
	if len(q.sink.answers) != 1 {
		t.Fatalf("request %s has %d answers", q.id, len(q.sink.answers))
	}
	return string(q.sink.answers[0].Frame.Bytes())
}

func (q *request) open(t *testing.T) {
	t.Helper()
	q.sink.mu.Lock()
	defer q.sink.mu.Unlock()
	if q.err != nil || len(q.sink.answers) != 0 {
		t.Fatalf("request %s is answered: %v, %v", q.id, q.err, q.sink.answers)
	}
}

func (q *request) result(t *testing.T, name string) string {
	t.Helper()
	m, err := framing.Scan([]byte(q.answer(t)))
	if err != nil {
		t.Fatal(err)
	}
	return string(m.Bytes(m.ResultMember(name)))
}

// state is the request state of a result that asks.
func (q *request) state(t *testing.T) string {
	t.Helper()
	if kind := q.result(t, "resultType"); kind != `"input_required"` {
		t.Fatalf("request %s got %s, want questions", q.id, q.answer(t))
	}
	return q.result(t, "requestState")
}

// asks checks the questions a request was answered with, by key and method.
func (q *request) asks(t *testing.T, keys ...string) {
	t.Helper()
	q.state(t)
	requests := q.result(t, "inputRequests")
	raw := []byte(requests)
	var have []string
	for _, m := range framing.Members(raw, framing.Span{End: uint32(len(raw))}) {
		have = append(have, string(raw[m.Key.Start:m.Key.End]))
	}
	if fmt.Sprint(have) != fmt.Sprint(keys) {
		t.Fatalf("the client is asked %q, want %q: %s", have, keys, requests)
	}
}

// fails checks that a request failed for a reason, with a code.
func (q *request) fails(t *testing.T, code int, reason bridge.Reason) {
	t.Helper()
	got := q.answer(t)
	if !strings.Contains(got, fmt.Sprintf(`"id":%s,"error":{"code":%d,`, q.id, code)) || reason != "" && !strings.Contains(got, `"reason":"`+string(reason)+`"`) {
		t.Fatalf("request %s got %s, want error %d %s", q.id, got, code, reason)
	}
}

// completes has the server answer the call, and checks that a request gets it.
func (r *rig) completes(id string, q *request) {
	r.t.Helper()
	r.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"deployed"}]}}`)
	if got := q.result(r.t, "content"); got != `[{"type":"text","text":"deployed"}]` {
		r.t.Fatalf("request %s got %s", q.id, q.answer(r.t))
	}
}

const (
	yes      = `{"action":"accept","content":{"y":true}}`
	sampleOK = `{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}`
)

// die ends the server, and returns when the bridge knows.
func (r *rig) die() {
	r.server.live.die()
	synctest.Wait()
}
