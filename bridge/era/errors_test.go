package era

import (
	"strings"
	"testing"

	"mcpbridge/bridge/mcp"
)

type errorCase struct {
	name, in, want string // error objects
	status         int
}

func runErrors(t *testing.T, e ErrorMap, cases []errorCase) {
	t.Helper()
	e.ID = []byte(`"c"`)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := scan(t, `{"jsonrpc":"2.0","id":57,"error":`+c.in+`}`)
			edits, status := e.Edits(m)
			if got, want := apply(t, m, edits), `{"jsonrpc":"2.0","id":"c","error":`+c.want+`}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
		})
	}
}

// Translation 11.1, at the edges of each range; bytes that need not change stay.
func TestErrorLegacyToModern(t *testing.T) {
	e := ErrorMap{From: mcp.Legacy, To: mcp.Modern, Method: mcp.ToolsCall, URI: []byte(`"file:///a"`)}
	same := func(name, in string, status int) errorCase { return errorCase{name, in, in, status} }
	wrapped := func(code string) errorCase {
		return errorCase{code, `{"code":` + code + `,"message":"m"}`, `{"code":-32603,"message":"m","data":{"original":{"code":` + code + `}}}`, 200}
	}
	runErrors(t, e, []errorCase{
		same("bytes stay", `{ "code" : -32602 , "message":"\u0041", "data":1.0, "x":null }`, 200),
		same("not found", `{"code":-32601,"message":"m"}`, 404),
		same("below the range", `{"code":-32100,"message":"m"}`, 200),
		wrapped("-32099"), wrapped("-32042"), wrapped("-32022"), wrapped("-32021"), wrapped("-32020"),
		same("above the range", `{"code":-32019,"message":"m"}`, 200),
		same("a code beyond all integers", `{"code":-99999999999999999999,"message":"m"}`, 200),
		{"data moves inside", `{"data":[1.0],"message":"m","code":-32050}`, `{"data":{"original":{"code":-32050,"data":[1.0]}},"message":"m","code":-32603}`, 200},
	})
	e.Method = mcp.ResourcesRead
	runErrors(t, e, []errorCase{
		{"uri filled in", `{"code":-32002,"message":"m"}`, `{"code":-32602,"message":"m","data":{"uri":"file:///a"}}`, 200},
		{"uri there", `{"code":-32002,"message":"m","data":{"uri":"other"}}`, `{"code":-32602,"message":"m","data":{"uri":"other"}}`, 200},
		{"beside other data", `{"code":-32002,"message":"m","data":{"k":1.0}}`, `{"code":-32602,"message":"m","data":{"k":1.0,"uri":"file:///a"}}`, 200},
		{"null data", `{"code":-32002,"message":"m","data":null}`, `{"code":-32602,"message":"m","data":{"uri":"file:///a"}}`, 200},
		{"text data is kept", `{"code":-32002,"message":"m","data":"gone"}`, `{"code":-32602,"message":"m","data":{"original":{"code":-32002,"data":"gone"},"uri":"file:///a"}}`, 200},
	})
	e.URI = nil
	runErrors(t, e, []errorCase{{"no uri known", `{"code":-32002,"message":"m"}`, `{"code":-32602,"message":"m"}`, 200}})
}

// Translation 5.8: what becomes of -32042 depends on the method, the client and the shape of the data.
func TestErrorURLRequired(t *testing.T) {
	e := ErrorMap{From: mcp.Legacy, To: mcp.Modern, Method: mcp.PromptsGet}
	const data = `{"elicitations":[{"url":"https://x.example/"}]}`
	in := `{"code":-32042,"message":"m","data":` + data + `}`
	missing := `{"code":-32021,"message":"m","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}`
	wrapped := `{"code":-32603,"message":"m","data":{"original":{"code":-32042,"data":` + data + `}}}`
	runErrors(t, e, []errorCase{{"client without anything", in, missing, 400}})
	e.Capabilities = []byte(`{"elicitation":{"form":{}}}`)
	runErrors(t, e, []errorCase{
		{"client with forms", in, missing, 400},
		{"no list", `{"code":-32042,"message":"m","data":{}}`, `{"code":-32603,"message":"m","data":{"original":{"code":-32042,"data":{}}}}`, 200},
		{"odd list", `{"code":-32042,"message":"m","data":{"elicitations":[1]}}`, `{"code":-32603,"message":"m","data":{"original":{"code":-32042,"data":{"elicitations":[1]}}}}`, 200},
	})
	e.Capabilities = []byte(`{"elicitation":{"url":{}}}`)
	runErrors(t, e, []errorCase{{"client that could be asked", in, wrapped, 200}})
	e.Method = mcp.ResourcesList
	runErrors(t, e, []errorCase{{"method that cannot ask", in, wrapped, 200}})

	old := ErrorMap{From: mcp.Legacy, To: mcp.Legacy, Method: mcp.ToolsCall, ClientVersion: mcp.V20250618, BackVersion: mcp.V20251125}
	two := `{"code":-32042,"message":"Sign in","data":{"elicitations":[{"url":"https://x.example/"},{},{"url":"https:\/\/y.example\/"}]}}`
	named := `{"code":-32603,"message":"Sign in: https://x.example/, https://y.example/","data":{"original":{"code":-32042,"data":` +
		`{"elicitations":[{"url":"https://x.example/"},{},{"url":"https:\/\/y.example\/"}]}}}}`
	runErrors(t, old, []errorCase{{"older client", two, named, 200}})
	for _, v := range []mcp.Version{mcp.V20241105, mcp.V20250326} {
		old.ClientVersion = v
		runErrors(t, old, []errorCase{{"older client " + string(v), two, named, 200}})
	}
	old.BackVersion = old.ClientVersion
	runErrors(t, old, []errorCase{{"both ends negotiated", two, two, 200}})
	old.ClientVersion, old.BackVersion = mcp.V20251125, mcp.V20251125
	runErrors(t, old, []errorCase{{"client that knows it", two, two, 200}})
}

// Translation 11.2.
func TestErrorModernToLegacy(t *testing.T) {
	e := ErrorMap{From: mcp.Modern, To: mcp.Legacy, Method: mcp.ResourcesRead, URI: []byte(`"file:///a"`), ClientVersion: mcp.V20251125}
	runErrors(t, e, []errorCase{
		{"the uri in other spelling", `{"code":-32602,"message":"m","data":{"uri":"file:\/\/\/a"}}`, `{"code":-32002,"message":"m","data":{"uri":"file:\/\/\/a"}}`, 200},
		{"uri is no string", `{"code":-32602,"message":"m","data":{"uri":1}}`, `{"code":-32602,"message":"m","data":{"uri":1}}`, 200},
		{"method not found has no status here", `{"code":-32601,"message":"m"}`, `{"code":-32601,"message":"m"}`, 200},
		{"a missing capability is named", `{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{},"roots":{}}}}`,
			`{"code":-32603,"message":"m (the server requires a capability that was not declared: sampling, roots)","data":{"original":{"code":-32021,"data":{"requiredCapabilities":{"sampling":{},"roots":{}}}}}}`, 200},
		{"one without data", `{"code":-32021,"message":"m"}`, `{"code":-32603,"message":"m (the server requires a capability that was not declared)","data":{"original":{"code":-32021}}}`, 200},
		{"both lists of versions", `{"code":-32022,"message":"m","data":{"supported":["2027-01-01"]}}`,
			`{"code":-32603,"message":"m (server supports: 2027-01-01; bridge speaks: 2026-07-28)","data":{"original":{"code":-32022,"data":{"supported":["2027-01-01"]}}}}`, 200},
		{"other codes", `{"code":-32023,"message":"m"}`, `{"code":-32023,"message":"m"}`, 200},
	})
	e.Method = mcp.ToolsCall
	other := `{"code":-32602,"message":"m","data":{"uri":"file:///a"}}`
	runErrors(t, e, []errorCase{{"another method", other, other, 200}})
}

// Translation 11.3: -32021 passes unless the bridge itself had cut the capability (META-14).
func TestErrorModernToModern(t *testing.T) {
	e := ErrorMap{From: mcp.Modern, To: mcp.Modern, Method: mcp.ToolsCall}
	missing := func(required string) string {
		return `{"code":-32021,"message":"m","data":{"requiredCapabilities":` + required + `}}`
	}
	for _, c := range []struct {
		declared, required string
		passes             bool
	}{
		{`{}`, `{"sampling":{}}`, true},
		{`{"sampling":{}}`, `{"sampling":{}}`, false},
		{`{"sampling":{}}`, `{"sampling":{"tools":{}}}`, true},
		{`{"sampling":{"tools":{}}}`, `{"sampling":{"tools":{}}}`, false},
		{`{"sampling":{}}`, `{"sampling":{},"roots":{}}`, true},
		{`{"elicitation":{}}`, `{"elicitation":{"form":{}}}`, false},
		{`{"elicitation":{}}`, `{"elicitation":{"url":{}}}`, true},
		{`{"elicitation":{"url":{}}}`, `{"elicitation":{"form":{}}}`, true},
		{`{"sampling":{}}`, `{}`, true},
		{`{"sampling":{}}`, `["sampling"]`, true},
		{`{"extensions":{"a/b":{}}}`, `{"extensions":{"a/b":{}}}`, false},
	} {
		e.Capabilities = []byte(c.declared)
		in := missing(c.required)
		want, status := in, 400
		if !c.passes {
			want, status = `{"code":-32603,"message":"m (the bridge cannot relay a capability the server requires)","data":{"original":{"code":-32021,"data":{"requiredCapabilities":`+c.required+`}}}}`, 200
		}
		runErrors(t, e, []errorCase{{c.declared + " " + c.required, in, want, status}})
	}
	runErrors(t, e, []errorCase{
		{"headers are the bridge's fault", `{"code":-32020,"message":"m"}`, `{"code":-32603,"message":"m","data":{"original":{"code":-32020}}}`, 200},
		{"version", `{"code":-32022,"message":"m"}`, `{"code":-32603,"message":"m (server supports: ; bridge speaks: 2026-07-28)","data":{"original":{"code":-32022}}}`, 200},
		{"the rest", `{"code":-32050,"message":"m"}`, `{"code":-32050,"message":"m"}`, 200},
		{"unknown method", `{"code":-32601,"message":"m"}`, `{"code":-32601,"message":"m"}`, 404},
	})
}

// FRM-12: an error without an id, or with null, gets the client's.
func TestErrorIDRestored(t *testing.T) {
	e := ErrorMap{From: mcp.Legacy, To: mcp.Legacy, ID: []byte("7")}
	for in, want := range map[string]string{
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`: `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}}`,
		`{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}`:           `{"jsonrpc":"2.0","error":{"code":1,"message":"m"},"id":7}`,
		`{"error":{"code":1,"message":"m"},"id":"x","jsonrpc":"2.0"}`:  `{"error":{"code":1,"message":"m"},"id":7,"jsonrpc":"2.0"}`,
	} {
		m := scan(t, in)
		edits, _ := e.Edits(m)
		if got := apply(t, m, edits); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	m := scan(t, `{"jsonrpc":"2.0","id":57,"error":{"code":1,"message":"m"}}`)
	if edits, _ := (ErrorMap{From: mcp.Legacy, To: mcp.Legacy}).Edits(m); len(edits) != 0 {
		t.Errorf("edits without anything to do: %v", edits)
	}
}

func TestProtocolErrorText(t *testing.T) {
	m := result(t, `{"resultType":"`+strings.Repeat("x", 65)+`"}`)
	_, err := Result{From: mcp.Modern, To: mcp.Modern, Method: "tools/call"}.Edits(m)
	want := `cannot accept result of tools/call: unknown resultType "` + strings.Repeat("x", 64) + `"`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
