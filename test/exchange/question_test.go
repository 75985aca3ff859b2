package exchange

import (
	"bytes"
	"strings"
	"testing"

	"mcpbridge/test/internal/e2e"
	"mcpbridge/test/internal/jscan"
)

const allFeatures = `{"elicitation":{},"sampling":{},"roots":{}}`

// questions are what a legacy server may ask, with a client's answer.
var questions = []struct{ method, params, answer string }{
	{"elicitation/create", `{"message":"who?","requestedSchema":{"type":"object","properties":{"n":{"type":"number","default":1.10}}}}`, `{"action":"accept","content":{"n":1.10}}`},
	{"sampling/createMessage", `{"messages":[],"maxTokens":9007199254740993}`, `{"role":"assistant","content":{"type":"text","text":"—"},"model":"m"}`},
	{"roots/list", `{}`, `{"roots":[{"uri":"file:///r","name":"\u0072"}]}`},
}

// askWith begins a call of the tool ask, and returns its stream and the question as the client gets it.
func askWith(t *testing.T, s *e2e.Session, id, arguments string) (st *e2e.Stream, question []byte) {
	t.Helper()
	st = s.Open(t, string(e2e.LegacyCall(id, "ask", arguments, "")))
	question = st.Message(t).Data
	if jscan.Get(question, "method") == nil || jscan.Get(question, "id") == nil {
		t.Fatalf("the stream begins with %s, want a question", question)
	}
	return st, question
}

// Two sessions are asked at once, on processes of their own or on one; each answer reaches the call it belongs to, byte for
// byte, under the server's own id (translation 4.1, 5.10, CLF-*, FRM-30).
func TestQuestions(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"session", "shared"} {
		for _, q := range questions {
			t.Run(isolation+"/"+q.method, func(t *testing.T) {
				t.Parallel()
				b := start(t)
				if isolation == "shared" {
					b = startWith(t, shared)
				}
				one, two := b.NewSession(t, "2025-11-25", allFeatures), b.NewSession(t, "2025-11-25", allFeatures)
				args := `{"method":"` + q.method + `","params":` + q.params + `}`
				first, q1 := askWith(t, one, "1", args)
				second, q2 := askWith(t, two, "1", args)
				for i, got := range [][]byte{q1, q2} {
					if p := string(jscan.Get(got, "params")); p != q.params {
						t.Errorf("question %d has params %s, want %s", i, p, q.params)
					}
				}
				id1, id2 := string(jscan.Get(q1, "id")), string(jscan.Get(q2, "id"))
				reply := func(s *e2e.Session, id, mark string) {
					t.Helper()
					body := `{"jsonrpc":"2.0","id":` + id + `,"result":` + strings.Replace(q.answer, "{", `{"mark":"`+mark+`",`, 1) + `}`
					if r := s.Post(t, body); r.Status != 202 || len(r.Body) > 0 {
						t.Errorf("an answer was answered with %d %q (HTTP-L-03)", r.Status, r.Body)
					}
				}
				if isolation == "session" { // on one process a question may be shown to the other caller; its answer comes back all the same
					for i := range 2 {
						reply(two, id2, []string{"two", "twice"}[i]) // the second is dropped
					}
					reply(one, id1, "one")
					wantAnswer(t, second, "two")
					wantAnswer(t, first, "one")
					return
				}
				reply(two, id2, "two")
				reply(one, id1, "one")
				wantAnswer(t, first, "one")
				wantAnswer(t, second, "two")
			})
		}
	}
}

// wantAnswer reads the end of a call of the tool ask, which holds the client's answer as the server got it.
func wantAnswer(t *testing.T, st *e2e.Stream, mark string) {
	t.Helper()
	rest := st.Rest(t)
	if len(rest) != 1 {
		t.Fatalf("the stream ends with %q, want one answer", rest)
	}
	if !bytes.Contains(rest[0], []byte(`"mark":"`+mark+`"`)) || !bytes.Contains(rest[0], []byte(`"id":"q-`)) {
		t.Errorf("the call ends with %s, want the answer %s under the server's own id", rest[0], mark)
	}
}

// Declining and failing are answers too (CLF-*), and an answer that comes twice reaches the server once.
func TestQuestionDeclined(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", allFeatures)
	for i, answer := range []string{`"result":{"action":"decline"}`, `"result":{"action":"cancel"}`, `"error":{"code":-1,"message":"User rejected","data":{"n":1.10}}`} {
		st, q := askWith(t, s, "5", `{"method":"elicitation/create","params":{"message":"?"}}`)
		body := `{"jsonrpc":"2.0","id":` + string(jscan.Get(q, "id")) + `,` + answer + `}`
		s.Post(t, body)
		if r := s.Post(t, body); r.Status != 202 {
			t.Errorf("the second answer was answered with %d", r.Status)
		}
		rest := st.Rest(t)
		if len(rest) != 1 || !bytes.Contains(rest[0], []byte(answer)) {
			t.Errorf("answer %d arrived as %q", i, rest)
		}
	}
	n := 0
	for _, line := range b.Hub.Child(t, 0).Seen(t) {
		if bytes.Contains(line, []byte(`"id":"q-`)) {
			n++
		}
	}
	if n != 3 {
		t.Errorf("the server got %d answers to 3 questions", n)
	}
}

