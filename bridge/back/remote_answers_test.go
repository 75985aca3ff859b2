package back_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/mcp"
)

// Every kind of answer to a tool call, which is sent once whatever comes, save where it was certainly not carried out (STD-06, HTTP-M-08,
// FRM-13, translation 11.5).
func TestAnswers(t *testing.T) {
	t.Parallel()
	body := func(status int, kind, text string) func(http.ResponseWriter, *seen) {
		return func(w http.ResponseWriter, q *seen) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("WWW-Authenticate", "Bearer x")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(strings.ReplaceAll(text, "$", string(q.ID))))
		}
	}
	const json, events = "application/json", "text/event-stream"
	const good = `{"jsonrpc":"2.0","id":$,"result":{"resultType":"complete","n":1.0}}`
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, *seen)
		want   []string
		status int
	}{
		"json":                 {body(200, json, good), []string{`"n":1.0`}, 200},
		"json with parameters": {body(200, "Application/JSON; charset=utf-8", good), []string{`"n":1.0`}, 200},
		"id as text":           {body(200, json, strings.Replace(good, "$", `"$"`, 1)), []string{`"n":1.0`}, 200},
		"events":               {body(200, events, ": hello\nid: 1\ndata:\n\nevent: other\ndata: x\n\ndata: "+good+"\n\n"), []string{`"n":1.0`}, 200},
		"error":                {body(200, json, `{"jsonrpc":"2.0","id":$,"error":{"code":-7,"message":"no"}}`), []string{`"code":-7`}, 200},
		"error with 400":       {body(400, json, `{"jsonrpc":"2.0","id":$,"error":{"code":-32602,"message":"no"}}`), []string{`"code":-32602`}, 200},
		"error with 404":       {body(404, json, `{"jsonrpc":"2.0","id":$,"error":{"code":-32601,"message":"no"}}`), []string{`"code":-32601`}, 404},
		"error with 500":       {body(500, json, `{"jsonrpc":"2.0","id":$,"error":{"code":-32603,"message":"boom"}}`), []string{"boom"}, 200},
		"error without id":     {body(400, json, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`), []string{`"code":-32000`}, 200},
		"another's id":         {body(200, json, strings.Replace(good, "$", "999", 1)), []string{"peer_protocol_error"}, 200},
		"another's id, 400":    {body(400, json, `{"jsonrpc":"2.0","id":999,"error":{"code":-32020,"message":"no"}}`), []string{"back_http_status", `"status":400`}, 200},
		"result and error":     {body(200, json, `{"jsonrpc":"2.0","id":$,"result":{},"error":{"code":1,"message":"x"}}`), []string{"peer_protocol_error"}, 200},
		"no json":              {body(200, json, `{"jsonrpc"`), []string{"peer_protocol_error"}, 200},
		"request as answer":    {body(200, json, `{"jsonrpc":"2.0","id":$,"method":"ping"}`), []string{"peer_protocol_error"}, 200},
		"html":                 {body(200, "text/html", "<html>"), []string{"peer_protocol_error", "text/html"}, 200},
		"accepted":             {body(202, "", ""), []string{"peer_protocol_error"}, 200},
		"odd result":           {body(200, json, `{"jsonrpc":"2.0","id":$,"result":7}`), []string{"peer_protocol_error"}, 200},
		"401":                  {body(401, json, `{"error":"invalid_token"}`), []string{"back_unauthorized", `"status":401`}, 200},
		"403 with an error":    {body(403, json, `{"jsonrpc":"2.0","id":$,"error":{"code":-32603,"message":"x"}}`), []string{"back_unauthorized"}, 200},
		"422":                  {body(422, "text/plain", "what"), []string{"back_http_status", `"status":422`}, 200},
		"500":                  {body(500, "text/html", "oops"), []string{"back_unavailable", `"status":500`}, 200},
		"503":                  {body(503, "", ""), []string{"back_unavailable"}, 200},
		"cut before":           {func(w http.ResponseWriter, _ *seen) { cut(w) }, []string{"back_disconnected"}, 200},
		"cut stream": {func(w http.ResponseWriter, _ *seen) {
			openStream(w)
			sendEvent(w, "id: 7\n", `{"jsonrpc":"2.0","method":"x"}`)
			cut(w)
		}, []string{"back_disconnected"}, 200},
		"empty stream": {func(w http.ResponseWriter, _ *seen) { openStream(w) }, []string{"back_disconnected"}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemoteRig(t, modernServer(answers{mcp.ToolsCall: tc.answer}))
			c := r.call(mcp.ToolsCall, `"name":"t"`)
			got, status := c.result()
			for _, text := range append(tc.want, `"id":"mine"`) {
				if !strings.Contains(got, text) {
					t.Errorf("answer %s lacks %s", got, text)
				}
			}
			if status != tc.status {
				t.Errorf("status %d, want %d", status, tc.status)
			}
			if n := len(r.all(method(mcp.ToolsCall))); n != 1 {
				t.Errorf("the call was sent %d times", n)
			}
			if n := len(r.all(verb(http.MethodGet))); n != 0 {
				t.Errorf("a modern stream was resumed (HTTP-M-15)")
			}
			if name == "401" && r.remote.State().Challenge != "Bearer x" {
				t.Errorf("challenge %q is not kept for a sign-in", r.remote.State().Challenge)
			}
		})
	}
}

// Reads and lists are tried once more when the server was away, under another id (STD-06, HTTP-M-16); a short pause that the server asks for is
// kept for any request, as 429 tells that it was not carried out (translation 11.5).
func TestSecondTries(t *testing.T) {
	t.Parallel()
	refuse := func(status int, after string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.Header().Set("Retry-After", after); w.WriteHeader(status) }
	}
	for name, tc := range map[string]struct {
		method string
		fails  func(http.ResponseWriter)
		tries  int
		want   string
	}{
		"list, cut":         {mcp.PromptsList, cut, 2, `"ok":1`},
		"read, 503":         {mcp.ResourcesRead, refuse(503, ""), 2, `"ok":1`},
		"completion, 502":   {mcp.Complete, refuse(502, ""), 2, `"ok":1`},
		"list, 503, soon":   {mcp.PromptsList, refuse(503, "1"), 2, `"ok":1`},
		"list, 503, late":   {mcp.PromptsList, refuse(503, "6"), 1, "back_unavailable"},
		"call, 429, soon":   {mcp.ToolsCall, refuse(429, "1"), 2, `"ok":1`},
		"call, 429, late":   {mcp.ToolsCall, refuse(429, "6"), 1, `"status":429`},
		"call, 503":         {mcp.ToolsCall, refuse(503, "1"), 1, "back_unavailable"},
		"prompt, cut":       {mcp.PromptsGet, cut, 1, "back_disconnected"},
		"list, 404 no body": {mcp.PromptsList, refuse(404, ""), 1, "back_http_status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int32
			on := func(w http.ResponseWriter, q *seen) {
				if n.Add(1) == 1 {
					tc.fails(w)
					return
				}
				sendResult(w, q, `{"resultType":"complete","ok":1,"contents":[],"ttlMs":0,"cacheScope":"private"}`)
			}
			r := newRemoteRig(t, modernServer(answers{tc.method: on}))
			r.call(tc.method, `"name":"t","uri":"x:y"`).want(tc.want)
			sent := r.all(method(tc.method))
			if len(sent) != tc.tries || tc.tries == 2 && string(sent[0].ID) == string(sent[1].ID) {
				t.Errorf("sent %d times, want %d with ids of their own", len(sent), tc.tries)
			}
		})
	}
}

// A server nobody can reach is an error with 503 that says so, without the query of its address, and nothing is opened (SEC-09).
func TestUnreachable(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	r := newRemoteRig(t, modernServer(nil), configured(func(c *back.RemoteConfig) {
		c.URL = "http://" + address + "/mcp?key=hunter22"
	}))
	_, failed := r.link.Conn(t.Context())
	if failed == nil || failed.Reason != bridge.ReasonBackUnavailable || failed.Status != 503 || strings.Contains(failed.Message, "hunter22") ||
		!strings.Contains(failed.Message, "connection refused") {
		t.Errorf("%+v", failed)
	}
	if s := r.remote.State(); !strings.Contains(s.Problem, "connection refused") || strings.Contains(s.Problem, "hunter22") {
		t.Errorf("state %+v", s)
	}
}

// Secrets of the configuration do not come back in errors (SEC-09).
func TestRemoteSecrets(t *testing.T) {
	t.Parallel()
	r := newRemoteRig(t, func(w http.ResponseWriter, q *seen) {
		sendError(w, q, 400, -32000, "")
	}, configured(func(c *back.RemoteConfig) { c.Headers = map[string]string{"X-Key": "hunter22-x"} }))
	r.play(func(w http.ResponseWriter, q *seen) {
		sendJSON(w, 200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"bad key hunter22-x"}}`, q.ID))
	})
	_, failed := r.link.Conn(t.Context())
	if failed == nil || strings.Contains(failed.Message, "hunter22") || !strings.Contains(failed.Message, "bad key ***") {
		t.Errorf("%+v", failed)
	}
}

