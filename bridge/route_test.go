package bridge_test

import (
	"testing"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

func logLine(level string) string {
	return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level + `","data":1}}`
}

const elicit = `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`

// caller is an open call on a link.
type caller struct {
	s         *session // nil: a modern client
	principal bridge.Principal
	level     string
}

func (k *linkRig) start(t *testing.T, c *bridge.Conn, srv *server, w caller) *sink {
	ex, out := call("1", "")
	ex.Principal, ex.Level = w.principal, mcp.ParseLevel(w.level)
	if w.principal == "" {
		ex.Principal = bridge.Local
	}
	if w.s != nil {
		ex.Session = w.s
	} else {
		ex.Era, ex.Version = mcp.Modern, mcp.V20260728
	}
	dispatch(t, c, srv, ex)
	return out
}

// A server's question goes to the youngest running call whose client declared the feature; across principals and among
// strangers it is nobody's; what nobody can be asked is refused at once (translation 5.10, SEC-08, case 68).
func TestQuestionsOnASharedLink(t *testing.T) {
	can, cannot := []string{"elicitation"}, []string{"sampling"}
	for name, c := range map[string]struct {
		calls []caller
		asked int // index of the call, -1: refused
	}{
		"nobody runs":    {nil, -1},
		"one":            {[]caller{{s: &session{features: can}}}, 0},
		"not declared":   {[]caller{{s: &session{features: cannot}}}, -1},
		"youngest":       {[]caller{{s: &session{features: can}}, {s: &session{features: can}}, {s: &session{features: cannot}}}, 1},
		"modern":         {[]caller{{}}, -1},
		"two principals": {[]caller{{s: &session{features: can}, principal: "a"}, {s: &session{features: can}, principal: "b"}}, -1},
		"other cannot":   {[]caller{{s: &session{features: can}, principal: "a"}, {s: &session{features: cannot}, principal: "b"}}, 0},
		"one stranger":   {[]caller{{s: &session{features: can}, principal: bridge.Anonymous}}, 0},
		"two strangers":  {[]caller{{s: &session{features: can}, principal: bridge.Anonymous}, {s: &session{features: can}, principal: bridge.Anonymous}}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{}`))
			conn, srv := k.open(t)
			k.link.Attach(&session{features: can}) // it has nothing running
			var sinks []*sink
			for _, w := range c.calls {
				sinks = append(sinks, k.start(t, conn, srv, w))
			}
			srv.say(elicit)
			for i, w := range c.calls {
				if w.s != nil && (len(w.s.questions()) == 1) != (i == c.asked) {
					t.Errorf("call %d was asked %q", i, w.s.questions())
				}
			}
			if c.asked < 0 {
				if m := srv.next(t); m.Kind != framing.Error || idOf(m) != `"q"` {
					t.Errorf("the server got %s", m.Raw)
				}
				return
			}
			if c.calls[c.asked].s.via[0] != bridge.Sink(sinks[c.asked]) {
				t.Error("asked on another stream")
			}
			srv.quiet(t)
			if !conn.Answer([]byte(`"q"`), framing.Whole([]byte(`{"jsonrpc":"2.0","id":"q","result":{}}`))) {
				t.Error("the question is not open")
			}
			srv.expect(t, `{"jsonrpc":"2.0","id":"q","result":{}}`)
			if conn.Answer([]byte(`"q"`), framing.Whole([]byte(`{}`))) {
				t.Error("answered twice")
			}
			srv.quiet(t)
		})
	}
}

// On an exclusive link whatever the server asks is its session's, with a call or without (design section 8).
func TestQuestionsOnAnExclusiveLink(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{Exclusive: true}, legacyFacts(`{}`))
	s := &session{}
	k.link.Attach(s)
	conn, srv := k.open(t)
	srv.say(`{"jsonrpc":"2.0","id":1,"method":"vendor/x"}`)
	out := k.start(t, conn, srv, caller{s: s})
	srv.say(`{"jsonrpc":"2.0","id":2,"method":"roots/list"}`)
	same(t, "asked", s.questions(), []string{"1", "2"})
	if s.via[0] != nil || s.via[1] != bridge.Sink(out) {
		t.Errorf("via %v", s.via)
	}
	srv.quiet(t)
}

// A second request under the id of an open one is not put to anybody: one id, one answer.
func TestQuestionIDReused(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{Exclusive: true}, legacyFacts(`{}`))
	s := &session{}
	k.link.Attach(s)
	_, srv := k.open(t)
	srv.say(elicit)
	srv.say(elicit)
	same(t, "asked", s.questions(), []string{`"q"`})
	if k.ev.count(bridge.EventViolation) != 1 {
		t.Error("not reported")
	}
}

// A call that ends between being chosen and being asked is not asked: the question goes elsewhere.
func TestQuestionToACallThatEnds(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{}`))
	conn, srv := k.open(t)
	ex, out := call("1", "")
	dispatch(t, conn, srv, ex)
	conn.CancelWhere([]byte("1"), nil, all)
	srv.next(t)
	out.answer(t)
	if conn.Question([]byte("9"), ex, nil) {
		t.Error("registered for a call that is over")
	}
	if conn.Answer([]byte("9"), framing.Whole([]byte(`{}`))) {
		t.Error("the question is open")
	}
}

// A refused question leaves nothing behind: a server that asks for ever what nobody answers costs no memory (rule 4).
func TestRefusedQuestionsAreForgotten(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{Exclusive: true}, legacyFacts(`{}`))
	q := request(elicit)
	s := &session{onAsk: func(c bridge.Questioner, m *framing.Message) { c.Refuse(m, mcp.CodeInternal, "too many") }}
	k.link.Attach(s)
	conn, srv := k.open(t)
	for range 3 { // the id is free again each time
		srv.say(string(q.Raw))
		if m := srv.next(t); m.Kind != framing.Error {
			t.Errorf("the server got %s", m.Raw)
		}
	}
	if len(s.questions()) != 3 || conn.Answer([]byte(`"q"`), framing.Whole([]byte(`{}`))) {
		t.Error("a refused question is still open")
	}
}

