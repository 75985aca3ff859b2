package back_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// remotePatience bounds every wait of a test for something that must happen.
const remotePatience = 10 * time.Second

// seen is one HTTP request as the scripted server got it.
type seen struct {
	Verb, Path string
	Header     http.Header
	Body       string
	ID         json.RawMessage
	Method     string
	Params     json.RawMessage
	Result     json.RawMessage
	ctx        context.Context
}

// remoteRig is a scripted server over real HTTP and one link to it.
type remoteRig struct {
	t      *testing.T
	srv    *httptest.Server
	remote *back.Remote
	link   *bridge.Link
	stop   context.CancelFunc

	mu      sync.Mutex
	script  func(w http.ResponseWriter, q *seen)
	seen    []*seen
	changed chan struct{}
	events  []bridge.Event
}

type rigOption func(*back.RemoteConfig, *bridge.LinkConfig)

func newRemoteRig(t *testing.T, script func(http.ResponseWriter, *seen), options ...rigOption) *remoteRig {
	t.Helper()
	r := &remoteRig{t: t, script: script, changed: make(chan struct{})}
	r.srv = httptest.NewServer(http.HandlerFunc(r.serve))
	cfg := back.RemoteConfig{Name: "far", URL: r.srv.URL + "/mcp"}
	link := bridge.LinkConfig{Name: "far", Want: mcp.Modern, Remote: true, Events: r.event,
		Params: era.InitializeParams(mcp.LatestLegacy, nil, nil)}
	for _, o := range options {
		o(&cfg, &link)
	}
	link.Limits = cfg.Limits
	var err error
	if r.remote, err = back.NewRemote(cfg); err != nil {
		t.Fatal(err)
	}
	link.Back = r.remote.Back()
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	r.link = bridge.NewLink(ctx, link)
	t.Cleanup(r.end)
	return r
}

func wanting(e mcp.Era) rigOption {
	return func(_ *back.RemoteConfig, l *bridge.LinkConfig) { l.Want = e }
}

func configured(f func(*back.RemoteConfig)) rigOption {
	return func(c *back.RemoteConfig, _ *bridge.LinkConfig) { f(c) }
}

func (r *remoteRig) end() {
	ctx, stop := context.WithTimeout(context.Background(), remotePatience)
	defer stop()
	if err := r.link.Close(ctx); err != nil {
		r.t.Errorf("cannot close the link: %v", err)
	}
	r.remote.Close()
	r.stop()
	r.srv.CloseClientConnections()
	r.srv.Close()
}

func (r *remoteRig) event(e bridge.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *remoteRig) serve(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	q := &seen{Verb: req.Method, Path: req.URL.RequestURI(), Header: req.Header, Body: string(body), ctx: req.Context()}
	_ = json.Unmarshal(body, q)
	r.mu.Lock()
	r.seen = append(r.seen, q)
	close(r.changed)
	r.changed = make(chan struct{})
	script := r.script
	r.mu.Unlock()
	script(w, q)
}

// play replaces the script.
func (r *remoteRig) play(script func(http.ResponseWriter, *seen)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script = script
}

// all returns the requests that fit so far.
func (r *remoteRig) all(fits func(*seen) bool) (list []*seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.seen {
		if fits(q) {
			list = append(list, q)
		}
	}
	return list
}

func method(name string) func(*seen) bool { return func(q *seen) bool { return q.Method == name } }
func verb(name string) func(*seen) bool   { return func(q *seen) bool { return q.Verb == name } }

// await waits until n requests fit.
func (r *remoteRig) await(n int, fits func(*seen) bool) []*seen {
	r.t.Helper()
	late := time.After(remotePatience)
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if list := r.all(fits); len(list) >= n {
			return list
		}
		select {
		case <-changed:
		case <-late:
			r.t.Fatalf("the server did not get %d such requests; it got %v", n, r.trace())
		}
	}
}

// trace names all requests in order.
func (r *remoteRig) trace() (list []string) {
	for _, q := range r.all(func(*seen) bool { return true }) {
		name := q.Method
		if name == "" {
			name = "-"
		}
		list = append(list, q.Verb+" "+name)
	}
	return list
}

func (r *remoteRig) conn() *bridge.Conn {
	r.t.Helper()
	c, err := r.link.Conn(context.Background())
	if err != nil {
		r.t.Fatalf("cannot open the link: %v", err)
	}
	return c
}

// caller is a client's request and what came back.
type caller struct {
	t      *testing.T
	ticket bridge.Ticket
	answer chan bridge.Answer
	notes  chan string
	asks   chan string
}

func (c *caller) Notify(f framing.Frame, _ string) { c.notes <- string(f.Bytes()) }
func (c *caller) Ask(f framing.Frame)              { c.asks <- string(f.Bytes()) }
func (c *caller) Finish(a bridge.Answer)           { c.answer <- a }

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":"p"}`