// 307 and 308 are followed on the same origin with method and body, at most five times; the credentials of the configuration go to no
// other origin, and a redirect that loses the body is an error that names the target (VER-38, case 34).
func TestRedirects(t *testing.T) {
	t.Parallel()
	foreign := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another origin got %s with Authorization %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer foreign.Close()
	for name, tc := range map[string]struct {
		to     func(path string) (string, int)
		opens  bool
		reason string
	}{
		"slash":        {func(p string) (string, int) { return p + "/", 307 }, true, ""},
		"permanent":    {func(string) (string, int) { return "/x/mcp/?a=b%2Fc", 308 }, true, ""},
		"endless":      {func(p string) (string, int) { return p, 307 }, false, "more than 5 times"},
		"other origin": {func(string) (string, int) { return foreign.URL + "/mcp", 307 }, false, foreign.URL},
		"lost body":    {func(string) (string, int) { return "/login", 302 }, false, "/login"},
		"no location":  {func(string) (string, int) { return "", 307 }, false, "Location"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemoteRig(t, func(w http.ResponseWriter, q *seen) {
				to, status := tc.to(q.Path)
				if q.Path != "/mcp" && tc.opens {
					modernServer(nil)(w, q)
					return
				}
				if to != "" {
					w.Header().Set("Location", to)
				}
				w.WriteHeader(status)
			}, configured(func(c *back.RemoteConfig) { c.Headers = map[string]string{"Authorization": "Bearer abc"} }))
			_, failed := r.link.Conn(t.Context())
			switch {
			case tc.opens && failed != nil:
				t.Fatal(failed)
			case tc.opens:
				last := r.all(method(mcp.Discover))
				if q := last[len(last)-1]; q.Header.Get("Authorization") != "Bearer abc" || q.Body != last[0].Body {
					t.Errorf("the body or the credentials did not come along: %+v", q)
				}
			case failed == nil || !strings.Contains(failed.Message, tc.reason):
				t.Errorf("error %v, want %q in it", failed, tc.reason)
			}
		})
	}
}