// The server's end withdraws its questions while the streams they went out on are still open.
func TestDeathWithdrawsQuestions(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{Exclusive: true}, legacyFacts(`{}`))
	s := &session{}
	k.link.Attach(s)
	conn, srv := k.open(t)
	out := k.start(t, conn, srv, caller{s: s})
	s.onClosed = func() { out.open(t) }
	srv.say(elicit)
	srv.die(errDied)
	<-conn.Done()
	out.only(t)
	if s.closed != 1 {
		t.Errorf("told %d times", s.closed)
	}
}

// Only a request of its own the server still has open is withdrawn (translation 10).
func TestWithdraw(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{Exclusive: true}, legacyFacts(`{}`))
	s := &session{}
	k.link.Attach(s)
	_, srv := k.open(t)
	srv.say(elicit)
	for _, params := range []string{`{"requestId":"other"}`, `{"requestId":"q"}`, `{"requestId":"q"}`, `{}`, `[]`} {
		srv.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":` + params + `}`)
	}
	same(t, "withdrawn", s.withdrawn, []string{`"q"`})
}

// Who gets a log message of a shared link (translation 9.1, 9.3; LOG-01, LOG-02, LOG-09).
func TestLogs(t *testing.T) {
	a, b := &session{}, &session{} // both attached; b wants errors only
	for name, c := range map[string]struct {
		calls    []caller
		level    string
		to       int // index of the call, -1 none
		sessions bool
		log      bool
	}{
		"none runs":             {nil, "error", -1, true, false},
		"modern, wanted":        {[]caller{{level: "info"}}, "info", 0, false, false},
		"modern, below":         {[]caller{{level: "warning"}}, "info", -1, false, true},
		"modern, no level":      {[]caller{{}}, "emergency", -1, false, true},
		"unknown level":         {[]caller{{level: "debug"}}, "loud", -1, false, true},
		"one of two wants":      {[]caller{{}, {level: "info"}}, "error", 1, false, false},
		"older wants":           {[]caller{{level: "info"}, {}}, "error", 0, false, false},
		"both want":             {[]caller{{level: "info"}, {level: "error"}}, "error", -1, true, false},
		"both want, one enough": {[]caller{{level: "info"}, {level: "error"}}, "info", -1, true, false},
		"two principals":        {[]caller{{principal: "a", level: "info"}, {principal: "b"}}, "error", -1, true, false},
		"strangers":             {[]caller{{principal: bridge.Anonymous, level: "info"}, {principal: bridge.Anonymous}}, "error", -1, true, false},
		"legacy, wanted":        {[]caller{{s: b}}, "error", 0, false, false},
		"legacy, below":         {[]caller{{s: b}}, "info", -1, false, true}, // it is b's, so not for a
		"legacy, several":       {[]caller{{s: a}, {s: b, level: "error"}}, "error", -1, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{}`))
			k.link.Attach(a)
			k.link.Attach(b)
			conn, srv := k.open(t)
			k.link.SetSessionLevel(t.Context(), conn, b, mcp.ParseLevel("error"))
			var sinks []*sink
			for _, w := range c.calls {
				sinks = append(sinks, k.start(t, conn, srv, w))
			}
			srv.say(logLine(c.level))
			for i, s := range sinks {
				if (len(s.noted()) == 1) != (i == c.to) {
					t.Errorf("call %d got %q", i, s.noted())
				}
			}
			na, nb := len(a.take()), len(b.take())
			if (na == 1) != c.sessions || (nb == 1) != (c.sessions && c.level == "error") {
				t.Errorf("sessions got %d and %d", na, nb)
			}
			if (k.ev.count(bridge.EventServerLog) == 1) != c.log {
				t.Errorf("%d in the bridge's log", k.ev.count(bridge.EventServerLog))
			}
		})
	}
}

// On an exclusive link nothing is filtered between legacy peers (design section 8).
func TestExclusivePassesAll(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{Exclusive: true}, legacyFacts(`{}`))
	s := &session{}
	k.link.Attach(s)
	conn, srv := k.open(t)
	lines := []string{logLine("debug"), `{"jsonrpc":"2.0","method":"notifications/vendor","params":{"n":1.0}}`,
		`{"jsonrpc":"2.0","method":"notifications/elicitation/complete"}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x"}}`,
		`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`}
	for _, l := range lines {
		srv.say(l)
	}
	same(t, "session", s.take(), lines)
	out := k.start(t, conn, srv, caller{s: s})
	for _, l := range lines {
		srv.say(l)
	}
	same(t, "call", out.noted(), lines[:3])
	same(t, "session", s.take(), lines[3:])
}

// On a shared link changes go to all sessions, updates to those who hold the resource or one above it (SUB-15), and what
// nobody knows to nobody (translation 3.3).
func TestSharedNotifications(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{"resources":{"subscribe":true}}`))
	a, b := &session{}, &session{}
	k.link.Attach(a)
	k.link.Attach(b)
	conn, srv := k.open(t)
	k.subscribe(t, conn, srv, a, `"file:///d"`)
	k.subscribe(t, conn, srv, b, `"file:///d/e/"`)
	updated := func(uri string) string {
		return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":` + uri + `}}`
	}
	change := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	for _, l := range []string{change, updated(`"file:///d"`), updated(`"file:///d/e/f"`), updated(`"file:///dd"`), updated(`"file:///"`),
		`{"jsonrpc":"2.0","method":"notifications/vendor"}`} {
		srv.say(l)
	}
	same(t, "a", a.take(), []string{change, updated(`"file:///d"`), updated(`"file:///d/e/f"`)})
	same(t, "b", b.take(), []string{change, updated(`"file:///d/e/f"`)})
	if n := k.ev.count(bridge.EventDropped); n != 3 {
		t.Errorf("%d dropped, want 3", n)
	}
}

