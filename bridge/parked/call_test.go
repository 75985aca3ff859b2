package parked

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
)

// The exchange of translation 5.1: the call ends for the client with a question, stays open at the server, and goes on with the
// retry; the server's own id, 0, is restored.
func TestExchange(t *testing.T) {
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("7")
		at := r.called()
		r.sure("0")
		one.open(t)
		r.window()
		one.asks(t, "elicitation-1")
		if want := `{"elicitation-1":{"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{"y":{"type":"boolean"}},"required":["y"]},"mode":"form"}}}`; one.result(t, "inputRequests") != want {
			t.Errorf("the client is asked %s", one.result(t, "inputRequests"))
		}
		for _, hint := range []string{"ttlMs", "cacheScope"} { // MRT-18
			if one.result(t, hint) != "" {
				t.Errorf("a question carries %s", hint)
			}
		}
		two := r.retry(tools(), "8", one, `{"elicitation-1":`+yes+`}`)
		r.got(`{"jsonrpc":"2.0","id":0,"result":` + yes + `}`)
		two.open(t)
		r.completes(at, two)
		r.quiet()
		if r.given != 1 {
			t.Errorf("the link was given back %d times", r.given)
		}
	})
}

// Questions that come together are asked together; keys count up and are never used again, a server's own text id is one
// (translation 5.3, decision 16).
func TestKeys(t *testing.T) {
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("1")
		r.called()
		r.sure("5")
		r.sample(`"elicitation-1"`)
		r.sample(`"my key"`)
		r.sample(`"mine"`)
		r.window()
		one.asks(t, "elicitation-1", "sampling-2", "sampling-3", "mine")
		two := r.retry(tools(), "2", one, `{"elicitation-1":`+yes+`,"sampling-2":`+sampleOK+`,"sampling-3":`+sampleOK+`,"mine":`+sampleOK+`}`)
		for range 4 {
			r.next()
		}
		r.sure(`"mine"`)
		r.window()
		two.asks(t, "elicitation-5")
	})
	run(t, Config{Window: -1}, func(t *testing.T, r *rig) {
		one := r.call("1")
		r.called()
		r.sure("1")
		one.asks(t, "elicitation-1") // at once
	})
}

// Every row of translation 5.6 about a retry of a call that waits.
func TestRetryRows(t *testing.T) {
	const (
		answered = `{"elicitation-1":` + yes + `,"sampling-2":` + sampleOK + `}`
		e, s     = `{"jsonrpc":"2.0","id":1,"result":`, `{"jsonrpc":"2.0","id":2,"result":`
	)
	for _, c := range []struct {
		name, answers string
		server        []string // what the server gets
		asked         []string // what the client is asked again, nil if the retry waits
		code          int      // of the error
	}{
		{"all answered", answered, []string{e + yes + "}", s + sampleOK + "}"}, nil, 0},
		{"some missing", `{"elicitation-1":` + yes + `}`, []string{e + yes + "}"}, []string{"sampling-2"}, 0},
		{"none at all", "", nil, []string{"elicitation-1", "sampling-2"}, 0},
		{"unknown keys", `{"x":{"a":1},"elicitation-9":` + yes + `}`, nil, []string{"elicitation-1", "sampling-2"}, 0},
		{"no object", `[]`, nil, nil, mcp.CodeInvalidParams},
		{"a value that is no object", `{"x":1}`, nil, nil, mcp.CodeInvalidParams},
		{"a key twice", `{"x":{},"x":{}}`, nil, nil, mcp.CodeInvalidParams},
		{"one malformed: nothing is delivered", `{"elicitation-1":{"action":"perhaps"},"sampling-2":` + sampleOK + `}`, nil, nil, mcp.CodeInvalidParams},
		{"accepted without content", `{"elicitation-1":{"action":"accept"}}`, nil, nil, mcp.CodeInvalidParams},
		{"sampling without model", `{"sampling-2":{"role":"assistant","content":{"type":"text","text":"x"}}}`, nil, nil, mcp.CodeInvalidParams},
		{"content that does not fit, the rest delivered", `{"elicitation-1":{"action":"accept","content":{"y":"no"}},"sampling-2":` + sampleOK + `}`,
			[]string{s + sampleOK + "}"}, []string{"elicitation-1"}, 0},
		{"declined, with content", `{"elicitation-1":{"action":"decline","content":{"y":true}},"sampling-2":` + sampleOK + `}`,
			[]string{e + `{"action":"decline"}}`, s + sampleOK + "}"}, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, Config{}, func(t *testing.T, r *rig) {
				one := r.call("1")
				at := r.called()
				r.sure("1")
				r.sample("2")
				r.window()
				one.asks(t, "elicitation-1", "sampling-2")
				two := r.retry(tools(), "2", one, c.answers)
				for _, want := range c.server {
					r.got(want)
				}
				r.quiet()
				switch {
				case c.code != 0:
					two.fails(t, c.code, "")
					if two.err.HTTPStatus() != 400 {
						t.Errorf("status %d", two.err.HTTPStatus())
					}
					three := r.retry(tools(), "3", one, answered) // it still waits
					three.open(t)
				case c.asked != nil:
					two.asks(t, c.asked...)
					if two.state(t) == one.state(t) {
						t.Error("a new round has the old state")
					}
				default:
					r.completes(at, two)
				}
			})
		})
	}
}

