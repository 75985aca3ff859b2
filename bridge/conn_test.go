package bridge_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Ids towards the server count up from 1 and are never used again, whatever the clients call their requests (FRM-10,
// CON-15); the client's id comes back byte for byte (FRM-08).
func TestIDs(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	for i, id := range []string{`0`, `""`, `"1"`, `1`, `-1`, `9007199254740993`, `"\u0061"`, `1`} {
		ex, s := call(id, "")
		_, at := r.dispatch(t, ex)
		if want := string(rune('1' + i)); at != want {
			t.Errorf("id at the server %s, want %s", at, want)
		}
		r.say(result(at, `{"x":1.10}`))
		if got, want := s.answer(t), result(id, `{"x":1.10}`); got != want {
			t.Errorf("answer %s, want %s", got, want)
		}
	}
}

// The answer goes to the one who asked, in whatever order the answers come (rule 2).
func TestAnswersOutOfOrder(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	var sinks []*sink
	var ids []string
	for range 5 {
		ex, s := call("7", `"p"`)
		_, id := r.dispatch(t, ex)
		sinks, ids = append(sinks, s), append(ids, id)
	}
	for _, i := range []int{3, 0, 4, 2, 1} {
		r.say(result(ids[i], `{"n":`+ids[i]+`}`))
	}
	for i, s := range sinks {
		if got, want := s.answer(t), result("7", `{"n":`+ids[i]+`}`); got != want {
			t.Errorf("answer %s, want %s", got, want)
		}
	}
}

// Late, duplicate and unknown answers are dropped (CAN-05, translation 4.1).
func TestStrayAnswers(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	ex, s := call("1", "")
	ticket, id := r.dispatch(t, ex)
	for _, stray := range []string{`2`, `0`, `-1`, `"x"`, `"01"`, `01234567890123456789`, `1111111111111111111111`, `"1.0"`} {
		r.say(result(stray, `{}`))
	}
	r.say(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"x"}}`)
	r.say(`{"jsonrpc":"2.0","error":{"code":-32603,"message":"x"}}`)
	s.open(t)
	r.say(result(id, `{"first":true}`))
	r.say(result(id, `{"second":true}`))
	if got := s.answer(t); got != result("1", `{"first":true}`) {
		t.Errorf("answer %s", got)
	}
	if ticket.Cancel(nil) {
		t.Error("an answered request could be cancelled")
	}
	r.quiet(t)
}

// An id that comes back as a string is accepted (translation 4.1), in responses and as a progress token.
func TestIDAsString(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	ex, s := call("5", `"tok"`)
	_, id := r.dispatch(t, ex)
	r.say(progress(`"`+id+`"`, "1"))
	r.say(result(`"`+id+`"`, `{}`))
	if got := s.answer(t); got != result("5", `{}`) {
		t.Errorf("answer %s", got)
	}
	same(t, "progress", s.noted(), []string{progress(`"tok"`, "1")})
	if n := r.ev.count(bridge.EventViolation); n != 1 {
		t.Errorf("%d violations reported, want 1", n)
	}
}

// The token towards the server is the request's id there; the client's comes back byte for byte (PRG-01). Without a token
// none is sent (PRG-10).
func TestProgressTokens(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	for _, tok := range []string{`"p"`, `1`, `"1"`, `0`, `"é\n"`} {
		ex, s := call("1", tok)
		if _, err := r.conn.Dispatch(t.Context(), ex); err != nil {
			t.Fatal(err)
		}
		m := r.next(t)
		if got := string(m.Bytes(m.MetaMember(mcp.MetaProgressToken))); got != idOf(m) {
			t.Errorf("token at the server %s, want %s", got, idOf(m))
		}
		r.say(progress(idOf(m), "1"))
		same(t, "progress", s.noted(), []string{progress(tok, "1")})
	}
	ex, s := call("1", "")
	if _, err := r.conn.Dispatch(t.Context(), ex); err != nil {
		t.Fatal(err)
	}
	m := r.next(t)
	if strings.Contains(string(m.Raw), "progressToken") {
		t.Errorf("a token was made up: %s", m.Raw)
	}
	r.say(progress(idOf(m), "1"))
	same(t, "progress nobody asked for", s.noted(), nil)
}

// Progress reaches a request while it is open and as long as it grows (PRG-02, PRG-03, PRG-04, case 67).
func TestProgressRules(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	ex, s := call("1", `"p"`)
	_, id := r.dispatch(t, ex)
	for _, v := range []string{"-3", "-3", "0", "1e0", "1", "0.5", "1.5", "1.50", `"2"`, "null", "1e999", "2"} {
		r.say(progress(id, v))
	}
	r.say(progress("999", "9"))
	r.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":10}}`)
	r.say(`{"jsonrpc":"2.0","method":"notifications/progress"}`)
	r.say(result(id, `{}`))
	r.say(progress(id, "11"))
	s.answer(t)
	want := []string{progress(`"p"`, "-3"), progress(`"p"`, "0"), progress(`"p"`, "1e0"), progress(`"p"`, "1.5"), progress(`"p"`, "2")}
	same(t, "progress", s.noted(), want)
	if !slices.Equal(s.keys, []string{"progress", "progress", "progress", "progress", "progress"}) {
		t.Errorf("keys %q", s.keys)
	}
	if len(r.h.notes) != 0 {
		t.Errorf("progress was handed up: %q", r.h.notes)
	}
}

