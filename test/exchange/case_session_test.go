package exchange

import (
	"bytes"
	"fmt"
	"testing"

	"mcpbridge/config"
	"mcpbridge/test/internal/e2e"
	"mcpbridge/test/internal/jscan"
)

const listChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

// Unknown session id (HTTP-L-20, HTTP-L-21), and deleted ones; all methods.
func TestCase45UnknownSession(t *testing.T) {
	t.Parallel()
	b := start(t)
	gone := b.NewSession(t, "2025-11-25", "{}")
	if r := gone.Delete(t); r.Status != 204 {
		t.Errorf("DELETE: %d", r.Status)
	}
	list := []byte(`{"jsonrpc":"2.0","id":"x","method":"tools/list"}`)
	for _, id := range []string{"nope", gone.ID, gone.ID + "x", "=?base64?bm9wZQ==?="} {
		h := e2e.Header{"Mcp-Session-Id": id, "Mcp-Protocol-Version": "2025-11-25"}
		for _, verb := range []string{"POST", "GET", "DELETE"} {
			body := list
			if verb != "POST" {
				body = nil
			}
			if r := b.Do(t, verb, h, body); r.Status != 404 || r.Get(t, "error", "code") != "-32600" {
				t.Errorf("%s with %q: %d %s, want 404", verb, id, r.Status, r.Body)
			}
		}
	}
	for _, verb := range []string{"POST", "GET", "DELETE"} {
		body := list
		if verb != "POST" {
			body = nil
		}
		if r := b.Do(t, verb, e2e.Header{"Mcp-Protocol-Version": "2025-11-25"}, body); r.Status != 400 {
			t.Errorf("%s without session: %d, want 400", verb, r.Status)
		}
	}
}

// The same id twice in flight on one session: each gets its own answer.
func TestCase48SameIDTwice(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", "{}")
	child := b.Hub.Child(t, 0)
	one, two := legacyWaiting(t, s, child, "1", "A"), legacyWaiting(t, s, child, "1", "B")
	two.answer(t, "for B")
	if r := two.Wait(t); !bytes.Contains(r.Body, []byte("for B")) || r.Get(t, "id") != "1" {
		t.Errorf("B got %s", r.Body)
	}
	one.answer(t, "for A")
	if r := one.Wait(t); !bytes.Contains(r.Body, []byte("for A")) || r.Get(t, "id") != "1" {
		t.Errorf("A got %s", r.Body)
	}
	wantOK(t, s.Call(t, "1", "plain", "{}")) // and the id once more
}

// A second GET stream of a session: each message goes to exactly one, the newest that lives (HTTP-L-12).
func TestCase50TwoGETStreams(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", "{}")
	child := b.Hub.Child(t, 0)
	older := s.Listen(t, "")
	older.Next(t)
	newer := s.Listen(t, "")
	newer.Next(t)
	if older.Status != 200 || newer.Status != 200 {
		t.Fatalf("status %d and %d", older.Status, newer.Status)
	}
	child.Write(t, listChanged+"\n")
	if e := newer.Message(t); string(e.Data) != listChanged {
		t.Errorf("the newer stream got %s", e.Data)
	}
	newer.Drop()
	b.AwaitLog(t, `"verb":"GET"`) // the bridge has seen the end
	const next = `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`
	child.Write(t, next+"\n")
	if e := older.Message(t); string(e.Data) != next {
		t.Errorf("the older stream got %s", e.Data)
	}
	if n := b.Hub.Started(); n != 1 {
		t.Errorf("%d processes were started", n)
	}
}

// Last-Event-ID resumes streams of its own session only (HTTP-L-15); forged ids replay nothing.
func TestCase53LastEventID(t *testing.T) {
	t.Parallel()
	b := start(t)
	a, other := b.NewSession(t, "2025-11-25", "{}"), b.NewSession(t, "2025-11-25", "{}")
	child := b.Hub.Child(t, 0)
	st, w, first, last := openLegacy(t, a, child, "secret")
	w.answer(t, "secret answer")
	st.Rest(t)
	for _, id := range []string{first, last, "x", last + "0", "_1", first + "_", "-1", "0_0"} {
		foreign := other.Listen(t, id)
		foreign.Next(t)
		b.Hub.Child(t, 1).Write(t, listChanged+"\n")
		if e := foreign.Message(t); string(e.Data) != listChanged {
			t.Errorf("Last-Event-ID %s of another session replays %s", id, e.Data)
		}
		foreign.Drop()
	}
	if rest := a.Listen(t, first).Rest(t); len(rest) != 2 || !bytes.Contains(rest[1], []byte("secret answer")) {
		t.Errorf("its own session is replayed %q", rest)
	}

	// Modern: the header is ignored, and there are no ids (HTTP-M-15).
	h, body := e2e.ModernCall("1", "progress", `{"count":2}`, `,"progressToken":"t"`)
	h["Last-Event-Id"] = last
	r := b.Do(t, "POST", h, body)
	if len(r.Messages) != 3 || bytes.Contains(r.Body, []byte("secret")) {
		t.Errorf("a modern client got %s", r.Body)
	}
	for _, e := range r.Events {
		if e.ID != "" {
			t.Errorf("event id %q on a modern stream", e.ID)
		}
	}
}