// A form whose content does not fit is asked for three times more; then the retry is refused, and the call still waits (CLF-08).
func TestUnfitContent(t *testing.T) {
	run(t, Config{}, func(t *testing.T, r *rig) {
		last := r.call("1")
		r.called()
		r.sure("1")
		r.window()
		for i := range 3 {
			last = r.retry(tools(), fmt.Sprint(i+2), last, `{"elicitation-1":{"action":"accept","content":{"y":1}}}`)
			last.asks(t, "elicitation-1")
		}
		r.retry(tools(), "9", last, `{"elicitation-1":{"action":"accept","content":{"y":1}}}`).fails(t, mcp.CodeInvalidParams, bridge.ReasonInputResponse)
		r.quiet()
		r.retry(tools(), "10", last, `{"elicitation-1":`+yes+`}`).open(t)
		r.got(`{"jsonrpc":"2.0","id":1,"result":` + yes + `}`)
	})
}

// Duplicates and late copies: a state of an earlier round is answered with the questions of the current one, one of the current
// round joins the retry that came first, and the answers are delivered once (MRT-08, translation 5.6).
func TestCopies(t *testing.T) {
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("1")
		at := r.called()
		r.sure("1")
		r.window()
		two := r.retry(tools(), "2", one, `{"elicitation-1":`+yes+`}`)
		r.got(`{"jsonrpc":"2.0","id":1,"result":` + yes + `}`)
		copied := r.retry(tools(), "3", one, `{"elicitation-1":{"action":"decline"}}`)
		copied.open(t)
		r.quiet()
		r.sample("2")
		r.window()
		two.asks(t, "sampling-2")
		copied.asks(t, "sampling-2")
		old := r.retry(tools(), "4", one, `{"elicitation-1":`+yes+`,"sampling-2":`+sampleOK+`}`)
		old.asks(t, "sampling-2") // of the round before: nothing is delivered
		r.quiet()
		last := r.retry(tools(), "5", old, `{"sampling-2":`+sampleOK+`}`)
		r.got(`{"jsonrpc":"2.0","id":2,"result":` + sampleOK + `}`)
		r.completes(at, last)
		again := r.retry(tools(), "6", old, `{"sampling-2":`+sampleOK+`}`) // its response got lost
		if again.result(t, "content") != last.result(t, "content") {
			t.Errorf("the copy got %s", again.answer(t))
		}
		r.quiet()
		r.pass(time.Minute)
		r.retry(tools(), "7", old, "").fails(t, mcp.CodeInvalidParams, bridge.ReasonParkedLost)
		r.quiet()
	})
}

