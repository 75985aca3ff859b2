package back_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// host is a legacy session that declares everything and answers at once.
type host struct {
	asked  chan string // "method via NAME of the call's sink", or "method" on its own
	notes  chan string
	closed atomic.Int32
	sinks  map[bridge.Sink]string
}

func newHost() *host {
	return &host{asked: make(chan string, 99), notes: make(chan string, 999), sinks: map[bridge.Sink]string{}}
}

func (h *host) Declares(string) bool { return true }

func (h *host) Ask(c bridge.Questioner, m *framing.Message, via bridge.Sink) {
	h.asked <- strings.TrimSpace(m.MethodName() + " " + h.sinks[via])
	id := string(m.Bytes(m.ID))
	c.Answer([]byte(id), framing.Whole([]byte(`{"jsonrpc":"2.0","id":`+id+`,"result":{"roots":[]}}`)))
}

func (h *host) Withdraw(bridge.Questioner, *framing.Message, []byte) {}
func (h *host) Notify(f framing.Frame, _ string)                     { h.notes <- string(f.Bytes()) }
func (h *host) Listening() bool                                      { return false }
func (h *host) ConnClosed(*bridge.Conn)                              { h.closed.Add(1) }

// hosted makes a call one of a session's.
func (h *host) hosted(name string) func(*bridge.Exchange) {
	return func(ex *bridge.Exchange) {
		ex.Era, ex.Version, ex.Session = mcp.Legacy, mcp.LatestLegacy, h
		h.sinks[ex.Sink] = name
	}
}

func exclusive(_ *back.RemoteConfig, l *bridge.LinkConfig) { l.Exclusive, l.Want = true, mcp.Legacy }

// want waits for one of a channel that holds the text.
func awaitText(t *testing.T, from chan string, text string) string {
	t.Helper()
	late := time.After(remotePatience)
	for {
		select {
		case got := <-from:
			if strings.Contains(got, text) {
				return got
			}
		case <-late:
			t.Fatalf("%q did not come", text)
		}
	}
}

// The session id goes with everything behind initialize, the version from 2025-06-18 on; the GET stream is tried; the end is a DELETE
// (HTTP-L-02, HTTP-L-10, HTTP-L-19, HTTP-L-23, HTTP-L-24, translation 13.5).
func TestLegacyHeaders(t *testing.T) {
	t.Parallel()
	for version, header := range map[string]string{"2025-03-26": "", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			r := newRemoteRig(t, legacyServer(version, nil))
			r.call(mcp.ToolsCall, `"name":"t"`).want(`"result":{`)
			r.await(1, verb(http.MethodGet))
			if err := r.link.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			for _, q := range r.await(1, verb(http.MethodDelete)) {
				if q.Header.Get("Mcp-Session-Id") != "s1" {
					t.Errorf("DELETE of session %q", q.Header.Get("Mcp-Session-Id"))
				}
			}
			for _, q := range r.all(func(*seen) bool { return true }) {
				session, want := q.Header.Get("Mcp-Session-Id"), "s1"
				now, wantNow := q.Header.Get("Mcp-Protocol-Version"), header
				switch q.Method {
				case mcp.Discover:
					continue
				case mcp.Initialize:
					want, wantNow = "", ""
				}
				if session != want || now != wantNow || q.Header.Get("Mcp-Method") != "" || q.Header.Get("Mcp-Name") != "" {
					t.Errorf("%s %s: session %q, version %q, Mcp-Method %q", q.Verb, q.Method, session, now, q.Header.Get("Mcp-Method"))
				}
			}
		})
	}
}

// A server without sessions gets no session id and no DELETE (HTTP-L-18).
func TestLegacyWithoutSession(t *testing.T) {
	t.Parallel()
	r := newRemoteRig(t, legacyServer("2025-06-18", answers{mcp.Initialize: func(w http.ResponseWriter, q *seen) {
		sendResult(w, q, `{"protocolVersion":"2025-06-18","capabilities":{}}`)
	}}))
	r.call(mcp.ToolsCall, `"name":"t"`).want(`"result":{`)
	_ = r.link.Close(context.Background())
	if n := len(r.all(func(q *seen) bool { return q.Verb == http.MethodDelete || q.Header.Get("Mcp-Session-Id") != "" })); n != 0 {
		t.Errorf("%d requests name a session that there is not", n)
	}
}

