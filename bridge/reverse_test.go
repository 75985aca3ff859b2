package bridge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

func alike[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

const everyFeature = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`

// asking is a call of a legacy client before a modern server, and what the client is asked.
type asking struct {
	*linkRig
	t    *testing.T
	who  *session
	ex   *bridge.Exchange
	sink *sink
	conn *bridge.Conn
	srv  *server
	id   string // of the request at the server
	from bridge.Questioner
	put  []*framing.Message // questions, in order
}

// ask begins a call in a bubble and has the server answer it with a result body, then lets f go on.
func ask(t *testing.T, l bridge.Limits, line string, v mcp.Version, interim string, f func(t *testing.T, a *asking)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := &asking{t: t, linkRig: newLinkRig(t, bridge.LinkConfig{Limits: l}, modernFacts(`{"logging":{}}`))}
		a.who = &session{onAsk: func(c bridge.Questioner, m *framing.Message) { a.from, a.put = c, append(a.put, m) }}
		a.link.Attach(a.who)
		a.conn, a.srv = a.open(t)
		a.ex, a.sink = exchange(line)
		a.ex.Session, a.ex.Version, a.ex.Envelope, a.ex.Level = a.who, v, []byte(everyFeature), mcp.ParseLevel("error")
		_, a.id = dispatch(t, a.conn, a.srv, a.ex)
		a.interim(interim)
		f(t, a)
	})
}

// interim is an answer of the server that asks for input.
func (a *asking) interim(body string) {
	a.srv.say(result(a.id, body))
	synctest.Wait()
}

// answer is the client's word on a question.
func (a *asking) answer(i int, member string) {
	a.t.Helper()
	if i >= len(a.put) {
		a.t.Fatalf("%d questions were put", len(a.put))
	}
	id := a.put[i].Bytes(a.put[i].ID)
	if !a.from.Answer(id, framing.Whole([]byte(`{"jsonrpc":"2.0","id":`+string(id)+`,`+member+`}`))) {
		a.t.Fatalf("question %s was not open", id)
	}
	synctest.Wait()
}

// retried is the next request at the server, whose id is the one to answer.
func (a *asking) retried() *framing.Message {
	a.t.Helper()
	m := a.srv.next(a.t)
	a.id = idOf(m)
	return m
}

const (
	deploy  = `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"deploy","arguments":{"n":1.10},"_meta":{"progressToken":"p","x":1}}}`
	reading = `{"jsonrpc":"2.0","id":"c","method":"resources/read","params":{"uri":"file:///a"}}`
	sure    = `{"mode":"form","message":"Sure?","requestedSchema":{"type":"object","properties":{"y":{"type":"boolean"}}}}`
)

func wants(state string, requests ...string) string {
	b := `{"resultType":"input_required"`
	if len(requests) > 0 {
		b += `,"inputRequests":{` + strings.Join(requests, ",") + `}`
	}
	if state != "" {
		b += `,"requestState":` + state
	}
	return b + "}"
}

const (
	elicits = `"ok":{"method":"elicitation/create","params":` + sure + `}`
	samples = `"s":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`
	roots   = `"r":{"method":"roots/list"}`
)

// The exchange of translation 6.1: the question goes to the client on the stream of its call, the request again to the server with
// the same params, the answer under its key and the state byte for byte; progress of both rounds goes to the client's one
// token and only grows (MRT-05, MRT-12, 4.2, 6.6).
func TestReverseExchange(t *testing.T) {
	ask(t, bridge.Limits{}, deploy, mcp.V20250618, wants(`"op\u0061que=="`, elicits), func(t *testing.T, a *asking) {
		alike(t, "stream", a.who.via[0] == bridge.Sink(a.sink), true)
		alike(t, "question", string(a.put[0].Bytes(a.put[0].Params)), strings.Replace(sure, `"mode":"form",`, "", 1))
		if u := a.link.Use(); u.Calls != 1 {
			t.Errorf("%d calls are open while the client is asked, want 1: the link may not rest", u.Calls)
		}
		a.answer(0, `"result":{"action":"accept","content":{"y":true}}`)
		m := a.retried()
		for name, want := range map[string]string{"name": `"deploy"`, "arguments": `{"n":1.10}`, "requestState": `"op\u0061que=="`,
			"inputResponses": `{"ok":{"action":"accept","content":{"y":true}}}`} {
			alike(t, name, string(m.Bytes(m.Param(name))), want)
		}
		alike(t, "token", string(m.Bytes(m.MetaMember(mcp.MetaProgressToken))), a.id)
		alike(t, "level", string(m.Bytes(m.MetaMember(mcp.MetaLogLevel))), `"error"`)
		alike(t, "capabilities", string(m.Bytes(m.MetaMember(mcp.MetaClientCapabilities))), everyFeature)
		a.srv.say(progress(a.id, "3"))
		a.interim(wants("", samples, roots))
		alike(t, "questions", len(a.put), 3)
		a.answer(2, `"result":{"roots":[]}`)
		a.srv.quiet(t) // the other is still open
		a.answer(1, `"result":{"role":"assistant","content":{"type":"text","text":"x"},"model":"m","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}`)
		m = a.retried()
		alike(t, "responses", string(m.Bytes(m.Param("inputResponses"))),
			`{"s":{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"},"r":{"roots":[]}}`)
		if m.Param("requestState").OK() {
			t.Error("the state of an earlier round was sent again (MRT-12)")
		}
		a.srv.say(progress(a.id, "2"))
		a.srv.say(progress(a.id, "4"))
		a.srv.say(result(a.id, `{"resultType":"complete","content":[]}`))
		alike(t, "answer", a.sink.only(t), `{"jsonrpc":"2.0","id":"c","result":{"content":[]}}`)
		same(t, "progress", a.sink.noted(), []string{progress(`"p"`, "3"), progress(`"p"`, "4")})
		if u := a.link.Use(); u.Calls != 0 {
			t.Errorf("%d calls are open afterwards", u.Calls)
		}
	})
}