// Idle reaping: an ended session takes its process along, and there is a limit on sessions. (The idle clock itself takes
// half an hour and is tested with a fake one in package session.)
func TestCase54SessionsEnd(t *testing.T) {
	t.Parallel()
	b := startWith(t, func(c *config.Config, s *config.Server) { c.Limits.Sessions, s.MaxProcesses = 2, 2 })
	one := b.NewSession(t, "2025-11-25", "{}")
	b.NewSession(t, "2025-11-25", "{}")
	init := []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	r := b.Do(t, "POST", nil, init)
	if r.Status != 429 && r.Status != 503 || r.Header.Get("Retry-After") == "" || r.Get(t, "error", "message") == "" || r.Header.Get("Mcp-Session-Id") != "" {
		t.Errorf("one session too many: %d %s", r.Status, r.Body)
	}
	one.Delete(t)
	b.Hub.Child(t, 0).AwaitGone(t)
	if r := one.Call(t, "1", "plain", "{}"); r.Status != 404 {
		t.Errorf("a call of an ended session: %d", r.Status)
	}
	b.NewSession(t, "2025-11-25", "{}")
}

// Changes a client has no stream for are merged and told with the next one (HTTP-L-32).
func TestChangesWaitForStream(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", "{}")
	child := b.Hub.Child(t, 0)
	for range 1000 {
		child.Write(t, listChanged+"\n")
	}
	child.Write(t, `{"jsonrpc":"2.0","id":"end","method":"ping"}`+"\n")
	child.Await(t, 0, `"id":"end"`)
	st := s.Listen(t, "")
	if e := st.Message(t); string(e.Data) != listChanged {
		t.Errorf("the stream begins with %s", e.Data)
	}
	child.Write(t, `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`+"\n")
	if e := st.Message(t); !bytes.Contains(e.Data, []byte("prompts")) {
		t.Errorf("then comes %s, want the changes to be merged", e.Data)
	}
}

// Changes during a call go to the session's own stream, not to the call's (HTTP-L-11, HTTP-M-12).
func TestChangesDuringCall(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", "{}")
	st := s.Listen(t, "")
	st.Next(t)
	r := s.Call(t, "1", "change", `{"methods":["notifications/tools/list_changed"]}`)
	if len(r.Messages) != 1 {
		t.Errorf("the call's stream has %q", r.Messages)
	}
	if e := st.Message(t); string(jscan.Get(e.Data, "method")) != `"notifications/tools/list_changed"` {
		t.Errorf("the session's stream has %s", e.Data)
	}
	if r := b.Modern(t, "1", "change", `{"methods":["notifications/tools/list_changed","notifications/resources/updated"],"params":{"uri":"file:///a"}}`); len(r.Messages) != 1 {
		t.Errorf("a modern call's stream has %q", r.Messages)
	}
}

// A log message belongs to the request that asked for it (LOG-01, LOG-02).
func TestLogMessages(t *testing.T) {
	t.Parallel()
	b := start(t)
	for level, want := range map[string]int{"": 0, "debug": 3, "warning": 2, "error": 1, "emergency": 0} {
		more := ""
		if level != "" {
			more = `,"io.modelcontextprotocol/logLevel":"` + level + `"`
		}
		h, body := e2e.ModernCall("1", "log", `{"levels":["info","warning","error"]}`, more)
		if r := b.Do(t, "POST", h, body); len(r.Messages) != want+1 {
			t.Errorf("level %q: %d messages, want %d: %s", level, len(r.Messages)-1, want, r.Body)
		}
	}
	s := b.NewSession(t, "2025-11-25", "{}")
	if r := s.Call(t, "1", "log", `{"levels":["info"]}`); len(r.Messages) != 2 {
		t.Errorf("a session got %s", r.Body)
	}
	if r := s.Post(t, `{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}`); r.Get(t, "result") != "{}" {
		t.Errorf("setLevel was answered with %s", r.Body)
	}
	b.Hub.Child(t, 1).Await(t, 0, `"logging/setLevel"`, `"level":"error"`)
}

// Subscriptions of sessions that share a process are counted: the server hears of the first and the last, and every holder
// is told of updates (SUB-15, translation 8.4).
func TestSharedSubscriptions(t *testing.T) {
	t.Parallel()
	b := startWith(t, shared)
	var sessions []*e2e.Session
	var streams []*e2e.Stream
	for i := range 3 {
		s := b.NewSession(t, "2025-11-25", "{}")
		st := s.Listen(t, "")
		st.Next(t)
		sessions, streams = append(sessions, s), append(streams, st)
		if i < 2 {
			if r := s.Post(t, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}`); r.Get(t, "result") != "{}" {
				t.Errorf("subscribe was answered with %s", r.Body)
			}
		}
	}
	child := b.Hub.Child(t, 0)
	child.Write(t, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}`+"\n"+listChanged+"\n")
	for i, want := range []string{"updated", "updated", "list_changed"} {
		if e := streams[i].Message(t); !bytes.Contains(e.Data, []byte(want)) {
			t.Errorf("session %d got %s, want %s", i, e.Data, want)
		}
	}
	for i := range 2 {
		sessions[i].Post(t, `{"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"file:///a"}}`)
	}
	counts := map[string]int{}
	for _, line := range child.Seen(t) {
		counts[string(jscan.Get(line, "method"))]++
	}
	for _, m := range []string{`"resources/subscribe"`, `"resources/unsubscribe"`} {
		if counts[m] != 1 {
			t.Errorf("the server was sent %d of %s, want 1 (%s)", counts[m], m, fmt.Sprint(counts))
		}
	}
}