// What is asked on the stream of a call belongs to that call, also when a younger one runs (HTTP-L-05, translation 5.10); what comes
// on the GET stream belongs to none. Answers are POSTs of their own (HTTP-L-03).
func TestAttributionByStream(t *testing.T) {
	t.Parallel()
	ask := make(chan struct{})
	r := newRemoteRig(t, legacyServer("2025-11-25", answers{
		mcp.ToolsCall: func(w http.ResponseWriter, q *seen) {
			if strings.Contains(q.Body, `"young"`) {
				<-q.ctx.Done()
				return
			}
			openStream(w)
			<-ask
			sendEvent(w, "", `{"jsonrpc":"2.0","id":"q1","method":"sampling/createMessage","params":{}}`)
			sendEvent(w, "", `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"of the old"}}`)
			<-q.ctx.Done()
		},
		http.MethodGet: func(w http.ResponseWriter, q *seen) {
			openStream(w)
			sendEvent(w, "", `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			<-q.ctx.Done()
		}}), exclusive)
	h := newHost()
	r.link.Attach(h)
	r.link.Initialized(t.Context(), r.conn())
	old := r.call(mcp.ToolsCall, `"name":"old"`, h.hosted("old"))
	r.call(mcp.ToolsCall, `"name":"young"`, h.hosted("young"))
	r.await(2, method(mcp.ToolsCall))
	close(ask)
	awaitText(t, h.asked, "sampling/createMessage old")
	if note := old.note(); !strings.Contains(note, "of the old") {
		t.Errorf("the old call got %s", note)
	}
	awaitText(t, h.notes, "list_changed")
	answered := r.await(1, func(q *seen) bool { return string(q.ID) == `"q1"` })[0]
	if answered.Verb != http.MethodPost || answered.Result == nil || answered.Header.Get("Mcp-Session-Id") != "s1" {
		t.Errorf("the answer was sent as %+v", answered)
	}
}

// A stream that ends before the answer is taken up with its last id, after as long as the server said (HTTP-L-09, HTTP-L-15).
func TestResume(t *testing.T) {
	t.Parallel()
	var ended, taken time.Time
	id := ""
	r := newRemoteRig(t, legacyServer("2025-11-25", answers{
		mcp.ToolsCall: func(w http.ResponseWriter, q *seen) {
			id = string(q.ID)
			openStream(w)
			sendEvent(w, "id: a1\nretry: 300\n", "")
			sendEvent(w, "id: a2\n", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+id+`,"progress":1}}`)
			ended = time.Now()
		},
		http.MethodGet: func(w http.ResponseWriter, q *seen) {
			switch q.Header.Get("Last-Event-Id") {
			case "a2":
				taken = time.Now()
				openStream(w)
				sendEvent(w, "id: a3\n", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+id+`,"progress":2}}`)
			case "a3":
				openStream(w)
				sendEvent(w, "id: a4\n", `{"jsonrpc":"2.0","id":`+id+`,"result":{"done":true}}`)
			default:
				w.WriteHeader(405)
			}
		}}))
	c := r.call(mcp.ToolsCall, `"name":"t"`)
	c.want(`"done":true`)
	if pause := taken.Sub(ended); pause < 290*time.Millisecond || pause > 950*time.Millisecond {
		t.Errorf("taken up after %v, the server said 300ms", pause)
	}
	if a, b := c.note(), c.note(); !strings.Contains(a, `"progress":1`) || !strings.Contains(b, `"progress":2`) {
		t.Errorf("progress %s, %s", a, b)
	}
	if n := len(r.all(method(mcp.ToolsCall))); n != 1 {
		t.Errorf("the call was sent %d times", n)
	}
}

// A stream that cannot be taken up loses its call, which is not sent again; a list is (STD-06, HTTP-L-09).
func TestResumeInVain(t *testing.T) {
	t.Parallel()
	broken := func(w http.ResponseWriter, _ *seen) {
		openStream(w)
		sendEvent(w, "id: a1\nretry: 1\n", "")
		cut(w)
	}
	r := newRemoteRig(t, legacyServer("2025-06-18", answers{mcp.ToolsCall: broken, mcp.PromptsList: broken}))
	r.call(mcp.ToolsCall, `"name":"t"`).want("back_disconnected")
	if n := len(r.all(method(mcp.ToolsCall))); n != 1 {
		t.Errorf("the call was sent %d times", n)
	}
	r.call(mcp.PromptsList, "").want("back_disconnected")
	if n := len(r.all(method(mcp.PromptsList))); n != 2 {
		t.Errorf("the list was asked for %d times, want 2", n)
	}
}

// Cancelling tells the server first, then the stream goes (HTTP-L-17, translation 10).
func TestLegacyCancel(t *testing.T) {
	t.Parallel()
	var told, gone atomic.Int64
	closed := make(chan struct{})
	r := newRemoteRig(t, legacyServer("2025-11-25", answers{
		mcp.ToolsCall: func(w http.ResponseWriter, q *seen) {
			openStream(w)
			<-q.ctx.Done()
			gone.Store(time.Now().UnixNano())
			close(closed)
		},
		mcp.Cancelled: func(w http.ResponseWriter, q *seen) { told.Store(time.Now().UnixNano()); w.WriteHeader(202) }}))
	c := r.call(mcp.ToolsCall, `"name":"t"`)
	sent := r.await(1, method(mcp.ToolsCall))[0]
	c.ticket.Cancel([]byte(`"enough"`))
	<-closed
	if q := r.await(1, method(mcp.Cancelled))[0]; !strings.Contains(q.Body, `"requestId":`+string(sent.ID)+`,"reason":"enough"`) {
		t.Errorf("cancelled with %s", q.Body)
	}
	if told.Load() == 0 || told.Load() > gone.Load() {
		t.Error("the stream went before the server was told")
	}
}

// forgetful is a server that has lost its session once it is told to; lost answers what names it.
func forgetful(lost func(http.ResponseWriter, *seen)) (script func(http.ResponseWriter, *seen), forget func()) {
	var generation atomic.Int32
	current := func() string { return fmt.Sprintf("s%d", generation.Load()) }
	return func(w http.ResponseWriter, q *seen) {
		switch id := q.Header.Get("Mcp-Session-Id"); {
		case q.Method == mcp.Initialize:
			w.Header().Set("Mcp-Session-Id", current())
			sendResult(w, q, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}}}`)
		case q.Method == mcp.Discover:
			w.WriteHeader(400)
		case id != current():
			lost(w, q)
		default:
			legacyServer("2025-11-25", nil)(w, q)
		}
	}, func() { generation.Add(1) }
}