// What becomes of a client's refusals, errors and junk (translation 6.4): nobody chose anything is a cancelled elicitation, the other
// kinds have no form for a refusal and end the call (MRT-20).
func TestReverseRefusals(t *testing.T) {
	const cancel = `{"action":"cancel"}`
	for _, c := range []struct{ name, line, question, answer, response, text string }{
		{"declined", deploy, elicits, `"result":{"action":"decline"}`, `{"action":"decline"}`, ""},
		{"error to an elicitation", deploy, elicits, `"error":{"code":-1,"message":"no"}`, cancel, ""},
		{"no action", deploy, elicits, `"result":{}`, cancel, ""},
		{"accepted without content", deploy, elicits, `"result":{"action":"accept"}`, cancel, ""},
		{"content that does not fit the schema", deploy, elicits, `"result":{"action":"accept","content":{"y":"no"}}`, `{"action":"accept","content":{"y":"no"}}`, ""},
		{"refused sampling", deploy, samples, `"error":{"code":-1,"message":"User rejected sampling request"}`, "", "User rejected sampling request"},
		{"refused sampling in a read", reading, samples, `"error":{"code":-1,"message":"User rejected sampling request"}`, "", "User rejected sampling request"},
		{"malformed sampling", deploy, samples, `"result":{"role":"assistant"}`, "", "malformed"},
		{"refused roots", deploy, roots, `"error":{"code":-32603,"message":"none"}`, "", "none"},
		{"malformed roots", reading, roots, `"result":{"roots":{}}`, "", "malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ask(t, bridge.Limits{}, c.line, mcp.V20251125, wants(`"s"`, c.question), func(t *testing.T, a *asking) {
				a.answer(0, c.answer)
				if c.response != "" {
					m := a.retried()
					alike(t, "response", string(m.Bytes(m.Param("inputResponses"))), `{`+strings.SplitN(c.question, ":", 2)[0]+`:`+c.response+`}`)
					return
				}
				a.srv.quiet(t)
				got := a.sink.only(t)
				if !strings.Contains(got, c.text) || strings.Contains(got, `"isError":true`) != (c.line == deploy) {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

// One refusal ends the call; what else the client was asked is withdrawn.
func TestReverseWithdrawsRest(t *testing.T) {
	ask(t, bridge.Limits{}, deploy, mcp.V20251125, wants("", samples, elicits), func(t *testing.T, a *asking) {
		a.answer(0, `"error":{"code":-1,"message":"no"}`)
		a.sink.only(t)
		same(t, "withdrawn", a.who.withdrawn, []string{idOf(a.put[1])})
		if a.from.Answer(a.put[1].Bytes(a.put[1].ID), framing.Whole([]byte(`{"jsonrpc":"2.0","id":2,"result":{"action":"cancel"}}`))) {
			t.Error("a withdrawn question takes an answer")
		}
	})
}

// A client that never answers: after the limit the question is withdrawn, and counts as refused (translation 6.4).
func TestReverseUnanswered(t *testing.T) {
	l := bridge.Limits{Ask: 3 * minute, Timeout: minute}
	ask(t, l, deploy, mcp.V20251125, wants("", elicits), func(t *testing.T, a *asking) {
		pass(3*minute - 1)
		a.sink.open(t)
		a.srv.quiet(t)
		pass(1)
		m := a.retried()
		alike(t, "response", string(m.Bytes(m.Param("inputResponses"))), `{"ok":{"action":"cancel"}}`)
		same(t, "withdrawn", a.who.withdrawn, []string{idOf(a.put[0])})
	})
	ask(t, l, deploy, mcp.V20251125, wants("", samples), func(t *testing.T, a *asking) {
		pass(3 * minute)
		if got := a.sink.only(t); !strings.Contains(got, `"isError":true`) {
			t.Errorf("got %s", got)
		}
	})
}

// The client cancels its request while it is asked: the questions are withdrawn, nothing is sent upstream, and there is no answer
// (CAN-03, translation 6.4). Ids of others do nothing.
func TestReverseCancelled(t *testing.T) {
	ask(t, bridge.Limits{}, deploy, mcp.V20251125, wants("", elicits), func(t *testing.T, a *asking) {
		mine := func(e *bridge.Exchange) bool { return e.Session == bridge.Session(a.who) }
		if a.link.CancelWhere(a.conn, []byte(`"other"`), nil, mine) {
			t.Error("another id was cancelled")
		}
		if !a.link.CancelWhere(nil, []byte(`"c"`), nil, mine) {
			t.Error("not cancelled")
		}
		synctest.Wait()
		alike(t, "answer", a.sink.only(t), "")
		same(t, "withdrawn", a.who.withdrawn, []string{"1"})
		a.srv.quiet(t)
	})
}

// The session leaves a shared link, or the link is closed: the call has exactly one error (rule 3).
func TestReverseEnds(t *testing.T) {
	for name, end := range map[string]func(a *asking){
		"session left": func(a *asking) { a.link.Detach(a.who) },
		"link closed":  func(a *asking) { _ = a.link.Close(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			ask(t, bridge.Limits{}, deploy, mcp.V20251125, wants("", elicits), func(t *testing.T, a *asking) {
				end(a)
				synctest.Wait()
				has(t, a.sink.only(t), `"c"`, bridge.ReasonStopping)
			})
		})
	}
}

// A modern server that ends between two rounds has lost nothing: the request goes to a new connection (translation 6.5).
func TestReverseServerEnds(t *testing.T) {
	ask(t, bridge.Limits{}, deploy, mcp.V20251125, wants(`"s"`, elicits), func(t *testing.T, a *asking) {
		a.srv.die(errDied)
		synctest.Wait()
		a.sink.open(t)
		a.answer(0, `"result":{"action":"decline"}`)
		a.srv = <-a.back.servers
		m := a.retried()
		alike(t, "state", string(m.Bytes(m.Param("requestState"))), `"s"`)
		a.srv.say(result(a.id, `{"resultType":"complete","content":[]}`))
		a.sink.only(t)
	})
}

// Rounds that carry only state wait longer each time, and ten requests are the end (translation 6.5).
func TestReverseRounds(t *testing.T) {
	for _, line := range []string{deploy, reading} {
		ask(t, bridge.Limits{}, line, mcp.V20251125, wants(`"s1"`), func(t *testing.T, a *asking) {
			pause := 250 * time.Millisecond
			for n := 2; n <= 10; n++ {
				pass(pause - 1)
				a.srv.quiet(t)
				pass(1)
				m := a.retried()
				alike(t, "state", string(m.Bytes(m.Param("requestState"))), fmt.Sprintf(`"s%d"`, n-1))
				if m.Param("inputResponses").OK() {
					t.Error("there are answers to nothing")
				}
				pause = min(2*pause, 5*time.Second)
				a.interim(wants(fmt.Sprintf(`"s%d"`, n)))
			}
			pass(minute)
			a.srv.quiet(t)
			if got := a.sink.only(t); strings.Contains(got, `"isError":true`) != (line == deploy) || line != deploy && !strings.Contains(got, string(bridge.ReasonTooManyRounds)) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// An error to the further request is the outcome; nothing is started over (translation 6.5).
func TestReverseErrorOnRetry(t *testing.T) {
	ask(t, bridge.Limits{}, deploy, mcp.V20251125, wants(`"s"`), func(t *testing.T, a *asking) {
		pass(time.Second)
		a.retried()
		a.srv.say(`{"jsonrpc":"2.0","id":` + a.id + `,"error":{"code":-32602,"message":"state expired"}}`)
		alike(t, "answer", a.sink.only(t), `{"jsonrpc":"2.0","id":"c","error":{"code":-32602,"message":"state expired"}}`)
		pass(minute)
		a.srv.quiet(t)
	})
}

// What a server may not ask is a violation, of which the client is told, and is not put to it (MRT-01, MRT-04, MRT-09).
func TestReverseViolations(t *testing.T) {
	for name, body := range map[string]string{
		"nothing asked":      `{"resultType":"input_required"}`,
		"no object":          `{"resultType":"input_required","inputRequests":[]}`,
		"no string":          `{"resultType":"input_required","requestState":1}`,
		"no method":          wants("", `"k":{}`),
		"unknown method":     wants("", `"k":{"method":"x/y"}`),
		"a key twice":        wants("", roots, roots),
		"params no object":   wants("", `"k":{"method":"roots/list","params":[]}`),
		"undeclared feature": wants("", `"k":{"method":"sampling/createMessage","params":{"tools":[]}}`),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newLinkRig(t, bridge.LinkConfig{}, modernFacts(`{}`))
				who := &session{}
				k.link.Attach(who)
				c, srv := k.open(t)
				ex, s := exchange(deploy)
				ex.Session, ex.Envelope = who, []byte(`{"elicitation":{},"sampling":{},"roots":{}}`)
				_, id := dispatch(t, c, srv, ex)
				srv.say(result(id, body))
				synctest.Wait()
				has(t, s.only(t), `"c"`, bridge.ReasonPeerProtocolError)
				alike(t, "asked", len(who.questions()), 0)
			})
		})
	}
	ask(t, bridge.Limits{}, `{"jsonrpc":"2.0","id":"c","method":"tools/list"}`, mcp.V20251125, wants("", roots), func(t *testing.T, a *asking) {
		has(t, a.sink.only(t), `"c"`, bridge.ReasonPeerProtocolError)
	})
}

// A question that the client's revision cannot express is not asked, and counts as cancelled (translation 13.3).
func TestReverseInexpressible(t *testing.T) {
	many := `"ok":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"c":{"type":"array","items":{"enum":["a"]}}}}}}`
	ask(t, bridge.Limits{}, deploy, mcp.V20250618, wants("", many), func(t *testing.T, a *asking) {
		m := a.retried()
		alike(t, "response", string(m.Bytes(m.Param("inputResponses"))), `{"ok":{"action":"cancel"}}`)
		alike(t, "asked", len(a.put), 0)
	})
}

// A client that has too many questions open, or has left, refuses by itself.
func TestReverseRefusedBySession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, modernFacts(`{}`))
		who := &session{onAsk: func(c bridge.Questioner, m *framing.Message) { c.Refuse(m, mcp.CodeInternal, "too many") }}
		k.link.Attach(who)
		c, srv := k.open(t)
		ex, s := exchange(deploy)
		ex.Session, ex.Envelope = who, []byte(everyFeature)
		_, id := dispatch(t, c, srv, ex)
		srv.say(result(id, wants("", samples)))
		synctest.Wait()
		if got := s.only(t); !strings.Contains(got, "too many") {
			t.Errorf("got %s", got)
		}
	})
}