// call dispatches a modern client's request; members are those of params beside _meta.
func (r *remoteRig) call(method, members string, change ...func(*bridge.Exchange)) *caller {
	r.t.Helper()
	if members != "" {
		members = "," + members
	}
	m, err := framing.Scan([]byte(`{"jsonrpc":"2.0","id":"mine","method":"` + method + `","params":{` + envelope + members + `}}`))
	if err != nil {
		r.t.Fatal(err)
	}
	c := &caller{t: r.t, answer: make(chan bridge.Answer, 9), notes: make(chan string, 99), asks: make(chan string, 99)}
	ex := &bridge.Exchange{Message: m, Era: mcp.Modern, Version: mcp.LatestModern, Method: method, Traits: mcp.TraitsOf(method),
		Principal: bridge.Local, Level: mcp.NoLevel, Sink: c}
	for _, f := range change {
		f(ex)
	}
	var failed *bridge.Error
	if c.ticket, failed = r.conn().Dispatch(context.Background(), ex); failed != nil {
		c.answer <- bridge.Answer{Frame: framing.Whole(failed.WithID([]byte(`"mine"`)).Body(false)), Status: failed.HTTPStatus()}
	}
	return c
}

// note waits for the next notification.
func (c *caller) note() string {
	c.t.Helper()
	select {
	case n := <-c.notes:
		return n
	case <-time.After(remotePatience):
		c.t.Fatal("no notification came")
		return ""
	}
}

// result waits for the one answer.
func (c *caller) result() (string, int) {
	c.t.Helper()
	select {
	case a := <-c.answer:
		return string(a.Frame.Bytes()), a.Status
	case <-time.After(remotePatience):
		c.t.Fatal("no answer came")
		return "", 0
	}
}

// want checks that the answer holds all of the texts.
func (c *caller) want(texts ...string) string {
	c.t.Helper()
	got, _ := c.result()
	for _, text := range texts {
		if !strings.Contains(got, text) {
			c.t.Errorf("answer %s lacks %s", got, text)
		}
	}
	if !strings.Contains(got, `"id":"mine"`) {
		c.t.Errorf("answer %s has not the client's id", got)
	}
	select {
	case second := <-c.answer:
		c.t.Errorf("a second answer: %s", second.Frame.Bytes())
	default:
	}
	return got
}

// Ways to answer.

func sendJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func sendResult(w http.ResponseWriter, q *seen, result string) {
	sendJSON(w, 200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result))
}

func sendError(w http.ResponseWriter, q *seen, status, code int, data string) {
	if data != "" {
		data = `,"data":` + data
	}
	sendJSON(w, status, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"x"%s}}`, q.ID, code, data))
}

// openStream begins an event stream.
func openStream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(200)
	w.(http.Flusher).Flush()
}

// sendEvent writes one event; head are its other lines.
func sendEvent(w http.ResponseWriter, head, data string) {
	_, _ = io.WriteString(w, head+"data: "+data+"\n\n")
	w.(http.Flusher).Flush()
}

func resultText(q *seen, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result)
}

// cut ends the connection without a word.
func cut(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

const remoteDiscovery = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`

type answers map[string]func(http.ResponseWriter, *seen)

// modernServer answers remoteDiscovery, and methods as on says.
func modernServer(on answers) func(http.ResponseWriter, *seen) {
	return func(w http.ResponseWriter, q *seen) {
		switch f := on[q.Method]; {
		case f != nil:
			f(w, q)
		case q.Method == mcp.Discover:
			sendResult(w, q, remoteDiscovery)
		case q.Method == mcp.ToolsList:
			sendResult(w, q, `{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}`)
		default:
			sendError(w, q, 404, mcp.CodeMethodNotFound, "")
		}
	}
}

// legacyServer is a server of an older revision with a session; on may answer methods, and verbs that have none.
func legacyServer(version string, on answers) func(http.ResponseWriter, *seen) {
	return func(w http.ResponseWriter, q *seen) {
		key := q.Method
		if key == "" {
			key = q.Verb
		}
		switch f := on[key]; {
		case f != nil:
			f(w, q)
		case q.Method == mcp.Discover:
			w.WriteHeader(400)
		case q.Method == mcp.Initialize:
			w.Header().Set("Mcp-Session-Id", "s1")
			sendResult(w, q, `{"protocolVersion":"`+version+`","capabilities":{"tools":{},"resources":{"subscribe":true},"logging":{}},"serverInfo":{"name":"s","version":"1"}}`)
		case strings.HasPrefix(q.Method, "notifications/"), q.Method == "" && q.Verb == http.MethodPost:
			w.WriteHeader(202)
		case q.Verb != http.MethodPost:
			w.WriteHeader(405)
		default:
			sendResult(w, q, `{}`)
		}
	}
}
