package bridge_test

import (
	"errors"
	"strings"
	"testing"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// What can only have been meant as the answer to an open request fails it at once (FRM-13); anything else is junk and
// skipped (FRM-06, case 3). $ stands for the request's id.
func TestMalformed(t *testing.T) {
	for name, c := range map[string]struct {
		line  string
		fails bool
	}{
		"both":              {`{"jsonrpc":"2.0","id":$,"result":{},"error":{"code":1,"message":"x"}}`, true},
		"code no integer":   {`{"jsonrpc":"2.0","id":$,"error":{"code":"1","message":"x"}}`, true},
		"no message":        {`{"jsonrpc":"2.0","id":$,"error":{"code":1}}`, true},
		"error no object":   {`{"jsonrpc":"2.0","id":$,"error":"x"}`, true},
		"neither":           {`{"jsonrpc":"2.0","id":$}`, true},
		"duplicate":         {`{"jsonrpc":"2.0","id":$,"result":{"a":1,"a":2}}`, true},
		"bad UTF-8":         {"{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{\"t\":\"\xff\"}}", true},
		"id as string":      {`{"jsonrpc":"2.0","id":"$","result":{},"error":{"code":1,"message":"x"}}`, true},
		"cut":               {`{"jsonrpc":"2.0","id":$,"result":{"t":"abc`, true},
		"no JSON-RPC":       {`{"id":$,"result":{}}`, false},
		"other version":     {`{"jsonrpc":"1.0","id":$,"result":{}}`, false},
		"no JSON-RPC, cut":  {`{"id":$,"result":{"t":"abc`, false},
		"broken request":    {`{"jsonrpc":"2.0","id":$,"method":"roots/list","params":5}`, false},
		"nameless request":  {`{"jsonrpc":"2.0","id":$,"method":7}`, false},
		"id no integer":     {`{"jsonrpc":"2.0","id":$.0,"result":{}}`, false},
		"id of nothing":     {`{"jsonrpc":"2.0","id":77,"result":{},"error":{"code":1,"message":"x"}}`, false},
		"banner":            {`Server started`, false},
		"brace":             {`{`, false},
		"string":            {`"str"`, false},
		"array of nonsense": {`[1,{},"x",[[$]]]`, false},
		"empty array":       {`[]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
			other, so := call(`"other"`, "")
			r.dispatch(t, other)
			ex, s := call(`"a"`, "")
			_, id := r.dispatch(t, ex)
			r.say(strings.ReplaceAll(c.line, "$", id))
			so.open(t)
			if c.fails {
				has(t, s.answer(t), `"a"`, bridge.ReasonPeerProtocolError)
				return
			}
			s.open(t)
			if r.ev.count(bridge.EventJunk) == 0 {
				t.Error("not reported")
			}
			r.say(result(id, `{}`))
			s.answer(t)
		})
	}
}

// An answer longer than the longest line fails its request at once instead of by a timeout (rule 3, rule 4).
func TestOverlongAnswer(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	ex, s := call(`"a"`, "")
	_, id := r.dispatch(t, ex)
	long := &framing.LineError{Limit: 100, Prefix: []byte(`{"jsonrpc":"2.0","id":` + id + `,"result":{"text":"xxxxx`)}
	r.tell(func(rec bridge.Receiver) { rec.Malformed(long.Prefix, long) })
	got := s.answer(t)
	has(t, got, `"a"`, bridge.ReasonPeerProtocolError)
	if !strings.Contains(got, "longer than 100 bytes") {
		t.Errorf("answer %s", got)
	}
	junk := &framing.LineError{Limit: 100, Prefix: []byte(`xxxxxxx`)}
	r.tell(func(rec bridge.Receiver) { rec.Malformed(junk.Prefix, junk) })
	if r.ev.count(bridge.EventJunk) != 1 {
		t.Error("junk not reported")
	}
}

// A request of the bridge's own learns why its answer was no good.
func TestMalformedOwn(t *testing.T) {
	r := probingRig(t, bridge.Limits{})
	ch := roundTrip(t.Context(), r.conn, mcp.Initialize)
	r.next(t)
	r.say(`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`)
	var e *bridge.Error
	if got := <-ch; !errors.As(got.err, &e) || e.Reason != bridge.ReasonPeerProtocolError {
		t.Errorf("got %v", got.err)
	}
}

// An array of the server's is unpacked, whatever is in it (case 10); an array in an array is not.
func TestServerBatch(t *testing.T) {
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	a, sa := call("1", `"p"`)
	b, sb := call("2", "")
	c, sc := call("3", "")
	r.dispatch(t, a)
	r.dispatch(t, b)
	r.dispatch(t, c)
	r.say(` [` + result("2", `{"b":1}`) + `,7,` + progress("1", "1") + `,{"jsonrpc":"2.0","id":9,"method":"ping"},[` + result("3", `{}`) + `],` + result("1", `{"a":1}`) + `]`)
	if got := sa.answer(t); got != result("1", `{"a":1}`) {
		t.Errorf("a: %s", got)
	}
	if got := sb.answer(t); got != result("2", `{"b":1}`) {
		t.Errorf("b: %s", got)
	}
	same(t, "progress", sa.noted(), []string{progress(`"p"`, "1")})
	r.expect(t, `{"jsonrpc":"2.0","id":9,"result":{}}`)
	sc.open(t)
	if n := r.ev.count(bridge.EventJunk); n != 2 {
		t.Errorf("%d pieces of junk, want 2", n)
	}
}

// An array of 10,000 messages is unpacked, a longer one is junk (rule 4).
func TestServerBatchLimit(t *testing.T) {
	note := `{"jsonrpc":"2.0","method":"x,[\"{"}`
	for n, want := range map[int]int{10_000: 10_000, 10_001: 0} {
		r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
		r.say("[" + strings.Repeat(note+",", n-1) + note + "]")
		if got := len(r.h.notes); got != want {
			t.Errorf("%d messages: %d taken, want %d", n, got, want)
		}
		if junk := r.ev.count(bridge.EventJunk); (junk == 1) != (want == 0) {
			t.Errorf("%d messages: %d pieces of junk", n, junk)
		}
	}
}

// A result that is none becomes an error of the bridge (FRM-22); an error object may hold anything besides.
func TestInvalidResults(t *testing.T) {
	for body, ok := range map[string]bool{
		`{"resultType":"complete"}`:       true,
		`{}`:                              true,
		`{"resultType":"x"}`:              false,
		`{"resultType":3}`:                false,
		`[]`:                              false,
		`null`:                            false,
		`{"resultType":"input_required"}`: false,
		`{"resultType":"input_required","inputRequests":{}}`: false, // nobody can be asked across the eras yet
	} {
		r := newRig(t, bridge.Limits{}, modernFacts(`{}`))
		ex, s := call("1", "")
		_, id := r.dispatch(t, ex)
		r.say(result(id, body))
		got := s.answer(t)
		if !ok {
			has(t, got, "1", bridge.ReasonPeerProtocolError)
		} else if strings.Contains(got, "error") {
			t.Errorf("%s: %s", body, got)
		}
	}
	r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
	ex, s := call("1", "")
	_, id := r.dispatch(t, ex)
	r.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":1,"message":"x","data":{"a":1,"a":2},"z":1,"z":2}}`)
	if got := s.answer(t); !strings.Contains(got, `"data":{"a":1,"a":2},"z":1,"z":2}`) {
		t.Errorf("error %s", got)
	}
}
