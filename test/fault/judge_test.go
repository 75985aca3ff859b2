package fault

import "testing"

// The judge of all these tests takes nothing for a result that is not exactly that.
func TestJudge(t *testing.T) {
	const good = `{"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text","text":"x"}]}}`
	const bad = `{"jsonrpc":"2.0","id":"1","error":{"code":-32603,"message":"m","data":{"reason":"r"}}}`
	const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`
	for _, c := range []struct {
		name     string
		status   int
		messages []string
		want     kind
	}{
		{"a result", 200, []string{good}, result},
		{"after a notification", 200, []string{progress, good}, result},
		{"an error", 200, []string{bad}, failure},
		{"a refusal without id", 503, []string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"m"}}`}, failure},
		{"nothing", 200, nil, wrong},
		{"an empty body", 202, []string{""}, wrong},
		{"only a notification", 200, []string{progress}, wrong},
		{"two results", 200, []string{good, good}, wrong},
		{"a result and an error", 200, []string{good, bad}, wrong},
		{"the result of somebody else", 200, []string{`{"jsonrpc":"2.0","id":"2","result":{}}`}, wrong},
		{"the error of somebody else", 400, []string{`{"jsonrpc":"2.0","id":"2","error":{"code":-32603,"message":"m"}}`}, wrong},
		{"a number for a string", 200, []string{`{"jsonrpc":"2.0","id":1,"result":{}}`}, wrong},
		{"an error without id for a call that was taken", 200, []string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"m"}}`}, wrong},
		{"neither", 200, []string{`{"jsonrpc":"2.0","id":"1"}`}, wrong},
	} {
		a := answer{status: c.status}
		var list [][]byte
		for _, m := range c.messages {
			list = append(list, []byte(m))
		}
		if a.judge(`"1"`, list); a.kind != c.want {
			t.Errorf("%s: %v", c.name, a)
		}
		if c.want == result && a.text != `"x"` || c.want == failure && a.text != "m" {
			t.Errorf("%s: text %s", c.name, a.text)
		}
	}
}

// A steady server may refuse because all are busy, and nothing else.
func TestTally(t *testing.T) {
	for _, c := range []struct {
		server   string
		a        answer
		problems int
	}{
		{"steady0", answer{kind: result}, 0},
		{"steady0", answer{kind: failure, reason: "overload"}, 0},
		{"steady0", answer{kind: failure, reason: "back_terminated"}, 1},
		{"steady0", answer{kind: wrong}, 1},
		{"frail1", answer{kind: failure, reason: "back_terminated"}, 0},
		{"frail1", answer{kind: wrong}, 1},
		{"frail1", answer{kind: left}, 0},
	} {
		var y tally
		if y.add(c.server, c.a); len(y.problems) != c.problems {
			t.Errorf("%s, %v: problems %q", c.server, c.a, y.problems)
		}
	}
}
