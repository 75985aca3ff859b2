package parked

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// What is no state of this bridge for this caller and this request is refused with one text, changes nothing and reaches no server
// (MRT-06, MRT-07, SEC-01, translation 5.6).
func TestForeignStates(t *testing.T) {
	run(t, Config{}, func(t *testing.T, r *rig) {
		one := r.call("1")
		at := r.called()
		r.sure("1")
		r.window()
		state := strings.Trim(one.state(t), `"`)
		answers := `,"inputResponses":{"elicitation-1":` + yes + `}`
		refused := func(what string, c caller, params, state string, reason bridge.Reason) {
			t.Helper()
			ex, s := exchangeOf(t, c, "2", params+answers+`,"requestState":"`+state+`"`)
			d, known, err := r.table.Retry(context.Background(), ex, state, nil)
			if !known && err == nil { // a front gives it to Call
				conn, _ := r.link.Conn(context.Background())
				d, err = r.table.Call(context.Background(), r.link, conn, func() {}, ex)
			}
			if d != nil || err == nil || err.Reason != reason || err.HTTPStatus() != 400 || len(s.answers) > 0 {
				t.Errorf("%s: %v, %+v", what, d, err)
			}
			if reason == bridge.ReasonRequestState && err != nil && err.Message != bridge.InvalidState().Message {
				t.Errorf("%s: the text tells more than the others: %s", what, err.Message)
			}
			r.quiet()
		}
		for i := range len(state) {
			refused("a flipped bit", tools(), deploy, state[:i]+string(state[i]^1)+state[i+1:], bridge.ReasonRequestState)
			refused("cut", tools(), deploy, state[:i], bridge.ReasonRequestState)
		}
		refused("more behind it", tools(), deploy, state+"A", bridge.ReasonRequestState)
		refused("padding", tools(), deploy, state+"=", bridge.ReasonRequestState)
		refused("too long", tools(), deploy, prefix+strings.Repeat("A", maxState), bridge.ReasonRequestState)
		refused("nothing", tools(), deploy, "", bridge.ReasonRequestState)
		other := tools()
		other.principal = "mallory"
		refused("another principal", other, deploy, state, bridge.ReasonRequestState)
		other = tools()
		other.method = mcp.PromptsGet
		refused("another method", other, deploy, state, bridge.ReasonStateMismatch)
		refused("another tool", tools(), `"name":"destroy","arguments":{"n":1.10}`, state, bridge.ReasonStateMismatch)
		refused("other arguments", tools(), `"name":"deploy","arguments":{"n":1.11}`, state, bridge.ReasonStateMismatch)
		refused("more arguments", tools(), deploy+`,"x":1`, state, bridge.ReasonStateMismatch)
		elsewhere := New(Config{Server: "other", Box: r.table.cfg.Box})
		defer elsewhere.Close()
		if _, ok := elsewhere.open(state); ok {
			t.Error("another server takes the state")
		}
		strange := New(Config{Server: "srv", Box: box(t, 9)})
		defer strange.Close()
		if _, ok := strange.open(state); ok {
			t.Error("a bridge with another key takes the state")
		}
		two := r.send(tools(), "3", `"arguments":{"n":1.1e0},"name":"deploy"`+answers+`,"requestState":"`+state+`"`) // written differently
		r.next()
		r.completes(at, two)
		r.pass(time.Minute)
		refused("after the end", tools(), deploy, state, bridge.ReasonParkedLost)
	})
}

// States are short, and no two are the same.
func TestStateForm(t *testing.T) {
	run(t, Config{Questions: 100}, func(t *testing.T, r *rig) {
		one := r.send(caller{bridge.Local, everything, mcp.ResourcesRead}, "1", `"uri":"file:///a"`)
		r.called()
		for i := range 60 {
			r.sure(string(itoa(i)))
		}
		r.window()
		state := strings.Trim(one.state(t), `"`)
		if len(state) > maxState {
			t.Errorf("a state has %d bytes", len(state))
		}
		again := strings.Trim(r.send(caller{bridge.Local, everything, mcp.ResourcesRead}, "2", `"uri":"file:///a","requestState":"`+state+`"`).state(t), `"`)
		if again == state {
			t.Error("two rounds have the same state")
		}
	})
}

// FuzzRetry gives a waiting call whatever comes as state and answers: it never panics, and nothing reaches the server but what
// answers its question.
func FuzzRetry(f *testing.F) {
	f.Add("mb1.x", `{"elicitation-1":{"action":"accept","content":{"y":true}}}`, true)
	f.Add("", `{"elicitation-1":{"action":"accept","content":{"y":1}}}`, false)
	f.Add(prefix+base64.RawURLEncoding.EncodeToString(make([]byte, 100)), `[]`, false)
	f.Fuzz(func(t *testing.T, state, answers string, real bool) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{}, fullProfile)
			defer r.close()
			one := r.call("1")
			r.called()
			r.sure("1")
			r.window()
			if real {
				state = strings.Trim(one.state(t), `"`)
			}
			ex, ok := tryExchange(tools(), "2", deploy+`,"inputResponses":`+answers+`,"requestState":"`+state+`"`)
			if !ok {
				return
			}
			_, _, _ = r.table.Retry(context.Background(), ex, state, nil)
			synctest.Wait()
			for _, m := range r.server.live.taken() {
				if !real || string(m.Bytes(m.ID)) != "1" || m.Kind != framing.Result {
					t.Fatalf("the server got %s", m.Raw)
				}
			}
		})
	})
}