// The limit of copies that wait, at n and n+1.
func TestReaders(t *testing.T) {
	run(t, Config{Readers: 2}, func(t *testing.T, r *rig) {
		one := r.call("1")
		r.called()
		r.sure("1")
		r.window()
		answers := `{"elicitation-1":` + yes + `}`
		r.retry(tools(), "2", one, answers).open(t)
		r.retry(tools(), "3", one, answers).open(t)
		r.retry(tools(), "4", one, answers).fails(t, mcp.CodeInternal, bridge.ReasonOverload)
	})
}

// The server goes on while the client is asked (translation 5.2): its answer is kept for the retry; a question it takes back is not
// asked any more, and one more is asked in the next round.
func TestServerGoesOn(t *testing.T) {
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("1")
		at := r.called()
		r.sure("1")
		r.window()
		state := one.state(t)
		r.say(`{"jsonrpc":"2.0","id":` + at + `,"result":{"content":[]}}`)
		r.got(`{"jsonrpc":"2.0","id":1,"result":{"action":"cancel"}}`)
		r.pass(9 * time.Minute)
		if got := r.retry(tools(), "2", one, `{"elicitation-1":`+yes+`}`); got.result(t, "content") != "[]" {
			t.Errorf("the retry with %s got %s", state, got.answer(t))
		}
		r.quiet()
	})
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("1")
		at := r.called()
		r.sure("1")
		r.window()
		one.asks(t, "elicitation-1")
		r.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		r.sample("2")
		two := r.retry(tools(), "2", one, `{"elicitation-1":`+yes+`}`)
		r.quiet() // the answer to what was taken back is dropped
		two.asks(t, "sampling-2")
		r.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		three := r.retry(tools(), "3", two, `{"sampling-2":`+sampleOK+`}`)
		three.open(t)
		r.completes(at, three)
		r.quiet()
	})
}

// Nobody comes back: at the end of the TTL the call is cancelled first, then each question has an answer (translation 5.7).
func TestNobodyComesBack(t *testing.T) {
	run(t, Config{TTL: time.Minute}, func(t *testing.T, r *rig) {
		one := r.call("1")
		at := r.called()
		r.sure("1")
		r.sample("2")
		r.ask("3", mcp.RootsList, `{}`)
		r.window()
		one.asks(t, "elicitation-1", "sampling-2", "roots-3")
		r.pass(time.Minute - time.Nanosecond)
		r.quiet()
		r.pass(time.Nanosecond)
		r.got(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + at + `,"reason":"nobody answered in time"}}`)
		r.got(`{"jsonrpc":"2.0","id":1,"result":{"action":"cancel"}}`)
		r.got(`{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"User rejected sampling request"}}`)
		if m := r.next(); !strings.Contains(string(m.Raw), `"id":3,"error":{"code":-32603`) {
			t.Errorf("roots: %s", m.Raw)
		}
		r.retry(tools(), "2", one, "").fails(t, mcp.CodeInvalidParams, bridge.ReasonParkedLost)
		r.pass(time.Millisecond)
		r.retry(tools(), "3", one, "").fails(t, mcp.CodeInvalidParams, bridge.ReasonStateExpired)
		if r.table.Open() != 0 || r.given != 1 {
			t.Errorf("%d calls are open, the link was given back %d times", r.table.Open(), r.given)
		}
		r.pass(time.Hour)
		if n := r.table.Len(); n != 0 {
			t.Errorf("%d calls are kept", n)
		}
	})
}