// A session that the server has lost is replaced: the request that found out is sent again, the level and the subscriptions are restored,
// and the connection goes on (HTTP-L-22, translation 11.5). The status may also be a 400 that speaks of the session.
func TestSessionLost(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]func(http.ResponseWriter, *seen){
		"404": func(w http.ResponseWriter, _ *seen) { w.WriteHeader(404) },
		"404 with an error": func(w http.ResponseWriter, _ *seen) {
			sendJSON(w, 404, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
		},
		"404 under another id": func(w http.ResponseWriter, _ *seen) {
			sendJSON(w, 404, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`)
		},
		"404 under the id": func(w http.ResponseWriter, q *seen) {
			if q.ID == nil {
				w.WriteHeader(404)
				return
			}
			sendError(w, q, 404, -32001, "")
		},
		"400 as text": func(w http.ResponseWriter, _ *seen) { http.Error(w, "Bad Request: No valid session ID provided", 400) },
		"400": func(w http.ResponseWriter, _ *seen) {
			sendJSON(w, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script, forget := forgetful(lost)
			r := newRemoteRig(t, script, exclusive)
			h := newHost()
			r.link.Attach(h)
			c := r.conn()
			r.link.Initialized(t.Context(), c)
			r.await(1, verb(http.MethodGet))
			r.link.NoteLevel(mcp.ParseLevel("error"))
			r.link.NoteSubscription(h, []byte(`"x:y"`), true)
			forget()
			var calls []*caller
			for i := range 8 {
				calls = append(calls, r.call(mcp.ToolsCall, `"name":"t"`, h.hosted(fmt.Sprint(i))))
			}
			for _, call := range calls {
				call.want(`"result":{}`)
			}
			if n := len(r.all(method(mcp.Initialize))); n != 2 {
				t.Errorf("%d handshakes, want 2", n)
			}
			if r.conn() != c {
				t.Error("the connection was replaced")
			}
			r.await(2, method(mcp.Initialized))
			if q := r.await(1, method(mcp.SetLevel))[0]; !strings.Contains(q.Body, `"error"`) || q.Header.Get("Mcp-Session-Id") != "s1" {
				t.Errorf("level restored by %+v", q)
			}
			r.await(1, method(mcp.ResourcesSubscribe))
			awaitText(t, h.notes, "list_changed")
			awaitText(t, h.notes, "resources/updated")
			if h.closed.Load() == 0 {
				t.Error("what the lost session had asked is not withdrawn")
			}
		})
	}
}

// A server that comes back with another revision ends the connection: what clients were told of does not hold (design section 8).
func TestSessionLostAndRevision(t *testing.T) {
	t.Parallel()
	r := newRemoteRig(t, legacyServer("2025-11-25", nil))
	c := r.conn()
	r.play(legacyServer("2025-06-18", answers{mcp.ToolsCall: func(w http.ResponseWriter, q *seen) { w.WriteHeader(404) }}))
	r.call(mcp.ToolsCall, `"name":"t"`).want("back_terminated", "another revision")
	<-c.Done()
	if v := r.conn().Facts().Version; v != "2025-06-18" {
		t.Errorf("opened again at %s", v)
	}
}

// A server that cannot give a new session fails the request, once, and is asked again with the next.
func TestSessionLostAndAway(t *testing.T) {
	t.Parallel()
	script, forget := forgetful(func(w http.ResponseWriter, _ *seen) { w.WriteHeader(404) })
	r := newRemoteRig(t, script)
	r.conn()
	forget()
	r.play(func(w http.ResponseWriter, q *seen) {
		if q.Method == mcp.Initialize {
			w.WriteHeader(503)
			return
		}
		script(w, q)
	})
	r.call(mcp.ToolsCall, `"name":"t"`).want("back_unavailable")
	r.play(script)
	r.call(mcp.ToolsCall, `"name":"t"`).want(`"result":{`)
}

// The GET stream is opened again when it ends, from where it ended (HTTP-L-09, HTTP-L-14), and a server that has none is left alone.
func TestListenStream(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	r := newRemoteRig(t, legacyServer("2025-11-25", answers{http.MethodGet: func(w http.ResponseWriter, q *seen) {
		openStream(w)
		if n.Add(1) == 1 {
			sendEvent(w, "id: g1\nretry: 150\n", `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			return
		}
		sendEvent(w, "id: g2\n", `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
		<-q.ctx.Done()
	}}), exclusive)
	h := newHost()
	r.link.Attach(h)
	r.link.Initialized(t.Context(), r.conn())
	awaitText(t, h.notes, "tools/list_changed")
	awaitText(t, h.notes, "prompts/list_changed")
	if got := r.all(verb(http.MethodGet)); got[1].Header.Get("Last-Event-Id") != "g1" {
		t.Errorf("opened again from %q", got[1].Header.Get("Last-Event-Id"))
	}
}

// The client's own notifications/initialized reaches the server before any request of its (LEG-03), however slow the server takes it.
func TestInitializedFirst(t *testing.T) {
	t.Parallel()
	var greeted atomic.Bool
	r := newRemoteRig(t, legacyServer("2025-11-25", answers{
		mcp.Initialized: func(w http.ResponseWriter, _ *seen) {
			time.Sleep(50 * time.Millisecond) // a slow server, not a wait
			greeted.Store(true)
			w.WriteHeader(202)
		},
		mcp.ToolsCall: func(w http.ResponseWriter, q *seen) { sendResult(w, q, fmt.Sprintf(`{"greeted":%v}`, greeted.Load())) }}))
	r.call(mcp.ToolsCall, `"name":"t"`).want(`"greeted":true`)
}

// A list of answers, as a server of 2025-03-26 may send, is unpacked (case 10).
func TestAnswerInArray(t *testing.T) {
	t.Parallel()
	r := newRemoteRig(t, legacyServer("2025-03-26", answers{mcp.ToolsCall: func(w http.ResponseWriter, q *seen) {
		sendJSON(w, 200, "["+resultText(q, `{"n":1}`)+"]")
	}, mcp.PromptsGet: func(w http.ResponseWriter, _ *seen) { sendJSON(w, 200, "[]") }}))
	r.call(mcp.ToolsCall, `"name":"t"`).want(`"n":1`)
	r.call(mcp.PromptsGet, `"name":"t"`).want("peer_protocol_error")
}

// A legacy client before a server whose discovery names a legacy revision gets that (design decision 17); before a modern-only one the server
// never sees initialize (case 57).
func TestEraOfTheFront(t *testing.T) {
	t.Parallel()
	both := strings.Replace(remoteDiscovery, `["2026-07-28"]`, `["2026-07-28","2025-11-25"]`, 1)
	r := newRemoteRig(t, legacyServer("2025-11-25", answers{mcp.Discover: func(w http.ResponseWriter, q *seen) { sendResult(w, q, both) }}), wanting(mcp.Legacy))
	if f := r.conn().Facts(); f.Era != mcp.Legacy {
		t.Errorf("a server of both eras is opened as %v for a legacy client", f.Era)
	}
	only := newRemoteRig(t, modernServer(nil), wanting(mcp.Legacy))
	if f := only.conn().Facts(); f.Era != mcp.Modern || len(only.all(method(mcp.Initialize))) != 0 {
		t.Errorf("opened as %v: %v", f.Era, only.trace())
	}
}

// What was found out is remembered, and forgotten when it fails; a pinned era is not asked for (VER-07, VER-26).
func TestRemoteVerdict(t *testing.T) {
	t.Parallel()
	r := newRemoteRig(t, legacyServer("2025-11-25", nil))
	r.conn()
	_ = r.link.Halt(context.Background())
	<-closedConn(r)
	r.conn()
	if n := len(r.all(method(mcp.Discover))); n != 1 {
		t.Errorf("%d probes, want one", n)
	}
	_ = r.link.Halt(context.Background())
	<-closedConn(r)
	r.play(modernServer(nil))
	if f := r.conn().Facts(); f.Era != mcp.Modern {
		t.Errorf("a server that has become modern is opened as %v", f.Era)
	}
	pinned := newRemoteRig(t, legacyServer("2025-11-25", nil), configured(func(c *back.RemoteConfig) { c.Protocol = mcp.Legacy }))
	pinned.conn()
	if n := len(pinned.all(method(mcp.Discover))); n != 0 {
		t.Errorf("%d probes of a server whose era is configured", n)
	}
	modern := newRemoteRig(t, legacyServer("2025-11-25", nil), configured(func(c *back.RemoteConfig) { c.Protocol = mcp.Modern }))
	if _, err := modern.link.Conn(t.Context()); err == nil || !strings.Contains(err.Message, "setting protocol") || len(modern.all(method(mcp.Initialize))) != 0 {
		t.Errorf("a legacy server that is configured as modern: %v, %v", err, modern.trace())
	}
}

// closedConn is closed when the link has no connection.
func closedConn(r *remoteRig) <-chan struct{} {
	if c := r.link.Live(); c != nil {
		return c.Done()
	}
	done := make(chan struct{})
	close(done)
	return done
}

// A method that a server with sessions does not know, told by 404, is no lost session.
func TestUnknownMethodIsNoLostSession(t *testing.T) {
	t.Parallel()
	r := newRemoteRig(t, legacyServer("2025-11-25", answers{"x/y": func(w http.ResponseWriter, q *seen) {
		sendError(w, q, 404, mcp.CodeMethodNotFound, "")
	}}))
	r.call("x/y", "").want(`"code":-32601`)
	if n := len(r.all(method(mcp.Initialize))); n != 1 {
		t.Errorf("%d handshakes", n)
	}
}

// An answer is delivered when it is there, not when the server ends the stream behind it (HTTP-M-11 binds servers only).
func TestStreamLeftOpen(t *testing.T) {
	t.Parallel()
	r := newRemoteRig(t, legacyServer("2025-11-25", answers{mcp.ToolsCall: func(w http.ResponseWriter, q *seen) {
		openStream(w)
		sendEvent(w, "", resultText(q, `{"n":1}`))
		<-q.ctx.Done()
	}}))
	r.call(mcp.ToolsCall, `"name":"t"`).want(`"n":1`) // the server's script would not end by itself
	began := time.Now()
	r.call(mcp.ToolsCall, `"name":"t"`).want(`"n":1`)
	if took := time.Since(began); took > 250*time.Millisecond {
		t.Errorf("the answer took %v", took)
	}
}