// Progress of one request never reaches another one, whatever the clients' tokens are (rule 2).
func TestProgressDoesNotCross(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	a, sa := call("1", "2") // a's token is b's id at the server
	b, sb := call("1", "1")
	_, ida := r.dispatch(t, a)
	_, idb := r.dispatch(t, b)
	r.say(progress(ida, "1"))
	r.say(progress(idb, "5"))
	same(t, "a", sa.noted(), []string{progress("2", "1")})
	same(t, "b", sb.noted(), []string{progress("1", "5")})
}

// While probing nothing but answers is looked at; in the handshake pings are answered too (VER-25, LEG-04).
func TestPhases(t *testing.T) {
	r := probingRig(t, bridge.Limits{})
	everything := func() {
		r.say(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
		r.say(`{"jsonrpc":"2.0","id":"r","method":"roots/list"}`)
		r.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
	}
	everything()
	r.quiet(t)
	r.conn.Greeting()
	everything()
	r.expect(t, `{"jsonrpc":"2.0","id":"p","result":{}}`)
	r.quiet(t)
	if len(r.h.requests)+len(r.h.notes) != 0 {
		t.Fatalf("handed up before the handshake was over: %q %q", r.h.requests, r.h.notes)
	}
	r.conn.Establish(legacyFacts(`{}`))
	everything()
	r.expect(t, `{"jsonrpc":"2.0","id":"p","result":{}}`)
	r.quiet(t)
	if len(r.h.requests) != 1 || len(r.h.notes) != 1 {
		t.Fatalf("handed up: %q %q", r.h.requests, r.h.notes)
	}
}

// A request of a modern server is never answered (FRM-16).
func TestModernServerRequests(t *testing.T) {
	r := newRig(t, bridge.Limits{}, modernFacts(`{}`))
	r.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	r.say(`{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{}}`)
	r.quiet(t)
	if len(r.h.requests) != 0 || r.ev.count(bridge.EventViolation) != 2 {
		t.Errorf("handed up %q, violations %d", r.h.requests, r.ev.count(bridge.EventViolation))
	}
}

type reply struct {
	m   *framing.Message
	err error
}

func roundTrip(ctx context.Context, c *bridge.Conn, method string) <-chan reply {
	ch := make(chan reply, 1)
	go func() {
		m, err := c.RoundTrip(ctx, method, []byte(`{}`))
		ch <- reply{m, err}
	}()
	return ch
}

// An error without id answers the one request that is open in a handshake (VER-25).
func TestNullIDAnswersTheProbe(t *testing.T) {
	for _, line := range []string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"x"}}`} {
		r := probingRig(t, bridge.Limits{})
		ch := roundTrip(t.Context(), r.conn, mcp.Discover)
		r.expect(t, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`)
		r.say(line)
		if got := <-ch; got.err != nil || got.m.Kind != framing.Error {
			t.Errorf("%s: %v", line, got.err)
		}
		r.say(line) // nothing is open any more
	}
}

// A late error without id may be the answer to the probe that was given up: it does not refuse the handshake that
// followed (VER-25, case 28).
func TestLateNullIDIsNotTheHandshake(t *testing.T) {
	r := probingRig(t, bridge.Limits{})
	ctx, stop := context.WithCancelCause(t.Context())
	ch := roundTrip(ctx, r.conn, mcp.Discover)
	r.next(t)
	stop(errors.New("silent"))
	if got := <-ch; got.err == nil || got.err.Error() != "silent" {
		t.Fatalf("probe: %v", got.err)
	}
	r.conn.Greeting()
	ch = roundTrip(t.Context(), r.conn, mcp.Initialize)
	if m := r.next(t); idOf(m) != "2" || !m.MethodIs(mcp.Initialize) { // and the probe was not cancelled (CAN-02)
		t.Fatalf("the bridge sent %s", m.Raw)
	}
	r.say(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"not initialized"}}`)
	r.say(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"late"}}`)
	r.say(result("2", `{"ok":true}`))
	if got := <-ch; got.err != nil || got.m.Kind != framing.Result {
		t.Fatalf("handshake: %v", got)
	}
}

