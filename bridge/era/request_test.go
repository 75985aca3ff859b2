package era

import (
	"strings"
	"testing"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

const (
	envV    = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	envC    = `"io.modelcontextprotocol/clientCapabilities":{}`
	envI    = `"io.modelcontextprotocol/clientInfo":{"name":"h","version":"1"}`
	envL    = `"io.modelcontextprotocol/logLevel":"warning"`
	subID   = `"io.modelcontextprotocol/subscriptionId":"s"`
	related = `"io.modelcontextprotocol/related-task":{"taskId":"t"}`
	srvInfo = `"io.modelcontextprotocol/serverInfo":{"name":"files","version":"1"}`
)

func call(params string) string {
	return `{"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":` + params + `}`
}

type requestCase struct {
	name, in, want string
}

func runRequests(t *testing.T, r Request, cases []requestCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := scan(t, c.in)
			if got := apply(t, m, r.Edits(m)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Translation 3.1, column Fm -> Bl. The expectations are exact bytes: nothing else may change (FRM-30).
func TestRequestModernToLegacy(t *testing.T) {
	r := Request{From: mcp.Modern, To: mcp.Legacy, ID: []byte("1042"), Token: []byte("1042")}
	out := func(params string) string { return strings.Replace(call(params), `"a-1"`, "1042", 1) }
	runRequests(t, r, []requestCase{
		{"an envelope alone takes _meta with it", call(`{"name":"grep","_meta":{` + envV + `,` + envC + `}}`), out(`{"name":"grep"}`)},
		{"_meta first", call(`{"_meta":{` + envV + `},"name":"grep"}`), out(`{"name":"grep"}`)},
		{"_meta between", call(`{"name":"grep", "_meta" : {` + envV + `} , "arguments":{}}`), out(`{"name":"grep" , "arguments":{}}`)},
		{"_meta is all there was", call(`{"_meta":{` + envV + `,` + envC + `}}`), out(`{}`)},
		{"an empty _meta goes", call(`{"name":"a","_meta":{}}`), out(`{"name":"a"}`)},
		{"token is replaced, trace and vendor keys stay", call(`{"name":"grep","arguments":{"q":1.10,"n":12345678901234567890},"_meta":{` +
			envV + `,` + envI + `,` + envC + `,` + envL + `,"progressToken":"p","traceparent":"00-0af7","tracestate":"x","baggage":"b","example.com/tenant":"t1"}}`),
			out(`{"name":"grep","arguments":{"q":1.10,"n":12345678901234567890},"_meta":{"progressToken":1042,"traceparent":"00-0af7","tracestate":"x","baggage":"b","example.com/tenant":"t1"}}`)},
		{"alternating members", call(`{"_meta":{"a/1":1,` + envV + `,"a/2":2,` + subID + `,"a/3":3,` + related + `}}`), out(`{"_meta":{"a/1":1,"a/2":2,"a/3":3}}`)},
		{"an escaped key is the same key", call(`{"_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28","progress\u0054oken":7,"k":1}}`),
			out(`{"_meta":{"progress\u0054oken":1042,"k":1}}`)},
		{"names differ by case", call(`{"_meta":{"ProgressToken":7,"IO.modelcontextprotocol/logLevel":1}}`), out(`{"_meta":{"ProgressToken":7,"IO.modelcontextprotocol/logLevel":1}}`)},
		{"retry and task params go", call(`{"inputResponses":{"k":{}},"name":"a","requestState":"s","task":{"ttl":1}}`), out(`{"name":"a"}`)},
		{"they go from inside arguments never", call(`{"name":"a","arguments":{"task":1,"requestState":2,"_meta":{` + envV + `}}}`), out(`{"name":"a","arguments":{"task":1,"requestState":2,"_meta":{` + envV + `}}}`)},
		{"a vendor method's params are its own", `{"jsonrpc":"2.0","id":"a-1","method":"example.com/run","params":{"task":"t","requestState":1,"_meta":{` + envV + `}}}`,
			`{"jsonrpc":"2.0","id":1042,"method":"example.com/run","params":{"task":"t","requestState":1}}`},
		{"no params", `{"id":"a-1","jsonrpc":"2.0","method":"tools/list"}`, `{"id":1042,"jsonrpc":"2.0","method":"tools/list"}`},
		{"params that are an array", `{"jsonrpc":"2.0","id":"a-1","method":"x","params":[1]}`, `{"jsonrpc":"2.0","id":1042,"method":"x","params":[1]}`},
		{"an odd _meta is not ours", call(`{"name":"a","_meta":null}`), out(`{"name":"a","_meta":null}`)},
		{"id behind params", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a","_meta":{` + envV + `}},"id":"a-1"}`, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"},"id":1042}`},
		{"a notification has no id to replace", `{"jsonrpc":"2.0","method":"notifications/x","params":{"_meta":{` + envV + `}}}`, `{"jsonrpc":"2.0","method":"notifications/x","params":{}}`},
	})
}

// PRG-10: a request without a token gets none; a link that wants no progress takes the client's away.
func TestRequestToken(t *testing.T) {
	for _, from := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		none := Request{From: from, To: mcp.Legacy, ID: []byte("2")}
		some := Request{From: from, To: mcp.Legacy, ID: []byte("2"), Token: []byte(`"t"`)}
		without := scan(t, call(`{"name":"a","_meta":{"k":1}}`))
		with := scan(t, call(`{"name":"a","_meta":{"k":1,"progressToken":"p"}}`))
		if got := apply(t, without, some.Edits(without)); strings.Contains(got, "progressToken") {
			t.Errorf("a token appeared: %s", got)
		}
		if got := apply(t, with, none.Edits(with)); !strings.Contains(got, `{"k":1}`) {
			t.Errorf("the token stayed: %s", got)
		}
	}
}

// Rule 8: within the legacy era nothing but id and token changes, not even what looks like the other era's.
func TestRequestLegacyToLegacy(t *testing.T) {
	in := call(`{ "name" : "a", "task":{"ttl":1},"requestState":"s","_meta":{` + envV + `,` + related + `,` + subID + `,"progressToken":0} }`)
	want := strings.Replace(strings.Replace(in, `"a-1"`, "9", 1), `"progressToken":0`, `"progressToken":9`, 1)
	runRequests(t, Request{From: mcp.Legacy, To: mcp.Legacy, ID: []byte("9"), Token: []byte("9")}, []requestCase{{"all stays", in, want}})
}

// Translation 3.1, column Fl -> Bm: what the envelope says wins over anything the client wrote (META-14).
func TestRequestLegacyToModern(t *testing.T) {
	r := Request{From: mcp.Legacy, To: mcp.Modern, ID: []byte("7"), Token: []byte("7"), Envelope: &Envelope{
		Version: mcp.V20260728, ClientInfo: []byte(`{"name":"h","version":"1"}`), Capabilities: []byte(`{}`), LogLevel: "warning"}}
	env := envV + `,` + envI + `,` + envC + `,` + envL
	out := func(params string) string { return strings.Replace(call(params), `"a-1"`, "7", 1) }
	runRequests(t, r, []requestCase{
		{"no params", `{"jsonrpc":"2.0","id":"a-1","method":"tools/list"}`, `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{` + env + `}}}`},
		{"no params, id last", `{"jsonrpc":"2.0","method":"tools/list","id":"a-1"}`, `{"jsonrpc":"2.0","method":"tools/list","id":7,"params":{"_meta":{` + env + `}}}`},
		{"empty params", call(`{ }`), out(`{"_meta":{` + env + `} }`)},
		{"no _meta", call(`{"name":"a"}`), out(`{"name":"a","_meta":{` + env + `}}`)},
		{"odd _meta", call(`{"_meta":"x","name":"a"}`), out(`{"_meta":{` + env + `},"name":"a"}`)},
		{"empty _meta", call(`{"_meta":{}}`), out(`{"_meta":{` + env + `}}`)},
		{"token and vendor key", call(`{"_meta":{"progressToken":"p","v/k":1}}`), out(`{"_meta":{"progressToken":7,"v/k":1,` + env + `}}`)},
		{"a forged envelope is overwritten", call(`{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},` + envL + `,"k":1}}`),
			out(`{"_meta":{` + envC + `,` + envL + `,"k":1,` + envV + `,` + envI + `}}`)},
		{"legacy task leaves", call(`{"name":"a","task":{"ttl":1},"_meta":{` + related + `}}`), out(`{"name":"a","_meta":{` + env + `}}`)},
		{"a state cannot be forged", call(`{"name":"a","requestState":"s","inputResponses":{}}`), out(`{"name":"a","_meta":{` + env + `}}`)},
	})
	bare := r
	bare.Envelope = &Envelope{Version: mcp.V20260728}
	runRequests(t, bare, []requestCase{
		{"capabilities are never missing", call(`{"name":"a"}`), out(`{"name":"a","_meta":{` + envV + `,` + envC + `}}`)},
		{"nor forged level and info kept", call(`{"_meta":{` + envI + `,` + envL + `}}`), out(`{"_meta":{` + envV + `,` + envC + `}}`)},
	})
}

// Modern to modern: the envelope is re-made where given, the rest is the client's (rule 8, MRT-05).
func TestRequestModernToModern(t *testing.T) {
	r := Request{From: mcp.Modern, To: mcp.Modern, ID: []byte("7"), Token: []byte("8")}
	out := func(params string) string { return strings.Replace(call(params), `"a-1"`, "7", 1) }
	keep := `{"name":"a","requestState":"s\u0041","inputResponses":{"k":{"action":"accept"}},"task":1,"_meta":{` + envV + `,` + envI + `,` + envC + `,` + envL + `,` + subID + `}}`
	runRequests(t, r, []requestCase{{"no envelope given", call(keep), out(keep)}})
	r.Envelope = &Envelope{}
	runRequests(t, r, []requestCase{{"an envelope that says nothing", call(keep), out(keep)}})
	r.Envelope = &Envelope{Version: mcp.V20260728, Capabilities: []byte(`{"roots":{}}`)}
	want := strings.Replace(keep, envC, `"io.modelcontextprotocol/clientCapabilities":{"roots":{}}`, 1)
	runRequests(t, r, []requestCase{
		{"capabilities are cut, the rest keeps its bytes", call(keep), out(want)},
		{"token", call(`{"_meta":{"progressToken":1,` + envV + `,` + envC + `}}`), out(`{"_meta":{"progressToken":8,` + envV + `,"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}`)},
	})
}

// Members the caller sets win over what would be stripped.
func TestRequestSet(t *testing.T) {
	set := []framing.Op{{Name: "requestState", Value: []byte(`"s2"`)}, {Name: "inputResponses", Value: []byte(`{}`)}}
	r := Request{From: mcp.Legacy, To: mcp.Modern, ID: []byte("7"), Envelope: &Envelope{Version: mcp.V20260728}, Set: set}
	meta := `"_meta":{` + envV + `,` + envC + `}`
	runRequests(t, r, []requestCase{
		{"added", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","requestState":"s2","inputResponses":{},` + meta + `}}`},
		{"replaced", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"requestState":"s1"}}`, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"requestState":"s2","inputResponses":{},` + meta + `}}`},
		{"without params", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"requestState":"s2","inputResponses":{},` + meta + `}}`},
	})
}