// The hard life of a call, however often its client comes back.
func TestLife(t *testing.T) {
	run(t, Config{TTL: time.Minute, Life: 90 * time.Second}, func(t *testing.T, r *rig) {
		one := r.call("1")
		r.called()
		r.sure("1")
		r.window()
		r.pass(50 * time.Second)
		two := r.retry(tools(), "2", one, "")
		two.asks(t, "elicitation-1")
		r.pass(40*time.Second - 30*time.Millisecond)
		if m := r.next(); !m.MethodIs(mcp.Cancelled) {
			t.Errorf("the server got %s", m.Raw)
		}
	})
}

// The client leaves while it waits for the call: the call is cancelled (HTTP-M-17), and its state is void. Between rounds it may
// leave (MRT-14). Of several copies the last one counts.
func TestClientLeaves(t *testing.T) {
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("1")
		at := r.called()
		r.sure("1")
		r.window()
		one.d.Cancel(nil) // the connection of the first request closes
		r.quiet()
		two := r.retry(tools(), "2", one, `{"elicitation-1":`+yes+`}`)
		r.next()
		three := r.retry(tools(), "3", one, "")
		two.d.Cancel(nil)
		r.quiet()
		three.d.Cancel([]byte(`"gone"`))
		r.got(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + at + `,"reason":"gone"}}`)
		r.retry(tools(), "4", one, "").fails(t, mcp.CodeInvalidParams, bridge.ReasonParkedLost)
	})
}

// The server ends: who waits is told at once, who comes back later too, and a tool is never run again; a read is, with the answers in
// hand used where the question is the same (translation 5.9).
func TestServerEnds(t *testing.T) {
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("1")
		r.called()
		r.sure("1")
		r.window()
		one.asks(t, "elicitation-1")
		r.die()
		r.retry(tools(), "2", one, `{"elicitation-1":`+yes+`}`).fails(t, mcp.CodeInternal, bridge.ReasonBackTerminated)
		if r.server.opens != 1 {
			t.Error("the server was started again for a retry")
		}
	})
	read := caller{bridge.Local, everything, mcp.ResourcesRead}
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.send(read, "1", `"uri":"file:///a"`)
		r.called()
		r.sure("1")
		r.window()
		state := one.state(t)
		r.die()
		two := r.send(read, "2", `"uri":"file:///a","inputResponses":{"elicitation-1":`+yes+`},"requestState":`+state)
		at := r.called()
		r.sure("77")
		r.got(`{"jsonrpc":"2.0","id":77,"result":` + yes + `}`) // the same question: the answer is in hand
		r.say(`{"jsonrpc":"2.0","id":` + at + `,"result":{"contents":[]}}`)
		if got := two.result(t, "contents"); got != "[]" {
			t.Errorf("got %s", two.answer(t))
		}
	})
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.send(read, "1", `"uri":"file:///a"`)
		r.called()
		r.sure("1")
		r.window()
		state := one.state(t)
		r.die()
		two := r.send(read, "2", `"uri":"file:///a","inputResponses":{"elicitation-1":`+yes+`},"requestState":`+state)
		r.called()
		r.ask("77", mcp.ElicitationCreate, `{"message":"Something else?","requestedSchema":{"type":"object","properties":{}}}`)
		r.window()
		two.asks(t, "elicitation-1") // another question: the client is asked
	})
	run(t, Config{NoRestart: true}, func(t *testing.T, r *rig) {
		one := r.send(read, "1", `"uri":"file:///a"`)
		r.called()
		r.sure("1")
		r.window()
		state := one.state(t)
		r.die()
		r.send(read, "2", `"uri":"file:///a","requestState":`+state).fails(t, mcp.CodeInternal, bridge.ReasonBackTerminated)
	})
}