// A request of the bridge's own that is given up at an established server is cancelled there (CAN-08).
func TestRoundTripGivesUp(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	ctx, stop := context.WithCancel(t.Context())
	ch := roundTrip(ctx, r.conn, mcp.ToolsList)
	r.next(t)
	stop()
	if got := <-ch; !errors.Is(got.err, context.Canceled) {
		t.Fatal(got.err)
	}
	r.expect(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	r.say(result("1", `{}`))
	if n := openAt(r.conn); n != 0 {
		t.Errorf("%d requests of clients open", n)
	}
}

// The server's end fails every open request once, after whoever owns the connection was told (rule 3).
func TestDeath(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	var sinks []*sink
	for _, id := range []string{"1", `"a"`, "1"} {
		ex, s := call(id, "")
		r.dispatch(t, ex)
		sinks = append(sinks, s)
	}
	own := roundTrip(t.Context(), r.conn, mcp.ToolsList)
	r.next(t)
	r.h.onClosed = func() {
		for _, s := range sinks {
			if s.mu.Lock(); len(s.answers) != 0 {
				t.Error("a call was failed before the connection was forgotten")
			}
			s.mu.Unlock()
		}
	}
	r.die(errDied)
	<-r.conn.Done()
	for i, id := range []string{"1", `"a"`, "1"} {
		has(t, sinks[i].answer(t), id, bridge.ReasonBackTerminated)
	}
	if got := <-own; !errors.Is(got.err, errDied) {
		t.Errorf("own request: %v", got.err)
	}
	if r.h.closed != 1 || !errors.Is(r.conn.Err(), errDied) {
		t.Errorf("closed %d times, %v", r.h.closed, r.conn.Err())
	}
	ex, s := call("1", "")
	if _, err := r.conn.Dispatch(t.Context(), ex); err == nil || err.Reason != bridge.ReasonBackTerminated {
		t.Errorf("dispatch to a dead server: %v", err)
	}
	s.open(t)
}

// A connection that ends before its handshake was over was nobody's yet.
func TestDeathWhileProbing(t *testing.T) {
	r := probingRig(t, bridge.Limits{})
	ch := roundTrip(t.Context(), r.conn, mcp.Discover)
	r.next(t)
	r.die(nil)
	if got := <-ch; got.err == nil {
		t.Error("no error")
	}
	<-r.conn.Done()
	if r.h.closed != 0 {
		t.Error("the handler was told")
	}
}

// Limits.Calls requests may be open; one more is refused with 429 and leaves no trace (rule 4).
func TestCallsLimit(t *testing.T) {
	r := newRig(t, bridge.Limits{Calls: 3}, legacyFacts(`{}`))
	var ids []string
	for range 3 {
		ex, _ := call("1", "")
		_, id := r.dispatch(t, ex)
		ids = append(ids, id)
	}
	ex, s := call("1", "")
	_, err := r.conn.Dispatch(t.Context(), ex)
	if err == nil || err.Status != 429 || err.Reason != bridge.ReasonOverload {
		t.Fatalf("the fourth: %v", err)
	}
	if _, err := r.conn.RoundTrip(t.Context(), mcp.ToolsList, nil); err == nil {
		t.Error("a request of the bridge's own went over the limit")
	}
	r.quiet(t)
	s.open(t)
	r.say(result(ids[1], `{}`))
	if _, id := r.dispatch(t, ex); id != "4" {
		t.Errorf("id %s, want 4", id)
	}
}

// An answer that crosses the end of a wait is not lost without the server being told: either it is returned, or the server
// is told that nobody waits.
func TestRoundTripRacesItsEnd(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	for range 500 {
		ctx, stop := context.WithCancel(t.Context())
		ch := roundTrip(ctx, r.conn, mcp.ToolsList)
		id := idOf(r.next(t))
		go stop()
		r.say(result(id, `{}`))
		if got := <-ch; got.err != nil {
			if m := r.next(t); !m.MethodIs(mcp.Cancelled) {
				t.Fatalf("the bridge sent %s", m.Raw)
			}
		}
		<-ctx.Done()
	}
	r.quiet(t)
}
