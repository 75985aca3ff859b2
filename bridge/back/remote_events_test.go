package back_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/mcp"
)

// oldServer is one of HTTP+SSE: a stream by GET, and a POST for every message, answered on the stream.
type oldServer struct {
	endpoint string
	post     func(w http.ResponseWriter, q *seen) bool // answers a POST itself if it returns true

	mu     sync.Mutex
	stream http.ResponseWriter
	end    chan struct{}
	n      int
}

func (s *oldServer) serve(w http.ResponseWriter, q *seen) {
	switch {
	case q.Verb == http.MethodGet:
		openStream(w)
		_, _ = w.Write([]byte(": hello\n\nevent: endpoint\n"))
		s.mu.Lock()
		s.stream, s.end = w, make(chan struct{})
		s.n++
		end := s.end
		sendEvent(w, "", s.endpoint)
		s.mu.Unlock()
		select {
		case <-end:
		case <-q.ctx.Done():
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stream == w {
			s.stream = nil
		}
	case q.Path == "/base/sse":
		w.WriteHeader(405)
	case s.post != nil && s.post(w, q):
	default:
		w.WriteHeader(202)
		_, _ = w.Write([]byte("Accepted"))
		s.answer(q)
	}
}

func (s *oldServer) answer(q *seen) {
	switch q.Method {
	case mcp.Initialize:
		s.say(resultText(q, `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`))
	case mcp.ToolsCall:
		s.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(q.ID) + `,"progress":1}}`)
		s.say(resultText(q, `{"n":1}`))
	}
}

func (s *oldServer) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != nil {
		sendEvent(s.stream, "", text)
	}
}

// hangUp ends the stream.
func (s *oldServer) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.end)
}

func atEvents(c *back.RemoteConfig, _ *bridge.LinkConfig) {
	c.URL = strings.TrimSuffix(c.URL, "/mcp") + "/base/sse"
}

// The transport of 2024-11-05: relative endpoint below a prefix, answers on the stream (SSE-01 to SSE-04, VER-36, case 44), and the way to it
// is remembered.
func TestEventsTransport(t *testing.T) {
	t.Parallel()
	for endpoint, path := range map[string]string{"messages?sid=1": "/base/messages?sid=1", "/m": "/m"} {
		s := &oldServer{endpoint: endpoint}
		r := newRemoteRig(t, s.serve, atEvents)
		c := r.call(mcp.ToolsCall, `"name":"t"`)
		c.want(`"n":1`)
		if note := c.note(); !strings.Contains(note, `"progressToken":"p"`) {
			t.Errorf("progress %s", note)
		}
		for _, q := range r.all(method(mcp.ToolsCall)) {
			if q.Path != path || q.Header.Get("Mcp-Session-Id") != "" {
				t.Errorf("the call went to %s with %v", q.Path, q.Header)
			}
		}
		_ = r.link.Halt(t.Context())
		<-closedConn(r)
		before := len(r.trace())
		r.conn()
		if next := r.trace()[before]; next != "GET -" {
			t.Errorf("the second opening begins with %s", next)
		}
	}
}

// type "sse" in the configuration begins with the stream, and falls back to what the server has (case 89).
func TestEventsFirst(t *testing.T) {
	t.Parallel()
	first := configured(func(c *back.RemoteConfig) { c.EventsFirst = true })
	r := newRemoteRig(t, (&oldServer{endpoint: "/m"}).serve, atEvents, first)
	r.conn()
	if got := r.trace(); got[0] != "GET -" || got[1] != "POST initialize" {
		t.Errorf("it began with %v", got)
	}
	newer := newRemoteRig(t, modernServer(nil), first)
	newer.play(func(w http.ResponseWriter, q *seen) {
		if q.Verb == http.MethodGet {
			w.WriteHeader(405)
			return
		}
		modernServer(nil)(w, q)
	})
	if f := newer.conn().Facts(); f.Era != mcp.Modern {
		t.Errorf("opened as %v", f.Era)
	}
}

// A POST that is refused fails its call at once: no answer will come on the stream (translation 18, F1-B5). A server that does not know the
// session has ended it.
func TestEventsPostRefused(t *testing.T) {
	t.Parallel()
	status := 400
	s := &oldServer{endpoint: "/m", post: func(w http.ResponseWriter, q *seen) bool {
		if q.Method == mcp.ToolsCall {
			w.WriteHeader(status)
		}
		return q.Method == mcp.ToolsCall
	}}
	r := newRemoteRig(t, s.serve, atEvents)
	for _, tc := range []struct {
		status int
		want   string
	}{{400, "back_http_status"}, {500, "back_unavailable"}, {401, "back_unauthorized"}} {
		status = tc.status
		r.call(mcp.ToolsCall, `"name":"t"`).want(tc.want)
	}
	c := r.conn()
	status = 404
	r.call(mcp.ToolsCall, `"name":"t"`).want("back_http_status")
	<-c.Done()
}

// The end of the stream is the end of the connection: open calls fail at once, and the next message opens another (SSE-07, SSE-11, translation 18).
func TestEventsStreamEnds(t *testing.T) {
	t.Parallel()
	s := &oldServer{endpoint: "/m", post: func(w http.ResponseWriter, q *seen) bool {
		if strings.Contains(q.Body, `"hang"`) {
			w.WriteHeader(202)
		}
		return strings.Contains(q.Body, `"hang"`)
	}}
	r := newRemoteRig(t, s.serve, atEvents)
	c := r.call(mcp.ToolsCall, `"name":"hang"`)
	r.await(1, method(mcp.ToolsCall))
	s.hangUp()
	c.want("back_terminated", "closed its event stream")
	r.call(mcp.ToolsCall, `"name":"t"`).want(`"n":1`)
	if s.n != 2 {
		t.Errorf("%d streams, want 2", s.n)
	}
}

// Cancelling is a POST with the server's id (translation 10).
func TestEventsCancel(t *testing.T) {
	t.Parallel()
	s := &oldServer{endpoint: "/m", post: func(w http.ResponseWriter, q *seen) bool {
		if q.Method == mcp.ToolsCall {
			w.WriteHeader(202)
		}
		return q.Method == mcp.ToolsCall
	}}
	r := newRemoteRig(t, s.serve, atEvents)
	c := r.call(mcp.ToolsCall, `"name":"t"`)
	sent := r.await(1, method(mcp.ToolsCall))[0]
	c.ticket.Cancel(nil)
	if q := r.await(1, method(mcp.Cancelled))[0]; !strings.Contains(q.Body, `"requestId":`+string(sent.ID)) {
		t.Errorf("cancelled with %s", q.Body)
	}
	select {
	case a := <-c.answer:
		t.Errorf("a cancelled call was answered: %s", a.Frame.Bytes())
	case <-time.After(20 * time.Millisecond): // nothing may come; this shows it only if it comes at once
	}
}