// After a restart of the bridge nobody knows the call: a tool is not run again, a read is (translation 5.9).
func TestLostRecord(t *testing.T) {
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("1")
		r.called()
		r.sure("1")
		r.window()
		state := one.state(t)
		other := New(Config{Server: "srv", Box: box(t, 1)})
		defer other.Close()
		ex, _ := exchangeOf(t, tools(), "2", deploy+`,"requestState":`+state)
		if _, known, err := other.Retry(context.Background(), ex, strings.Trim(state, `"`), nil); !known || err == nil || err.Reason != bridge.ReasonParkedLost || err.HTTPStatus() != 400 {
			t.Errorf("known %v, %+v", known, err)
		}
	})
}

// The limits of calls that are parked, at n and n+1: the server hears why, and that the call is off (translation 5.7).
func TestParkedLimits(t *testing.T) {
	for _, c := range []struct {
		cfg    Config
		second bridge.Principal
	}{{Config{PerPrincipal: 1}, bridge.Local}, {Config{PerLink: 1}, "other"}} {
		run(t, c.cfg, func(t *testing.T, r *rig) {
			one := r.call("1")
			r.called()
			r.sure("1")
			r.window()
			one.asks(t, "elicitation-1")
			if c.second == "other" {
				return // who several principals' questions belong to is not guessed; the limit of links is tried below
			}
			two := r.call("2")
			at := r.called()
			r.sure("2")
			two.fails(t, mcp.CodeInternal, bridge.ReasonTooManyParked)
			if m := r.next(); !strings.Contains(string(m.Raw), `"id":2,"error":{"code":-32603`) {
				t.Errorf("the server got %s", m.Raw)
			}
			if m := r.next(); !m.MethodIs(mcp.Cancelled) || string(m.Bytes(m.Param("requestId"))) != at {
				t.Errorf("the server got %s", m.Raw)
			}
		})
	}
	run(t, Config{PerLink: 1}, func(t *testing.T, r *rig) {
		r.call("1")
		r.called()
		r.sure("1")
		r.window()
		two := r.call("2")
		r.called()
		r.sure("2")
		two.fails(t, mcp.CodeInternal, bridge.ReasonTooManyParked)
	})
}

// The limit of rounds, at n and n+1.
func TestRounds(t *testing.T) {
	run(t, Config{Rounds: 3}, func(t *testing.T, r *rig) {
		last := r.call("1")
		r.called()
		for i := 1; i <= 3; i++ {
			r.sure(fmt.Sprint(i))
			r.window()
			last = r.retry(tools(), fmt.Sprint(i+1), last, fmt.Sprintf(`{"elicitation-%d":%s}`, i, yes))
			r.next()
		}
		r.sure("4")
		r.window()
		last.fails(t, mcp.CodeInternal, bridge.ReasonTooManyRounds)
		if m := r.next(); !m.MethodIs(mcp.Cancelled) {
			t.Errorf("the server got %s", m.Raw)
		}
	})
}

// The limit of open questions of a call, at n and n+1: one more is refused to the server, the others stay.
func TestQuestionLimit(t *testing.T) {
	run(t, Config{Questions: 2}, func(t *testing.T, r *rig) {
		one := r.call("1")
		r.called()
		for i := range 3 {
			r.sure(fmt.Sprint(i))
		}
		if m := r.next(); !strings.Contains(string(m.Raw), `"id":2,"error"`) {
			t.Errorf("the server got %s", m.Raw)
		}
		r.window()
		one.asks(t, "elicitation-1", "elicitation-2")
	})
}

// Progress and logs go to the request that waits, under its own token, and to nobody between rounds (PRG-03, 5.2).
func TestProgress(t *testing.T) {
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("1")
		at := r.called()
		note := func(n int) {
			r.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, at, n))
		}
		note(1)
		r.sure("1")
		r.window()
		note(2)
		two := r.retry(tools(), "2", one, `{"elicitation-1":`+yes+`}`)
		note(3)
		if len(one.sink.notes) != 1 || len(two.sink.notes) != 1 || !strings.Contains(two.sink.notes[0], `"progressToken":2,"progress":3`) {
			t.Errorf("the first request heard %q, the second %q", one.sink.notes, two.sink.notes)
		}
	})
}

