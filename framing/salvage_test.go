package framing_test

import (
	"strings"
	"testing"

	"mcpbridge/framing"
)

func salvaged(text string) (members string, whole bool) {
	raw := []byte(text)
	list, whole := framing.Salvage(raw)
	var got []string
	for _, m := range list {
		got = append(got, string(raw[m.Key.Start:m.Key.End])+"="+string(raw[m.Value.Start:m.Value.End]))
	}
	return strings.Join(got, "|"), whole
}

func TestSalvage(t *testing.T) {
	for _, tt := range []struct {
		text, members string
		whole         bool
	}{
		{`{}`, ``, true},
		{" {\"a\" : [1, {\"b\":2}] ,\"id\":5}\r", `a=[1, {"b":2}]|id=5`, true},
		{`{"id":5,"id":6,"i\u0064":7}`, `id=5|id=6|i\u0064=7`, true},
		{`{"id":5} {"id":6}`, `id=5`, true},
		{`{"id":5}}`, `id=5`, true},
		{`{"id":1.5,"jsonrpc":2}`, `id=1.5|jsonrpc=2`, true},
		{`{"a":{"x":1,"x":1}}`, `a={"x":1,"x":1}`, true},
		// What may go on behind the end of raw is not whole.
		{`{`, ``, false},
		{`{"id":1`, `id=1`, false},
		{`{"id":1 `, `id=1`, false},
		{`{"id":1,`, `id=1`, false},
		{`{"id":1,"resu`, `id=1`, false},
		{`{"id":1,"result`, `id=1`, false},
		{`{"id":1,"result"`, `id=1`, false},
		{`{"id":1,"result":`, `id=1|result=`, false},
		{`{"id":1,"result": {"a":"b`, `id=1|result={"a":"b`, false},
		{`{"id":"ab`, `id="ab`, false},
		// Faults.
		{"{\"id\":1,\"result\":{\"a\":\"\xff\"},\"id\":2}", "id=1|result={\"a\":\"\xff\"},\"id\":2}", false},
		{`{"id":01,"a":2}`, `id=0`, false},
		{`{"id":5]`, `id=5`, false},
		{`{"id":5 "a":6}`, `id=5`, false},
		{`{"id":5,}`, `id=5`, false},
		{`{id:5}`, ``, false},
		{"{\"a\":1,\"\xff\":2}", `a=1`, false},
		{``, ``, false},
		{` `, ``, false},
		{`[{"id":5}]`, ``, false},
		{`"x"`, ``, false},
		{`x`, ``, false},
	} {
		if members, whole := salvaged(tt.text); members != tt.members || whole != tt.whole {
			t.Errorf("%q: %q, whole %v; want %q, %v", tt.text, members, whole, tt.members, tt.whole)
		}
	}
}

// The bound on nesting holds at n and n+1 (FRM-33).
func TestSalvageDepth(t *testing.T) {
	for n, want := range map[int]bool{framing.MaxDepth - 1: true, framing.MaxDepth: false} {
		text := `{"id":1,"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
		if _, whole := salvaged(text); whole != want {
			t.Errorf("%d arrays in an object: whole %v", n, whole)
		}
	}
}

// However a message is cut, what is salvaged is a beginning of its members, and no member behind the cut is made up.
func TestSalvageCut(t *testing.T) {
	text := `{"jsonrpc":"2.0","id":17,"error":{"code":-1,"message":"é\u00e9"},"x":[true,null,1e5]}`
	all, whole := salvaged(text)
	if !whole {
		t.Fatal(all)
	}
	for n := range len(text) {
		if got, whole := salvaged(text[:n]); whole || !strings.HasPrefix(all, got) {
			t.Errorf("%q: %q, whole %v", text[:n], got, whole)
		}
	}
}