// Cancelling a call closes its stream, and nothing is sent (HTTP-M-17, HTTP-M-18, translation 10).
func TestModernCancel(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	r := newRemoteRig(t, modernServer(answers{mcp.ToolsCall: func(w http.ResponseWriter, q *seen) {
		openStream(w)
		sendEvent(w, "", fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, q.ID))
		<-q.ctx.Done()
		close(gone)
	}}))
	c := r.call(mcp.ToolsCall, `"name":"t"`)
	if note := c.note(); !strings.Contains(note, `"progressToken":"p"`) {
		t.Errorf("progress %s has not the client's token", note)
	}
	if !c.ticket.Cancel([]byte(`"enough"`)) {
		t.Fatal("the call is over")
	}
	select {
	case <-gone:
	case <-time.After(remotePatience):
		t.Fatal("the stream stays open")
	}
	for _, q := range r.trace() {
		if strings.Contains(q, "notifications/") {
			t.Errorf("the server was sent %s", q)
		}
	}
}

// A request of the server on a stream breaks the protocol and is not answered (HTTP-M-10, FRM-16); what it logs goes to the request on
// whose stream it came, although others are open (HTTP-M-09, HTTP-M-12).
func TestModernStream(t *testing.T) {
	t.Parallel()
	var both sync.WaitGroup
	both.Add(2)
	r := newRemoteRig(t, modernServer(answers{mcp.ToolsCall: func(w http.ResponseWriter, q *seen) {
		both.Done()
		both.Wait()
		openStream(w)
		sendEvent(w, "", `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}`)
		sendEvent(w, "", `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":`+string(q.ID)+`}}`)
		sendEvent(w, "", resultText(q, `{"resultType":"complete","of":`+string(q.ID)+`}`))
	}}))
	loud := func(ex *bridge.Exchange) { ex.Level = mcp.ParseLevel("debug") }
	a, b := r.call(mcp.ToolsCall, `"name":"a"`, loud), r.call(mcp.ToolsCall, `"name":"b"`, loud)
	for _, c := range []*caller{a, b} {
		answer := c.want(`"of":`)
		_, id, _ := strings.Cut(answer, `"of":`)
		id, _, _ = strings.Cut(id, "}")
		if note := c.note(); !strings.Contains(note, `"data":`+id+"}") {
			t.Errorf("call %s got the message %s", id, note)
		}
	}
	if n := len(r.all(func(q *seen) bool { return q.Method == "" })); n != 0 {
		t.Errorf("%d answers were sent to a modern server", n)
	}
}