// A question the server takes back is taken back at the client, under the id the client knows; a late answer is dropped
// (translation 10).
func TestQuestionWithdrawn(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", allFeatures)
	st, q := askWith(t, s, "1", `{"method":"sampling/createMessage","params":{"messages":[]},"withdraw":true,"wait":false}`)
	id := string(jscan.Get(q, "id"))
	note := st.Message(t).Data
	if string(jscan.Get(note, "method")) != `"notifications/cancelled"` || string(jscan.Get(note, "params", "requestId")) != id ||
		string(jscan.Get(note, "params", "reason")) != `"changed my mind"` {
		t.Errorf("after the question %s comes %s", q, note)
	}
	st.Rest(t)
	if r := s.Post(t, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`); r.Status != 202 {
		t.Errorf("a late answer was answered with %d", r.Status)
	}
	s.Call(t, "2", "plain", "{}")
	for _, line := range b.Hub.Child(t, 0).Seen(t) {
		if bytes.Contains(line, []byte(`"id":"q-`)) {
			t.Errorf("the server got %s", line)
		}
	}
}

// An answer counts only from the session that was asked (rule 2).
func TestQuestionAnsweredByStranger(t *testing.T) {
	t.Parallel()
	b := startWith(t, shared)
	asked, stranger := b.NewSession(t, "2025-11-25", allFeatures), b.NewSession(t, "2025-11-25", allFeatures)
	st, q := askWith(t, asked, "1", `{"method":"elicitation/create","params":{"message":"?"}}`)
	body := `{"jsonrpc":"2.0","id":` + string(jscan.Get(q, "id")) + `,"result":{"action":"accept","mark":"`
	if r := stranger.Post(t, body+`stranger"}}`); r.Status != 202 {
		t.Errorf("answered with %d", r.Status)
	}
	asked.Post(t, body+`asked"}}`)
	wantAnswer(t, st, "asked")
}

// A client that did not declare a feature is not asked: the server is refused at once, so that it goes on (translation 5.10,
// design section 8).
func TestQuestionNotDeclared(t *testing.T) {
	t.Parallel()
	b := startWith(t, shared)
	able, unable := b.NewSession(t, "2025-11-25", allFeatures), b.NewSession(t, "2025-11-25", "{}")
	other := able.Listen(t, "")
	other.Next(t)
	for _, q := range questions {
		r := unable.Call(t, "1", "ask", `{"method":"`+q.method+`","params":{}}`)
		if r.Status != 200 || r.Get(t, "result", "structuredContent", "error", "code") != "-32601" {
			t.Errorf("%s: answered with %s", q.method, r.Body)
		}
	}
	b.Hub.Child(t, 0).Write(t, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n")
	if e := other.Message(t); !bytes.Contains(e.Data, []byte("list_changed")) {
		t.Errorf("the session that nobody asked for got %s", e.Data)
	}
}

// Either side may ping at any time (LEG-08): the client's ping tests the bridge, the server's is answered by it.
func TestPing(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"session", "shared"} {
		b := start(t)
		if isolation == "shared" {
			b = startWith(t, shared)
		}
		s := b.NewSession(t, "2025-11-25", "{}")
		if r := s.Post(t, `{"jsonrpc":"2.0","id":"p","method":"ping"}`); r.Status != 200 || string(r.Body) != `{"jsonrpc":"2.0","id":"p","result":{}}` {
			t.Errorf("%s: ping was answered with %d %s", isolation, r.Status, r.Body)
		}
		child := b.Hub.Child(t, 0)
		for _, id := range []string{`"\u0041"`, "0", "9007199254740993"} {
			child.Write(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`+"\n")
			child.Await(t, 0, `"id":`+id+`,"result":{}`)
		}
	}
}

// A question that belongs to no call goes on the session's own stream, or waits for one (HTTP-L-12, LEG-04).
func TestQuestionOutsideCall(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", allFeatures)
	child := b.Hub.Child(t, 0)
	child.Write(t, `{"jsonrpc":"2.0","id":41,"method":"roots/list"}`+"\n")
	st := s.Listen(t, "")
	q := st.Message(t).Data
	s.Post(t, `{"jsonrpc":"2.0","id":`+string(jscan.Get(q, "id"))+`,"result":{"roots":[]}}`)
	child.Await(t, 0, `"id":41,"result":{"roots":[]}`)
}
