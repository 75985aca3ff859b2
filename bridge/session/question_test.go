package session_test

import (
	"fmt"
	"testing"

	"mcpbridge/bridge"
	"mcpbridge/bridge/session"
)

// A question travels on the stream of its call under an id of the session's, and its answer goes back to the server that
// asked, with the server's id, its bytes otherwise untouched (translation 4.1, rule 1). Only the first answer counts.
func TestQuestion(t *testing.T) {
	for name, answer := range map[string]string{
		"result": `{"jsonrpc":"2.0","id":%s,"result":{"roots":[],"n":12345678901234567890}}`,
		"error":  `{"error":{"code":-1,"message":"User rejected"},"id":%s,"jsonrpc":"2.0"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, s := open(t, session.Config{})
			one, v1 := connect(t)
			two, v2 := connect(t)
			call := bridge.NewStream(1, s.PostLimits())
			ask(t, s, one, `7`, call)
			ask(t, s, two, `"7"`, call)
			same(t, "the call's stream", take(call), question("mb-1"), question("mb-2"))
			s.Answer(scan(t, fmt.Sprintf(answer, `"mb-2"`)))
			same(t, "the first server", v1.got())
			same(t, "the second server", v2.got(), fmt.Sprintf(answer, `"7"`))
			s.Answer(scan(t, fmt.Sprintf(answer, `"mb\u002d1"`))) // the same id, spelt otherwise
			same(t, "the first server", v1.got(), fmt.Sprintf(answer, `7`))
			for _, id := range []string{`"mb-1"`, `"mb-2"`, `"mb-3"`, `7`, `1`} {
				s.Answer(scan(t, fmt.Sprintf(answer, id)))
			}
			same(t, "the servers after answers to nothing", append(v1.got(), v2.got()...))
		})
	}
}

// Nobody answers the question of another session.
func TestQuestionOfAnotherSession(t *testing.T) {
	st, s := open(t, session.Config{})
	other := add(t, st, "mallory")
	c, v := connect(t)
	ask(t, s, c, "7", nil)
	other.Answer(scan(t, `{"jsonrpc":"2.0","id":"mb-1","result":{}}`))
	same(t, "the server", v.got())
}

// n questions are open, one more is refused so that the server goes on; an answer makes room.
func TestQuestionLimit(t *testing.T) {
	for name, tc := range map[string]struct{ set, max int }{"set": {3, 3}, "default": {0, 256}} {
		t.Run(name, func(t *testing.T) {
			_, s := open(t, session.Config{Session: session.Limits{Questions: tc.set}})
			c, v := connect(t)
			for i := range tc.max {
				ask(t, s, c, fmt.Sprint(i), nil)
			}
			same(t, "the server below the limit", v.got())
			ask(t, s, c, `"x"`, nil)
			got := v.got()
			if len(got) != 1 {
				t.Fatalf("above the limit it was sent %v", got)
			}
			if m := scan(t, got[0]); string(m.Bytes(m.ID)) != `"x"` || !m.Error.OK() {
				t.Errorf("above the limit it was sent %s", got[0])
			}
			s.Answer(scan(t, `{"jsonrpc":"2.0","id":"mb-1","result":{}}`))
			v.got()
			ask(t, s, c, `"y"`, nil)
			same(t, "the server after an answer", v.got())
		})
	}
}

// The server takes a question back: the client is told on the stream it came on, with the id it knows; a later answer goes
// nowhere.
func TestWithdraw(t *testing.T) {
	_, s := open(t, session.Config{})
	c, v := connect(t)
	another, _ := connect(t)
	call, own := bridge.NewStream(1, s.PostLimits()), s.Stand()
	ask(t, s, c, `1`, call)
	ask(t, s, another, `1`, own)
	take(call)
	cancel := scan(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"r"}}`)
	s.Withdraw(c, cancel, []byte(`1`))
	same(t, "the call's stream", take(call), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mb-1","reason":"r"}}`)
	s.Withdraw(c, cancel, []byte(`1`)) // again, and one never asked
	s.Withdraw(c, cancel, []byte(`2`))
	same(t, "the call's stream", take(call))
	s.Answer(scan(t, `{"jsonrpc":"2.0","id":"mb-1","result":{}}`))
	same(t, "the server", v.got())
}

// A question whose call is over, or was cancelled, goes to the session's own stream; so does the word that it needs no
// answer any more (design section 8: the child dies).
func TestQuestionOutlivesItsCall(t *testing.T) {
	_, s := open(t, session.Config{})
	c, _ := connect(t)
	call, own := bridge.NewStream(1, s.PostLimits()), s.Stand()
	ask(t, s, c, `1`, call)
	call.Finish(bridge.Answer{Frame: text("answer")})
	ask(t, s, c, `2`, call)
	same(t, "the session's stream", take(own), question("mb-2"))
	s.ConnClosed(c)
	got := take(own)
	if len(got) != 2 {
		t.Fatalf("the session's stream has %v, want two cancellations", got)
	}
	for _, g := range got {
		if m := scan(t, g); m.MethodName() != "notifications/cancelled" {
			t.Errorf("it has %s", g)
		}
	}
}

// A server that ends takes its questions along, and no other's. One the client has not seen is never shown.
func TestConnClosed(t *testing.T) {
	_, s := open(t, session.Config{})
	dying, _ := connect(t)
	other, v := connect(t)
	call := bridge.NewStream(1, s.PostLimits())
	ask(t, s, dying, `1`, call)
	ask(t, s, dying, `2`, nil) // waits for a stream
	ask(t, s, other, `3`, nil)
	take(call)
	s.ConnClosed(dying)
	same(t, "the call's stream", take(call),
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mb-1","reason":"the server ended"}}`)
	same(t, "the session's stream", take(s.Stand()), question("mb-3"))
	s.Answer(scan(t, `{"jsonrpc":"2.0","id":"mb-3","result":{}}`))
	same(t, "the other server", v.got(), `{"jsonrpc":"2.0","id":3,"result":{}}`)
}

// A server that asks and takes back for ever fills nothing while the client has no stream (rule 4).
func TestWithdrawnQuestionsDoNotPileUp(t *testing.T) {
	_, s := open(t, session.Config{})
	c, _ := connect(t)
	cancel := scan(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	for range 10_000 {
		ask(t, s, c, `1`, nil)
		s.Withdraw(c, cancel, []byte(`1`))
	}
	same(t, "the session's stream", take(s.Stand()))
}