// A vendor's notification of a modern server belongs to the one request it can be about, else to nobody (translation 3.3).
func TestVendorNotificationOfModernServer(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{}, modernFacts(`{}`))
	conn, srv := k.open(t)
	line := `{"jsonrpc":"2.0","method":"notifications/vendor","params":{"n":1.0}}`
	srv.say(line)
	one := k.start(t, conn, srv, caller{level: "debug"})
	srv.say(line)
	two := k.start(t, conn, srv, caller{level: "debug"})
	srv.say(line)
	same(t, "the only call", one.noted(), []string{line})
	same(t, "a second call", two.noted(), nil)
	if n := k.ev.count(bridge.EventDropped); n != 2 {
		t.Errorf("%d dropped, want 2", n)
	}
}

// What a modern server sends for a listen is the listener's, under the id it chose, by the subscription id alone (STD-09,
// SUB-05, SUB-06).
func TestListenRouting(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{}, modernFacts(`{}`))
	conn, srv := k.open(t)
	listen := func(id string) (*sink, string) {
		ex, out := exchange(`{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":{}}}`)
		ex.Era, ex.Version = mcp.Modern, mcp.V20260728
		_, at := dispatch(t, conn, srv, ex)
		return out, at
	}
	a, ida := listen(`"s"`)
	b, idb := listen(`0`)
	tool := k.start(t, conn, srv, caller{level: "debug"})
	tagged := func(method, id string) string {
		return `{"jsonrpc":"2.0","method":"` + method + `","params":{"_meta":{"` + mcp.MetaSubscriptionID + `":` + id + `}}}`
	}
	srv.say(tagged(mcp.Acknowledged, ida))
	srv.say(tagged(mcp.ToolsListChanged, idb))
	srv.say(tagged(mcp.PromptsListChanged, "3")) // the tool call's id: no listen
	srv.say(tagged(mcp.PromptsListChanged, "77"))
	srv.say(tagged(mcp.LogMessage, "77"))
	same(t, "a", a.noted(), []string{tagged(mcp.Acknowledged, `"s"`)})
	same(t, "b", b.noted(), []string{tagged(mcp.ToolsListChanged, "0")})
	same(t, "tool", tool.noted(), nil)
	if n := k.ev.count(bridge.EventDropped); n != 3 {
		t.Errorf("%d dropped, want 3", n)
	}
	srv.say(`{"jsonrpc":"2.0","id":` + ida + `,"result":{"resultType":"complete","_meta":{"` + mcp.MetaSubscriptionID + `":` + ida + `}}}`)
	if got, want := a.answer(t), `{"jsonrpc":"2.0","id":"s","result":{"resultType":"complete","_meta":{"`+mcp.MetaSubscriptionID+`":"s"}}}`; got != want {
		t.Errorf("graceful end %s, want %s", got, want)
	}
	b.open(t)
}
