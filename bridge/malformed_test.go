package bridge_test

import (
	"errors"
	"strings"
	"testing"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// What becomes of a broken line of the server's.
const (
	fails    = "the call it answers fails"
	reported = "an event says so, nobody is answered"
	skipped  = "it is junk"
)

// An answer that is none fails the request it was meant for at once, where its id says without doubt which one that is (FRM-13,
// rule 3); where it does not, it is reported and nothing else (rule 2). Anything else is junk and skipped (FRM-06, case 3). $ stands
// for the request's id.
func TestMalformed(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"both":                  {`{"jsonrpc":"2.0","id":$,"result":{},"error":{"code":1,"message":"x"}}`, fails},
		"code no integer":       {`{"jsonrpc":"2.0","id":$,"error":{"code":"1","message":"x"}}`, fails},
		"no message":            {`{"jsonrpc":"2.0","id":$,"error":{"code":1}}`, fails},
		"error no object":       {`{"jsonrpc":"2.0","id":$,"error":"x"}`, fails},
		"neither":               {`{"jsonrpc":"2.0","id":$}`, fails},
		"duplicate":             {`{"jsonrpc":"2.0","id":$,"result":{"a":1,"a":2}}`, fails},
		"result twice":          {`{"jsonrpc":"2.0","id":$,"result":{},"result":{}}`, fails},
		"version twice":         {`{"jsonrpc":"2.0","jsonrpc":"2.0","id":$,"result":{}}`, fails},
		"bad UTF-8":             {"{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{\"t\":\"\xff\"}}", fails},
		"cut":                   {`{"jsonrpc":"2.0","id":$,"result":{"t":"abc`, fails},
		"data behind":           {`{"jsonrpc":"2.0","id":$,"result":{}}}`, fails},
		"no version":            {`{"id":$,"result":{}}`, fails},
		"no version, error":     {`{"id":$,"error":{"code":1,"message":"x"}}`, fails},
		"no version, both":      {`{"result":{},"error":null,"id":$}`, fails},
		"no version, cut":       {`{"id":$,"result":{"t":"abc`, fails},
		"other version":         {`{"jsonrpc":"1.0","id":$,"result":{}}`, fails},
		"version a number":      {`{"jsonrpc":2.0,"id":$,"result":{}}`, fails},
		"escaped names":         {`{"\u006asonrpc":"2","\u0069d":$,"r\u0065sult":{}}`, fails},
		"method beside result":  {`{"jsonrpc":"2.0","id":$,"method":"tools/call","result":{}}`, fails},
		"method beside error":   {`{"jsonrpc":"2.0","id":$,"method":"tools/call","error":{"code":1,"message":"x"}}`, fails},
		"method, result, cut":   {`{"jsonrpc":"2.0","method":"m","id":$,"result":{"t":"abc`, fails},
		"no version, a method":  {`{"id":$,"method":"tools/call","params":{},"result":{}}`, fails},
		"id as string":          {`{"jsonrpc":"2.0","id":"$","result":{},"error":{"code":1,"message":"x"}}`, fails},
		"id as escaped string":  {`{"jsonrpc":"2.0","id":"\u003$","result":{},"error":{"code":1,"message":"x"}}`, fails},
		"id with a fraction":    {`{"jsonrpc":"2.0","id":$.0,"result":{}}`, fails},
		"id with zeros":         {`{"jsonrpc":"2.0","id":$.0000000000,"result":{}}`, fails},
		"id with an exponent":   {`{"jsonrpc":"2.0","id":$e0,"result":{}}`, fails},
		"id shifted":            {`{"jsonrpc":"2.0","id":0.$e+1,"result":{}}`, fails},
		"id twice alike":        {`{"jsonrpc":"2.0","id":$,"id":$,"result":{}}`, fails},
		"id twice alike, cut":   {`{"jsonrpc":"2.0","id":$,"id":$,"result":{"t":"abc`, fails},
		"id twice":              {`{"jsonrpc":"2.0","id":$,"id":77,"result":{}}`, reported},
		"id twice, ours last":   {`{"jsonrpc":"2.0","id":77,"\u0069d":$,"result":{}}`, reported},
		"id twice, other types": {`{"jsonrpc":"2.0","id":$,"id":"$","result":{}}`, reported},
		"id twice, cut":         {`{"jsonrpc":"2.0","id":$,"id":77,"result":{"t":"abc`, reported},
		"id cut":                {`{"jsonrpc":"2.0","result":{},"id":$`, reported},
		"id unread":             {`{"jsonrpc":"2.0","result":{"t":"abc`, reported},
		"id with a rest":        {`{"jsonrpc":"2.0","id":$.5,"result":{}}`, reported},
		"id just beside":        {`{"jsonrpc":"2.0","id":$.00000000000000000001,"result":{}}`, reported},
		"id enormous":           {`{"jsonrpc":"2.0","id":$e999999999,"result":{}}`, reported},
		"id negative":           {`{"jsonrpc":"2.0","id":-$.0,"result":{}}`, reported},
		"id with spaces":        {`{"jsonrpc":"2.0","id":" $","result":{},"error":{}}`, reported},
		"id a list":             {`{"jsonrpc":"2.0","id":[$],"result":{}}`, reported},
		"id null":               {`{"jsonrpc":"2.0","id":null,"result":{}}`, reported},
		"no id":                 {`{"jsonrpc":"2.0","result":{}}`, reported},
		"id of nothing":         {`{"jsonrpc":"2.0","id":77,"result":{},"error":{"code":1,"message":"x"}}`, reported},
		"a log line":            {`{"id":$,"level":"error","error":{"message":"x"}}`, skipped},
		"a log line, cut":       {`{"level":30,"id":$,"result":{"t":"abc`, skipped},
		"a record":              {`{"id":$}`, skipped},
		"broken request":        {`{"jsonrpc":"2.0","id":$,"method":"roots/list","params":5}`, skipped},
		"nameless request":      {`{"jsonrpc":"2.0","id":$,"method":7}`, skipped},
		"request, cut":          {`{"jsonrpc":"2.0","id":$,"meth`, skipped},
		"banner":                {`Server started`, skipped},
		"brace":                 {`{`, skipped},
		"string":                {`"str"`, skipped},
		"array of nonsense":     {`[1,{},"x",[[$]]]`, skipped},
		"empty array":           {`[]`, skipped},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
			other, so := call(`"other"`, "")
			r.dispatch(t, other)
			ex, s := call(`"a"`, "")
			_, id := r.dispatch(t, ex)
			r.say(strings.ReplaceAll(c.line, "$", id))
			so.open(t)
			junk, broken := r.ev.count(bridge.EventJunk), r.ev.count(bridge.EventViolation)
			if (junk > 0) != (c.want == skipped) || (broken > 0) != (c.want != skipped) || c.want != skipped && broken != 1 {
				t.Errorf("%d pieces of junk and %d violations reported", junk, broken)
			}
			if c.want == fails {
				got := s.answer(t)
				has(t, got, `"a"`, bridge.ReasonPeerProtocolError)
				if !strings.Contains(got, `"code":-32603,"message":"server srv sent an invalid answer: `) {
					t.Errorf("answer %s", got)
				}
				return
			}
			s.open(t)
			r.say(result(id, `{}`))
			s.answer(t)
		})
	}
}

// A whole answer whose id came back as a string counts, however the string is written (translation 4.1).
func TestStringID(t *testing.T) {
	for id, counts := range map[string]bool{`"1"`: true, `"\u0031"`: true, `"01"`: false, `"1.0"`: false, `" 1"`: false, `"+1"`: false, `""`: false, `"２"`: false} {
		r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
		ex, s := call(`"a"`, "")
		r.dispatch(t, ex)
		r.say(result(id, `{}`))
		if !counts {
			s.open(t)
			continue
		}
		if got := s.only(t); got != result(`"a"`, `{}`) || r.ev.count(bridge.EventViolation) != 1 {
			t.Errorf("%s: %s, %d violations", id, got, r.ev.count(bridge.EventViolation))
		}
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