// What a client did not declare (translation 5.4): a retry that declares less ends the call with -32021; a link that declared nothing
// refuses, and the failure that follows becomes -32021 with the server's own words; a success stays one.
func TestUndeclared(t *testing.T) {
	poor := tools()
	poor.caps = `{"elicitation":{}}`
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("1")
		r.called()
		r.sample("1")
		r.window()
		two := r.retry(poor, "2", one, "")
		two.fails(t, mcp.CodeMissingRequiredCapability, "")
		if !strings.Contains(two.answer(t), `"requiredCapabilities":{"sampling":{}}`) || two.err.HTTPStatus() != 400 {
			t.Errorf("got %s", two.answer(t))
		}
		if m := r.next(); !m.MethodIs(mcp.Cancelled) {
			t.Errorf("the server got %s", m.Raw)
		}
	})
	for failure, want := range map[string]int{
		`"result":{"isError":true,"content":[{"type":"text","text":"no model"}]}`: mcp.CodeMissingRequiredCapability,
		`"error":{"code":-32603,"message":"no model"}`:                            mcp.CodeMissingRequiredCapability,
		`"result":{"content":[]}`:                                                 0,
	} {
		runWith(t, Config{}, era.ElicitForm, func(t *testing.T, r *rig) {
			one := r.send(poor, "1", deploy)
			at := r.called()
			r.sample("1")
			if m := r.next(); !strings.Contains(string(m.Raw), `"code":-32601`) {
				t.Errorf("the server got %s", m.Raw)
			}
			r.say(`{"jsonrpc":"2.0","id":` + at + `,` + failure + `}`)
			if want == 0 {
				if one.result(t, "content") != "[]" {
					t.Errorf("got %s", one.answer(t))
				}
				return
			}
			one.fails(t, want, "")
			if !strings.Contains(one.answer(t), "no model") {
				t.Errorf("got %s", one.answer(t))
			}
		})
	}
	runWith(t, Config{}, era.ElicitForm, func(t *testing.T, r *rig) { // CLF-06
		r.send(poor, "1", deploy)
		r.called()
		r.ask("1", mcp.ElicitationCreate, `{"mode":"url","url":"https://x.example","elicitationId":"e","message":"m"}`)
		if m := r.next(); !strings.Contains(string(m.Raw), `"code":-32602`) {
			t.Errorf("the server got %s", m.Raw)
		}
	})
}

// Roots: asked once in a call; static ones for clients without; at the start of a server held for the first call that has some
// (translation 5.4, 5.9).
func TestRoots(t *testing.T) {
	const have = `{"roots":[{"uri":"file:///home/u"}]}`
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("1")
		r.called()
		r.ask("1", mcp.RootsList, `{}`)
		r.window()
		one.asks(t, "roots-1")
		r.retry(tools(), "2", one, `{"roots-1":`+have+`}`)
		r.got(`{"jsonrpc":"2.0","id":1,"result":` + have + `}`)
		r.ask("2", mcp.RootsList, `{}`)
		r.got(`{"jsonrpc":"2.0","id":2,"result":` + have + `}`)
	})
	static := `{"roots":[{"uri":"file:///srv"}]}`
	rootless := tools()
	rootless.caps = `{}`
	run(t, Config{Roots: []byte(static)}, func(t *testing.T, r *rig) {
		r.send(rootless, "1", deploy)
		r.called()
		r.ask("1", mcp.RootsList, `{}`)
		r.got(`{"jsonrpc":"2.0","id":1,"result":` + static + `}`)
	})
	run(t, Config{}, func(t *testing.T, r *rig) {
		r.send(rootless, "1", deploy)
		r.called()
		r.ask("1", mcp.RootsList, `{}`)
		if m := r.next(); !strings.Contains(string(m.Raw), `"code":-32601`) {
			t.Errorf("the server got %s", m.Raw)
		}
	})
	run(t, Config{}, func(t *testing.T, r *rig) { // asked right after the handshake
		if _, err := r.link.Conn(context.Background()); err != nil {
			t.Fatal(err)
		}
		r.ask("1", mcp.RootsList, `{}`)
		one := r.call("1")
		one.asks(t, "roots-1")
		r.quiet() // the call itself waits
		two := r.retry(tools(), "2", one, `{"roots-1":`+have+`}`)
		r.got(`{"jsonrpc":"2.0","id":1,"result":` + have + `}`)
		r.completes(r.called(), two)
	})
	run(t, Config{}, func(t *testing.T, r *rig) { // nobody comes
		if _, err := r.link.Conn(context.Background()); err != nil {
			t.Fatal(err)
		}
		r.ask("1", mcp.RootsList, `{}`)
		r.pass(20*time.Second - time.Nanosecond)
		r.quiet()
		r.pass(time.Nanosecond)
		if m := r.next(); !strings.Contains(string(m.Raw), `"code":-32602`) {
			t.Errorf("the server got %s", m.Raw)
		}
	})
}