// The limit of an answer, in JSON and as an event, at n and n+1 bytes (rule 4).
func TestAnswerLimit(t *testing.T) {
	t.Parallel()
	const limit = 2000
	for _, events := range []bool{false, true} {
		for _, over := range []int{0, 1} {
			r := newRemoteRig(t, modernServer(answers{mcp.PromptsGet: func(w http.ResponseWriter, q *seen) {
				empty := resultText(q, `{"resultType":"complete","x":""}`)
				text := resultText(q, `{"resultType":"complete","x":"`+strings.Repeat("x", limit+over-len(empty))+`"}`)
				if events {
					openStream(w)
					sendEvent(w, "", text)
					return
				}
				sendJSON(w, 200, text)
			}}), configured(func(c *back.RemoteConfig) { c.Limits.Line = limit }))
			want := `"x":"xxx`
			if over > 0 {
				want = "peer_protocol_error"
			}
			r.call(mcp.PromptsGet, `"name":"p"`).want(want)
		}
	}
}

// So many requests are under way at a time, and the next waits; a slot that is free again is its (rule 4).
func TestStreamLimit(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	r := newRemoteRig(t, modernServer(answers{mcp.PromptsGet: func(w http.ResponseWriter, q *seen) {
		select {
		case <-free:
		case <-q.ctx.Done():
		}
		echoes(w, q)
	}}), configured(func(c *back.RemoteConfig) { c.Streams, c.Limits.SendWait = 2, 200*time.Millisecond }))
	calls := []*caller{r.call(mcp.PromptsGet, `"name":"p"`), r.call(mcp.PromptsGet, `"name":"p"`)}
	r.await(2, method(mcp.PromptsGet))
	r.call(mcp.PromptsGet, `"name":"p"`).want("back_busy")
	close(free)
	for _, c := range calls {
		c.want(`"content":[]`)
	}
	r.call(mcp.PromptsGet, `"name":"p"`).want(`"content":[]`)
	if n := len(r.all(method(mcp.PromptsGet))); n != 3 {
		t.Errorf("%d requests reached the server, want 3", n)
	}
}

