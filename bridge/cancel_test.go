package bridge_test

import (
	"context"
	"strings"
	"testing"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

func all(*bridge.Exchange) bool { return true }

// The server is told with the id it knows (CAN-01), its late answer is dropped (CAN-05), nothing more comes back (CAN-03).
func TestTicketCancel(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	ex, s := call(`"mine"`, `"p"`)
	ticket, id := r.dispatch(t, ex)
	if !ticket.Cancel([]byte(`"user"`)) {
		t.Fatal("not cancelled")
	}
	r.expect(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`,"reason":"user"}}`)
	if ticket.Cancel(nil) {
		t.Error("cancelled twice")
	}
	r.say(progress(id, "1"))
	r.say(result(id, `{}`))
	s.open(t)
	same(t, "notifications", s.noted(), nil)
	r.quiet(t)
	if (bridge.Ticket{}).Cancel(nil) {
		t.Error("the zero ticket was cancelled")
	}
}

// The reason is passed on cut to 1 kB, between characters; what is no string is left out (translation 10).
func TestCancelReason(t *testing.T) {
	for name, c := range map[string]struct{ reason, want string }{
		"none":       {"", ""},
		"short":      {`"a\nb"`, `"a\nb"`},
		"1024":       {`"` + strings.Repeat("x", 1024) + `"`, `"` + strings.Repeat("x", 1024) + `"`},
		"1025":       {`"` + strings.Repeat("x", 1025) + `"`, `"` + strings.Repeat("x", 1024) + `"`},
		"characters": {`"x` + strings.Repeat("é", 512) + `"`, `"x` + strings.Repeat("é", 511) + `"`},
		"object":     {`{"a":1}`, ""},
		"null":       {`null`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
			ex, _ := call("1", "")
			ticket, _ := r.dispatch(t, ex)
			ticket.Cancel([]byte(c.reason))
			m := r.next(t)
			if got := string(m.Bytes(m.Param("reason"))); got != c.want {
				t.Errorf("reason %.40s (%d), want %.40s (%d)", got, len(got), c.want, len(c.want))
			}
		})
	}
}

// A cancel by id ends the one request it can mean, with an empty answer; unknown, finished and ambiguous ones are ignored
// (CAN-04, FRM-11, HTTP-M-07). Ids are compared with their type (FRM-08).
func TestCancelWhere(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	one, s1 := call("1", "")
	str, s2 := call(`"1"`, "")
	two, s3 := call("2", "")
	twin, s4 := call("2", "")
	twin.Principal = "other"
	for _, ex := range []*bridge.Exchange{one, str, two, twin} {
		r.dispatch(t, ex)
	}
	cancel := func(id string, fits func(*bridge.Exchange) bool) bool {
		return r.conn.CancelWhere([]byte(id), nil, fits)
	}
	if cancel("3", all) || cancel("", all) || cancel("2", all) || cancel("1", func(*bridge.Exchange) bool { return false }) {
		t.Fatal("something was cancelled")
	}
	r.quiet(t)
	if !cancel("1", all) {
		t.Fatal("not cancelled")
	}
	if got := s1.answer(t); got != "" {
		t.Errorf("answer %q, want none", got)
	}
	r.expect(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if cancel("1", all) {
		t.Error("cancelled twice")
	}
	if !cancel("2", func(e *bridge.Exchange) bool { return e.Principal == "other" }) || s4.answer(t) != "" {
		t.Error("the one that fits was not cancelled")
	}
	s2.open(t)
	s3.open(t)
}

// A request that still waits for room is not sent once it was cancelled, and the server hears nothing of it
// (translation 10, CAN-01).
func TestCancelBeforeSent(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	unblock := r.block()
	ex, s := call("1", "")
	done := make(chan *bridge.Error, 1)
	go func() { _, err := r.conn.Dispatch(context.Background(), ex); done <- err }()
	for !r.conn.CancelWhere([]byte("1"), nil, all) { // until it is registered
	}
	if err := <-done; err != nil {
		t.Errorf("Dispatch: %v, want the answer to be in the sink", err)
	}
	if got := s.answer(t); got != "" {
		t.Errorf("answer %q", got)
	}
	unblock()
	r.conn.Refuse(request(`{"jsonrpc":"2.0","id":5,"method":"x"}`), 1, "m")
	if m := r.next(t); idOf(m) != "5" {
		t.Errorf("the bridge sent %s", m.Raw)
	}
}

func request(line string) *framing.Message {
	m, err := framing.Scan([]byte(line))
	if err != nil {
		panic(err)
	}
	return m
}

// A cancel and the answer race: one of them wins, the sink is finished at most once by it (CAN-06).
func TestCancelRacesAnswer(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	for range 300 {
		ex, s := call("1", "")
		_, id := r.dispatch(t, ex)
		won := make(chan bool)
		go func() { won <- r.conn.CancelWhere([]byte("1"), nil, all) }()
		r.say(result(id, `{}`))
		cancelled := <-won
		if got := s.answer(t); (got == "") != cancelled {
			t.Fatalf("answer %q, cancelled %v", got, cancelled)
		}
		if cancelled {
			r.next(t)
		}
	}
	r.quiet(t)
}

// A session that leaves a shared link cancels what it has under way there, and what it was asked is refused (translation
// 10). Others are not touched.
func TestDetachCancels(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{}`))
	leaves, stays := &session{features: []string{"sampling"}}, &session{features: []string{"sampling"}}
	k.link.Attach(leaves)
	k.link.Attach(stays)
	c, srv := k.open(t)
	a, sa := call("1", "")
	a.Session = stays
	b, sb := call("1", "")
	b.Session = leaves
	dispatch(t, c, srv, a)
	_, idb := dispatch(t, c, srv, b)
	srv.say(`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}`)
	same(t, "asked", leaves.questions(), []string{`"q"`}) // the youngest call is its
	k.link.Detach(leaves)
	has(t, sb.answer(t), "1", bridge.ReasonStopping) // the client cancelled nothing: it gets an answer (rule 3)
	srv.expect(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+idb+`,"reason":"the session ended"}}`)
	if m := srv.next(t); idOf(m) != `"q"` || m.Kind != framing.Error {
		t.Errorf("the question was answered with %s", m.Raw)
	}
	sa.open(t)
	if c.Answer([]byte(`"q"`), framing.Whole([]byte(`{}`))) {
		t.Error("the question was still open")
	}
}

// A modern server ends a listen with a cancellation (SUB-10): the listener's stream ends. Behind a result, and for
// anything else, the word means nothing (CON-01).
func TestServerEndsListen(t *testing.T) {
	r := newRig(t, bridge.Limits{}, modernFacts(`{}`))
	ex, s := exchange(`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{}}}`)
	ex.Era, ex.Version = mcp.Modern, mcp.V20260728
	tool, st := call("1", "")
	tool.Era, tool.Version = mcp.Modern, mcp.V20260728
	_, listen := r.dispatch(t, ex)
	_, other := r.dispatch(t, tool)
	cancelled := func(id string) {
		r.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
	}
	cancelled(other)
	cancelled("99")
	st.open(t)
	s.open(t)
	cancelled(listen)
	if got := s.answer(t); got != "" {
		t.Errorf("answer %q, want none", got)
	}
	cancelled(listen)
	r.say(result(listen, `{}`))
	s.only(t)
	if len(r.h.notes) != 0 {
		t.Errorf("handed up: %q", r.h.notes)
	}
}
