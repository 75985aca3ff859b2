package exchange

import (
	"bytes"
	"testing"

	"mcpbridge/test/internal/e2e"
	"mcpbridge/test/internal/jscan"
)

// Listens of modern clients at a modern server: each gets what was sent for it, under its own id, and nothing of the
// other's; leaving ends one at the server; the bridge's end is a graceful one (SUB-05, SUB-06, SUB-09, STD-09, HTTP-M-17).
func TestListenSameEra(t *testing.T) {
	t.Parallel()
	b := start(t, "-era", "modern")
	b.Modern(t, "0", "plain", "{}")
	child := b.Hub.Child(t, 0)
	from := len(child.Seen(t))
	open := func(mark string) (*e2e.Stream, string) {
		st := b.Open(t, "POST", e2e.ModernHeader("subscriptions/listen", ""), []byte(
			`{"jsonrpc":"2.0","id":"same","method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true},"mark":"`+mark+`",`+env+`}}`))
		line, _ := child.Await(t, from, `"mark":"`+mark+`"`)
		if e := st.Message(t); string(jscan.Get(e.Data, "params", "_meta", "io.modelcontextprotocol/subscriptionId")) != `"same"` {
			t.Errorf("the stream begins with %s", e.Data)
		}
		return st, string(jscan.Get(line, "id"))
	}
	one, id1 := open("one")
	two, id2 := open("two")
	if id1 == id2 {
		t.Fatalf("both listens have the id %s at the server", id1)
	}
	note := func(id, mark string) string {
		return `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"mark":"` + mark + `","_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `,"v":1.0}}}`
	}
	child.Write(t, note(id2, "for two")+"\n"+note(id1, "for one")+"\n")
	if e := one.Message(t); string(e.Data) != note(`"same"`, "for one") {
		t.Errorf("the first got %s", e.Data)
	}
	if e := two.Message(t); string(e.Data) != note(`"same"`, "for two") {
		t.Errorf("the second got %s", e.Data)
	}
	one.Drop()
	child.Await(t, from, `"notifications/cancelled"`, `"requestId":`+id1)
	b.Stopping()
	rest := two.Rest(t)
	if len(rest) != 1 || !bytes.Contains(rest[0], []byte(`"resultType":"complete"`)) || string(jscan.Get(rest[0], "id")) != `"same"` {
		t.Errorf("the second ends with %q", rest)
	}
}