// What the messages under way hold together is bounded too; one alone always goes (rule 4).
func TestQueueLimit(t *testing.T) {
	t.Parallel()
	const limit = 4000
	for over, want := range []string{`"content":[]`, "back_busy"} {
		free := make(chan struct{})
		r := newRemoteRig(t, modernServer(answers{mcp.PromptsGet: func(w http.ResponseWriter, q *seen) {
			select {
			case <-free:
			case <-q.ctx.Done():
			}
			echoes(w, q)
		}}), configured(func(c *back.RemoteConfig) { c.Limits.Queue, c.Limits.SendWait = limit, 200*time.Millisecond }))
		first := r.call(mcp.PromptsGet, `"name":"p"`)
		size := len(r.await(1, method(mcp.PromptsGet))[0].Body)
		second := r.call(mcp.PromptsGet, `"name":"`+strings.Repeat("p", limit-2*size+1+over)+`"`)
		if over == 0 {
			if sent := r.await(2, method(mcp.PromptsGet)); len(sent[0].Body)+len(sent[1].Body) != limit {
				t.Fatalf("the test sends %d bytes, want %d", len(sent[0].Body)+len(sent[1].Body), limit)
			}
			close(free)
			second.want(want)
		} else {
			second.want(want)
			close(free)
		}
		first.want(`"content":[]`)
	}
}

// A server that has become a legacy one is found out, and the next message opens it as such (VER-07).
func TestEraChanges(t *testing.T) {
	t.Parallel()
	r := newRemoteRig(t, modernServer(nil))
	old := r.conn()
	r.play(func(w http.ResponseWriter, q *seen) {
		if q.Header.Get("Mcp-Method") != "" && q.Method != mcp.Discover {
			w.WriteHeader(400)
			return
		}
		legacyServer("2025-06-18", nil)(w, q)
	})
	r.call(mcp.PromptsGet, `"name":"p"`).want("back_http_status")
	select {
	case <-old.Done():
	case <-time.After(remotePatience):
		t.Fatal("the connection stays although the server changed its era")
	}
	if c := r.conn(); c.Facts().Era != mcp.Legacy {
		t.Errorf("opened as %v", c.Facts().Era)
	}
}

// Closing the link ends everything that is open, with one answer each (rules 3 and 5).
func TestRemoteClose(t *testing.T) {
	t.Parallel()
	r := newRemoteRig(t, modernServer(answers{mcp.ToolsCall: func(_ http.ResponseWriter, q *seen) { <-q.ctx.Done() }}))
	var calls []*caller
	for range 20 {
		calls = append(calls, r.call(mcp.ToolsCall, `"name":"t"`))
	}
	r.await(20, method(mcp.ToolsCall))
	ctx, stop := context.WithTimeout(context.Background(), remotePatience)
	defer stop()
	if err := r.link.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		c.want("stopping")
	}
}

// Where all slots are taken by requests that wait, cancellations and answers to the server's questions still go: they are what frees a slot.
func TestUrgentMessages(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	r := newRemoteRig(t, legacyServer("2025-11-25", answers{mcp.ToolsCall: func(w http.ResponseWriter, q *seen) {
		openStream(w)
		if strings.Contains(q.Body, `"hang"`) {
			<-q.ctx.Done()
			close(gone)
			return
		}
		sendEvent(w, "", `{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
		<-q.ctx.Done()
	}}), exclusive, configured(func(c *back.RemoteConfig) { c.Streams = 1 }))
	h := newHost()
	r.link.Attach(h)
	r.link.Initialized(t.Context(), r.conn())
	hanging := r.call(mcp.ToolsCall, `"name":"hang"`, h.hosted("hang"))
	r.await(1, method(mcp.ToolsCall))
	hanging.ticket.Cancel(nil)
	select {
	case <-gone:
	case <-time.After(remotePatience):
		t.Fatal("the cancellation does not reach the server")
	}
	r.call(mcp.ToolsCall, `"name":"asks"`, h.hosted("asks"))
	r.await(1, func(q *seen) bool { return string(q.ID) == `"q"` && q.Result != nil })
}
