package exchange

import (
	"strings"
	"testing"

	"mcpbridge/test/internal/e2e"
	"mcpbridge/test/internal/jscan"
)

// wantsName is what the modern fixture is told to answer with first.
const wantsName = `{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"number","default":1.10}}}}}},"requestState":"a\u0062c"}`

// A modern server's question reaches the user of a legacy client on the stream of the call, the answer the server with the next
// request of the same call, and two clients never get each other's (translation 6.1, 6.2, MRT-05, MRT-12, MRT-13).
func TestReverse(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"session", "shared"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			edit := shared
			if isolation == "session" {
				edit = nil
			}
			b := startWith(t, edit, "-era", "modern")
			const clients = 8
			var sessions [clients]*e2e.Session
			var streams [clients]*e2e.Stream
			var ids [clients]string
			for i := range sessions {
				sessions[i] = b.NewSession(t, "2025-06-18", allFeatures)
				streams[i] = sessions[i].Open(t, string(e2e.LegacyCall("1", "input", `{"interim":`+wantsName+`}`, "")))
				q := streams[i].Message(t).Data
				ids[i] = string(jscan.Get(q, "id"))
				if p := string(jscan.Get(q, "params")); strings.Contains(p, "mode") || !strings.Contains(p, "1.10") {
					t.Errorf("a client of 2025-06-18 is asked %s", p)
				}
			}
			for i := clients - 1; i >= 0; i-- {
				body := `{"jsonrpc":"2.0","id":` + ids[i] + `,"result":{"action":"accept","content":{"n":` + string(rune('0'+i)) + `.50}}}`
				if r := sessions[i].Post(t, body); r.Status != 202 {
					t.Errorf("an answer was answered with %d", r.Status)
				}
			}
			for i, st := range streams {
				params := jscan.Get(st.Message(t).Data, "result", "structuredContent")
				if got, want := string(jscan.Get(params, "inputResponses")), `{"who":{"action":"accept","content":{"n":`+string(rune('0'+i))+`.50}}}`; got != want {
					t.Errorf("client %d: the server got %s, want %s", i, got, want)
				}
				if got := string(jscan.Get(params, "requestState")); got != `"a\u0062c"` {
					t.Errorf("the state came back as %s", got)
				}
			}
		})
	}
}

// A client that takes JSON only cannot be asked, and a server is not told otherwise (META-14, translation 6.2).
func TestReverseJSONOnly(t *testing.T) {
	t.Parallel()
	b := startWith(t, nil, "-era", "modern")
	s := b.NewSession(t, "2025-11-25", allFeatures)
	h := s.Header()
	h["Accept"] = "application/json"
	r := b.Do(t, "POST", h, e2e.LegacyCall("1", "input", `{}`, ""))
	if got := string(jscan.Get(r.Body, "result", "structuredContent", "_meta", "io.modelcontextprotocol/clientCapabilities")); got != "{}" {
		t.Errorf("the server was told %s: %s", got, r.Body)
	}
}

// The client cancels its call while it is asked: the question is withdrawn, and an answer to it does nothing (translation 6.4).
func TestReverseCancel(t *testing.T) {
	t.Parallel()
	b := startWith(t, nil, "-era", "modern")
	s := b.NewSession(t, "2025-11-25", allFeatures)
	st := s.Open(t, string(e2e.LegacyCall("1", "input", `{"interim":`+wantsName+`}`, "")))
	id := string(jscan.Get(st.Message(t).Data, "id"))
	if r := s.Post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`); r.Status != 202 {
		t.Fatalf("status %d", r.Status)
	}
	rest := st.Rest(t)
	if len(rest) != 1 || string(jscan.Get(rest[0], "method")) != `"notifications/cancelled"` || string(jscan.Get(rest[0], "params", "requestId")) != id {
		t.Errorf("the stream ends with %s, want the withdrawal of %s", rest, id)
	}
	if r := s.Post(t, `{"jsonrpc":"2.0","id":`+id+`,"result":{"action":"decline"}}`); r.Status != 202 {
		t.Errorf("a late answer was answered with %d", r.Status)
	}
	if r := s.Call(t, "2", "echo", `{}`); r.Status != 200 {
		t.Errorf("the next call: %d %s", r.Status, r.Body)
	}
}