// Questions outside any call reach nobody (CLF-14).
func TestOutsideCalls(t *testing.T) {
	run(t, Config{}, func(t *testing.T, r *rig) {
		if _, err := r.link.Conn(context.Background()); err != nil {
			t.Fatal(err)
		}
		r.sure("1")
		r.sample("2")
		for range 2 {
			if m := r.next(); !strings.Contains(string(m.Raw), `"code":-32602`) {
				t.Errorf("the server got %s", m.Raw)
			}
		}
	})
}

// Answers that come with the first request are used once, in the round in which their key comes (decision 16).
func TestEarlyAnswers(t *testing.T) {
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.send(tools(), "1", deploy+`,"inputResponses":{"sure":`+yes+`,"elicitation-2":{"action":"accept"}}`)
		at := r.called()
		r.sure(`"sure"`)
		r.got(`{"jsonrpc":"2.0","id":"sure","result":` + yes + `}`)
		r.sure("2")
		r.window()
		one.asks(t, "elicitation-2") // that one was no answer
		two := r.retry(tools(), "2", one, `{"elicitation-2":`+yes+`}`)
		r.next()
		r.completes(at, two)
	})
}

// Elicitation by URL: the id stays with the bridge, an acceptance carries no content (CLF-03, CLF-07).
func TestURL(t *testing.T) {
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("1")
		r.called()
		r.ask(`"srv-4"`, mcp.ElicitationCreate, `{"mode":"url","elicitationId":"e-1","url":"https://id.example/c","message":"Sign in"}`)
		r.window()
		if got, want := one.result(t, "inputRequests"), `{"srv-4":{"method":"elicitation/create","params":{"mode":"url","url":"https://id.example/c","message":"Sign in"}}}`; got != want {
			t.Errorf("the client is asked %s", got)
		}
		r.retry(tools(), "2", one, `{"srv-4":{"action":"accept","content":{"x":1}}}`)
		r.got(`{"jsonrpc":"2.0","id":"srv-4","result":{"action":"accept"}}`)
	})
}

