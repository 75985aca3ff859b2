package era

import (
	"strings"
	"testing"

	"mcpbridge/bridge/mcp"
)

func notification(t testing.TB, method, params string) string {
	t.Helper()
	if params == "" {
		return `{"jsonrpc":"2.0","method":"` + method + `"}`
	}
	return `{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`
}

func TestProgress(t *testing.T) {
	m := scan(t, notification(t, mcp.Progress, `{"progress":3.0,"progressToken":1042,"total":10}`))
	if string(TokenOf(m)) != "1042" {
		t.Errorf("token %s", TokenOf(m))
	}
	if got, want := apply(t, m, ProgressEdits(m, []byte(`"p"`))), notification(t, mcp.Progress, `{"progress":3.0,"progressToken":"p","total":10}`); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	bare := scan(t, notification(t, mcp.Progress, `{"progress":3}`))
	if TokenOf(bare) != nil || ProgressEdits(bare, []byte("1")) != nil || ProgressEdits(m, nil) != nil {
		t.Error("a token appeared or went")
	}
}

// Translation 10: the receiver's id, a reason of at most 1 kB, nothing of the other hop's envelope.
func TestCancel(t *testing.T) {
	long := strings.Repeat("r", maxReason)
	accent := strings.Repeat("r", maxReason-1) + "é"
	for _, c := range []struct{ name, in, want string }{
		{"plain", `{"requestId":3,"reason":"user \u0041"}`, `{"requestId":1042,"reason":"user \u0041"}`},
		{"string id", `{ "reason":"x", "requestId":"a" }`, `{ "reason":"x", "requestId":1042 }`},
		{"at the limit", `{"requestId":3,"reason":"` + long + `"}`, `{"requestId":1042,"reason":"` + long + `"}`},
		{"above it", `{"requestId":3,"reason":"` + long + `s"}`, `{"requestId":1042,"reason":"` + long + `"}`},
		{"cut between characters", `{"requestId":3,"reason":"` + accent + `"}`, `{"requestId":1042,"reason":"` + long[1:] + `"}`},
		{"reason is no string", `{"requestId":3,"reason":7}`, `{"requestId":1042,"reason":7}`},
		{"envelope", `{"requestId":3,"_meta":{` + envV + `,` + envC + `}}`, `{"requestId":1042}`},
		{"envelope and vendor key", `{"_meta":{` + envV + `,"v/k":1},"requestId":3}`, `{"_meta":{"v/k":1},"requestId":1042}`},
		{"vendor key", `{"_meta":{"v/k":1},"requestId":3}`, `{"_meta":{"v/k":1},"requestId":1042}`},
		{"empty _meta", `{"_meta":{},"requestId":3}`, `{"_meta":{},"requestId":1042}`},
	} {
		m := scan(t, notification(t, mcp.Cancelled, c.in))
		if got, want := apply(t, m, CancelEdits(m, []byte("1042"))), notification(t, mcp.Cancelled, c.want); got != want {
			t.Errorf("%s: got %s, want %s", c.name, got, want)
		}
	}
	if m := scan(t, notification(t, mcp.Cancelled, "")); CancelEdits(m, []byte("1")) != nil {
		t.Error("edits of a cancel that names nothing")
	}
}

func TestLogLevel(t *testing.T) {
	for params, want := range map[string]string{
		`{"level":"debug"}`:               "debug",
		`{"data":1,"level":"err\u006fr"}`: "error",
		`{"level":"Error"}`:               "none",
		`{"level":3}`:                     "none",
		`{}`:                              "none",
		``:                                "none",
	} {
		if got := LogLevelOf(scan(t, notification(t, mcp.LogMessage, params))).String(); got != want {
			t.Errorf("%s: %s, want %s", params, got, want)
		}
	}
}

// SUB-05: the id keeps its JSON type; legacy clients see none.
func TestSubscriptionID(t *testing.T) {
	for _, c := range []struct{ name, in, set, removed string }{
		{"no params", ``, `{"_meta":{` + subID + `}}`, ``},
		{"empty params", `{}`, `{"_meta":{` + subID + `}}`, `{}`},
		{"no _meta", `{"uri":"f"}`, `{"uri":"f","_meta":{` + subID + `}}`, `{"uri":"f"}`},
		{"another id", `{"_meta":{"io.modelcontextprotocol/subscriptionId":90},"uri":"f"}`, `{"_meta":{` + subID + `},"uri":"f"}`, `{"uri":"f"}`},
		{"vendor key", `{"_meta":{"v/k":1, "io.modelcontextprotocol/subscriptionId":90}}`, `{"_meta":{"v/k":1, ` + subID + `}}`, `{"_meta":{"v/k":1}}`},
		{"vendor key alone", `{"_meta":{"v/k":1}}`, `{"_meta":{"v/k":1,` + subID + `}}`, `{"_meta":{"v/k":1}}`},
		{"an array", `[]`, `[]`, `[]`},
	} {
		m := scan(t, notification(t, mcp.ToolsListChanged, c.in))
		if got, want := apply(t, m, SubscriptionEdits(m, []byte(`"s"`))), notification(t, mcp.ToolsListChanged, c.set); got != want {
			t.Errorf("set, %s: got %s, want %s", c.name, got, want)
		}
		if got, want := apply(t, m, SubscriptionEdits(m, nil)), notification(t, mcp.ToolsListChanged, c.removed); got != want {
			t.Errorf("removed, %s: got %s, want %s", c.name, got, want)
		}
	}
}