// A refusal until URLs have been visited (-32042, translation 5.8): nothing is parked, any replica can go on; accepted, the request is
// sent again once the server says they were, or after ten seconds; declined, it is over.
func TestURLRequired(t *testing.T) {
	refusal := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32042,"message":"Sign in first","data":{"elicitations":[{"mode":"url","elicitationId":"e-9","url":"https://id.example/go","message":"Connect"}]}}}`
	}
	begin := func(t *testing.T, r *rig) *request {
		one := r.call("1")
		r.say(refusal(r.called()))
		if got, want := one.result(t, "inputRequests"), `{"elicitation-1":{"method":"elicitation/create","params":{"mode":"url","url":"https://id.example/go","message":"Connect"}}}`; got != want {
			t.Fatalf("the client is asked %s", got)
		}
		if r.table.Open() != 0 {
			t.Error("something is parked")
		}
		return one
	}
	const accept = `{"elicitation-1":{"action":"accept"}}`
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := begin(t, r)
		r.say(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e-9"}}`)
		start := time.Now()
		two := r.retry(tools(), "2", one, accept)
		if time.Since(start) != 0 {
			t.Error("the retry waited for what had been said")
		}
		r.completes(r.called(), two)
	})
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := begin(t, r)
		start := time.Now()
		two := r.retry(tools(), "2", one, accept)
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("the retry waited %v", d)
		}
		r.say(refusal(r.called())) // another attempt
		two.asks(t, "elicitation-2")
	})
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := begin(t, r)
		two := r.retry(tools(), "2", one, `{"elicitation-1":{"action":"decline"}}`)
		if two.result(t, "isError") != "true" || two.result(t, "resultType") != `"complete"` {
			t.Errorf("got %s", two.answer(t))
		}
		r.quiet()
	})
	poor := tools()
	poor.caps = `{"elicitation":{}}`
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.send(poor, "1", deploy)
		r.say(refusal(r.called()))
		one.fails(t, mcp.CodeMissingRequiredCapability, "")
	})
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("1")
		r.say(`{"jsonrpc":"2.0","id":` + r.called() + `,"error":{"code":-32042,"message":"x","data":{}}}`)
		one.fails(t, mcp.CodeInternal, "")
	})
}

// The bridge stops: who is being asked has nobody to come back to, who waits has an error, and the server is told.
func TestClose(t *testing.T) {
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("1")
		r.called()
		r.sure("1")
		r.window()
		waits := r.call("2")
		r.called()
		r.table.Drain()
		if m := r.next(); !m.MethodIs(mcp.Cancelled) {
			t.Errorf("the server got %s", m.Raw)
		}
		r.next()
		waits.open(t)
		r.retry(tools(), "3", one, "").fails(t, mcp.CodeInvalidParams, bridge.ReasonParkedLost)
		r.sure("9")
		waits.fails(t, mcp.CodeInternal, bridge.ReasonStopping)
	})
}

// Which of several calls of one user a question belongs to is a guess, that the call got it for which the server was given something to
// do last; one whose call ends meanwhile goes to another call, since the server may wait for it all the same (translation 5.10).
func TestGuesses(t *testing.T) {
	run(t, Config{}, func(t *testing.T, r *rig) {
		one, two := r.call("1"), r.call("2")
		at1, at2 := r.called(), r.called()
		r.sure("1") // of the first call; the second is asked
		r.window()
		two.asks(t, "elicitation-1")
		one.open(t)
		r.say(`{"jsonrpc":"2.0","id":` + at2 + `,"result":{"content":[]}}`)
		r.quiet() // the question is still open
		r.window()
		one.asks(t, "elicitation-1")
		three := r.retry(tools(), "3", one, `{"elicitation-1":`+yes+`}`)
		r.got(`{"jsonrpc":"2.0","id":1,"result":` + yes + `}`)
		r.completes(at1, three)
	})
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("1")
		r.called()
		r.sure("1")
		r.window()
		two := r.call("2")
		r.called()
		three := r.retry(tools(), "3", one, `{"elicitation-1":`+yes+`}`)
		r.next()
		r.sure("2")
		r.window()
		three.asks(t, "elicitation-2")
		two.open(t)
	})
	run(t, Config{}, func(t *testing.T, r *rig) { // strangers are not guessed between (SEC-08)
		r.call("1")
		r.called()
		other := tools()
		other.principal = "other"
		r.send(other, "2", deploy)
		r.called()
		r.sure("1")
		if m := r.next(); !strings.Contains(string(m.Raw), `"code":-32602`) {
			t.Errorf("the server got %s", m.Raw)
		}
	})
}
