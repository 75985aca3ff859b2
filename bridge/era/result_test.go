package era

import (
	"errors"
	"strings"
	"testing"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

type resultCase struct {
	name, in, want string // results; want "" for one that must be refused
}

func runResults(t *testing.T, r Result, cases []resultCase) {
	t.Helper()
	r.ID = []byte(`"c"`)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := result(t, c.in)
			edits, err := r.Edits(m)
			var invalid *ProtocolError
			if c.want == "" {
				if !errors.As(err, &invalid) || invalid.Method != r.Method || edits != nil {
					t.Fatalf("got edits %v, error %v; want a ProtocolError", edits, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, want := apply(t, m, edits), `{"jsonrpc":"2.0","id":"c","result":`+c.want+`}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func legacyToModern(method string) Result {
	return Result{From: mcp.Legacy, To: mcp.Modern, Method: method, ServerInfo: []byte(`{"name":"files","version":"1"}`)}
}

// Translation 3.2, column Bl -> Fm, byte for byte.
func TestResultLegacyToModern(t *testing.T) {
	const meta = `"_meta":{` + srvInfo + `}`
	runResults(t, legacyToModern(mcp.ToolsCall), []resultCase{
		{"empty", `{}`, `{"resultType":"complete",` + meta + `}`},
		{"bytes stay", `{ "content" : [ ] , "n":1.10,"u":"\u00e9" }`, `{ "content" : [ ] , "n":1.10,"u":"\u00e9","resultType":"complete",` + meta + ` }`},
		{"own type is overwritten", `{"resultType":"task","content":[]}`, `{"resultType":"complete","content":[],` + meta + `}`},
		{"type of another JSON type", `{"resultType":7}`, `{"resultType":"complete",` + meta + `}`},
		{"vendor key of _meta", `{"_meta":{"v/k":1},"content":[]}`, `{"_meta":{"v/k":1,` + srvInfo + `},"content":[],"resultType":"complete"}`},
		{"an identity of the server's own is overruled", `{"_meta":{"io.modelcontextprotocol/serverInfo":1}}`, `{` + meta + `,"resultType":"complete"}`},
		{"related-task goes, the immediate response stays", `{"_meta":{` + related + `,"io.modelcontextprotocol/model-immediate-response":"x"}}`,
			`{"_meta":{"io.modelcontextprotocol/model-immediate-response":"x",` + srvInfo + `},"resultType":"complete"}`},
		{"related-task alone", `{"_meta":{` + related + `}}`, `{` + meta + `,"resultType":"complete"}`},
		{"odd _meta", `{"_meta":[]}`, `{` + meta + `,"resultType":"complete"}`},
		{"structured content of any kind", `{"structuredContent":[1],"isError":true}`, `{"structuredContent":[1],"isError":true,"resultType":"complete",` + meta + `}`},
		{"a tool's own ttlMs", `{"ttlMs":-1,"cacheScope":"x"}`, `{"ttlMs":-1,"cacheScope":"x","resultType":"complete",` + meta + `}`},
		{"no object", `[1]`, ``},
	})
	anonymous := legacyToModern(mcp.ToolsCall)
	anonymous.ServerInfo = nil
	runResults(t, anonymous, []resultCase{
		{"nobody's name is made up", `{}`, `{"resultType":"complete"}`},
		{"an emptied _meta goes", `{"_meta":{` + related + `},"a":1}`, `{"a":1,"resultType":"complete"}`},
		{"an empty one is the server's", `{"_meta":{}}`, `{"_meta":{},"resultType":"complete"}`},
	})
	runResults(t, legacyToModern("example.com/x"), []resultCase{
		{"a vendor method gets no hints", `{"ttlMs":"5s"}`, `{"ttlMs":"5s","resultType":"complete",` + meta + `}`},
	})
}

// CCH-01: hints on exactly the six cacheable methods; CCH-02, CCH-03: which ones.
func TestResultHints(t *testing.T) {
	for _, c := range []struct{ in, ttl, scope string }{
		{``, `0`, `"private"`},
		{`"ttlMs":5000,"cacheScope":"public"`, `5000`, `"public"`},
		{`"ttlMs":0,"cacheScope":"private"`, `0`, `"private"`},
		{`"ttlMs":-1,"cacheScope":"Public"`, `0`, `"private"`},
		{`"ttlMs":-0`, `0`, `"private"`},
		{`"ttlMs":1.5`, `0`, `"private"`},
		{`"ttlMs":1e3`, `0`, `"private"`},
		{`"ttlMs":"5","cacheScope":true`, `0`, `"private"`},
		{`"ttlMs":null,"cacheScope":null`, `0`, `"private"`},
		{`"ttlMs":9007199254740991`, `9007199254740991`, `"private"`},
		{`"ttlMs":9007199254740992`, `0`, `"private"`},
		{`"ttlMs":123456789012345678901234567890`, `0`, `"private"`},
	} {
		for _, from := range []mcp.Era{mcp.Legacy, mcp.Modern} {
			for _, method := range []string{mcp.ToolsList, mcp.PromptsList, mcp.ResourcesList, mcp.ResourcesTemplatesList, mcp.ResourcesRead, mcp.Discover} {
				m := result(t, `{`+c.in+`}`)
				edits, err := Result{From: from, To: mcp.Modern, Method: method}.Edits(m)
				if err != nil {
					t.Fatal(err)
				}
				got := []byte(resultOf(t, apply(t, m, edits)))
				if string(member(got, "ttlMs")) != c.ttl || string(member(got, "cacheScope")) != c.scope {
					t.Errorf("%s from %v, {%s}: %s", method, from, c.in, got)
				}
			}
		}
	}
}

func TestResultConfiguredHints(t *testing.T) {
	r := legacyToModern(mcp.ResourcesRead)
	r.ServerInfo, r.TTLMs, r.Scope = nil, 60000, "public"
	runResults(t, r, []resultCase{{"configured", `{}`, `{"resultType":"complete","ttlMs":60000,"cacheScope":"public"}`}})
	r.TTLMs, r.Scope = -5, "shared"
	runResults(t, r, []resultCase{{"configured badly", `{}`, `{"resultType":"complete","ttlMs":0,"cacheScope":"private"}`}})
}

// Translation 3.2, column Bm -> Fl: exactly the other era's members go (LEG-10).
func TestResultModernToLegacy(t *testing.T) {
	r := Result{From: mcp.Modern, To: mcp.Legacy, Method: mcp.ToolsCall, ClientVersion: mcp.V20251125}
	runResults(t, r, []resultCase{
		{"plain", `{"resultType":"complete","content":[]}`, `{"content":[]}`},
		{"missing type is complete", `{"content":[]}`, `{"content":[]}`},
		{"escaped type", `{"resultType":"comp\u006cete"}`, `{}`},
		{"identity goes, and its _meta", `{"resultType":"complete","_meta":{` + srvInfo + `}}`, `{}`},
		{"identity goes, vendor keys stay", `{"_meta":{` + srvInfo + `,"v/k":1},"resultType":"complete","x":[ 1 ]}`, `{"_meta":{"v/k":1},"x":[ 1 ]}`},
		{"a tool's own ttlMs", `{"ttlMs":5}`, `{"ttlMs":5}`},
		{"unknown type", `{"resultType":"stream"}`, ``},
		{"type is case-sensitive", `{"resultType":"Complete"}`, ``},
		{"type is no string", `{"resultType":null}`, ``},
		{"nobody asked for a task", `{"resultType":"task","taskId":"t"}`, ``},
		{"a question reaches the reverse engine, never the client", `{"resultType":"input_required","requestState":"s"}`, ``},
		{"no object", `"ok"`, ``},
	})
	r.Method = mcp.ToolsList
	runResults(t, r, []resultCase{
		{"hints go", `{"tools":[],"ttlMs":1,"nextCursor":"","cacheScope":"public","resultType":"complete"}`, `{"tools":[],"nextCursor":""}`},
	})
}

// Modern to modern: missing fields are added, questions and tasks pass where they may (MRT-01, MRT-04, TSK-M-01, FRM-22).
func TestResultModernToModern(t *testing.T) {
	r := Result{From: mcp.Modern, To: mcp.Modern, Method: mcp.ToolsCall, MayAsk: true, ServerInfo: []byte(`{"name":"wrong"}`)}
	ask := `{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":"s\u0041"}`
	runResults(t, r, []resultCase{
		{"type added, identity is the back's affair", `{"content":[]}`, `{"content":[],"resultType":"complete"}`},
		{"nothing to do", `{"resultType":"complete","_meta":{` + srvInfo + `}}`, `{"resultType":"complete","_meta":{` + srvInfo + `}}`},
		{"question", ask, ask},
		{"state alone", `{"resultType":"input_required","requestState":""}`, `{"resultType":"input_required","requestState":""}`},
		{"requests alone", `{"resultType":"input_required","inputRequests":{}}`, `{"resultType":"input_required","inputRequests":{}}`},
		{"task", `{"resultType":"task","taskId":"t"}`, `{"resultType":"task","taskId":"t"}`},
		{"asks nothing", `{"resultType":"input_required"}`, ``},
		{"null asks nothing", `{"resultType":"input_required","inputRequests":null}`, ``},
		{"requests are a list", `{"resultType":"input_required","inputRequests":[]}`, ``},
		{"state is a number", `{"resultType":"input_required","requestState":1}`, ``},
		{"unknown type", `{"resultType":"partial"}`, ``},
	})
	read := r
	read.Method = mcp.ResourcesRead
	runResults(t, read, []resultCase{
		{"interim results carry no hints (MRT-18)", ask, ask},
		{"the outcome does", `{"contents":[]}`, `{"contents":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}`},
		{"no task for a read", `{"resultType":"task","taskId":"t"}`, ``},
	})
	list := r
	list.Method = mcp.ToolsList
	runResults(t, list, []resultCase{{"lists cannot ask", ask, ``}})
	r.MayAsk = false
	runResults(t, r, []resultCase{{"front that cannot be asked", ask, ``}})
}

// Legacy to legacy on an exclusive link: the id, and nothing else.
func TestResultLegacyToLegacy(t *testing.T) {
	everything := `{ "resultType":"x","ttlMs":-1,"_meta":{` + related + `,` + srvInfo + `},"content":[{"type":"audio"},{"type":"new"}],"structuredContent":[1] }`
	r := Result{From: mcp.Legacy, To: mcp.Legacy, Method: mcp.ToolsCall, ClientVersion: mcp.V20241105, BackVersion: mcp.V20251125, Exclusive: true}
	runResults(t, r, []resultCase{{"all stays", everything, everything}, {"even a result that is no object", `null`, `null`}})
	r.Exclusive, r.ClientVersion, r.BackVersion = false, mcp.V20250618, mcp.V20250618
	runResults(t, r, []resultCase{{"same revision", everything, everything}})
	r.BackVersion = mcp.V20250326
	runResults(t, r, []resultCase{{"older back", everything, everything}})
}

// A tool list keeps its other bytes whatever goes: execution (LEG-10), schemas (FEA-08), whole tools (XMH-11).
func TestToolLists(t *testing.T) {
	r := legacyToModern(mcp.ToolsList)
	r.ServerInfo = nil
	tail := `,"resultType":"complete","ttlMs":0,"cacheScope":"private"`
	runResults(t, r, []resultCase{
		{"execution", `{"tools":[{"execution":{},"name":"a"},{"name":"b", "execution":{"taskSupport":"required"}},{"execution":1}]}`, `{"tools":[{"name":"a"},{"name":"b"},{}]` + tail + `}`},
		{"odd entries", `{"tools":[1,null,{"name":"a"}]}`, `{"tools":[1,null,{"name":"a"}]` + tail + `}`},
		{"odd list", `{"tools":{"execution":1}}`, `{"tools":{"execution":1}` + tail + `}`},
	})
	fl := Result{From: mcp.Modern, To: mcp.Legacy, Method: mcp.ToolsList, ClientVersion: mcp.V20250618}
	list := `{"tools":[{"name":"a","outputSchema":{"type":"object"},"execution":{}},{"outputSchema":{"oneOf":[]},"name":"b"},{"name":"c","outputSchema":true},{"name":"d","outputSchema":{"type":["object"]}}]}`
	runResults(t, fl, []resultCase{{"schemas the client cannot take", list, `{"tools":[{"name":"a","outputSchema":{"type":"object"},"execution":{}},{"name":"b"},{"name":"c"},{"name":"d"}]}`}})
	fl.ClientVersion = mcp.V20250326
	runResults(t, fl, []resultCase{{"ignored by older clients", list, list}})
	fl.Method = "example.com/list"
	fl.ClientVersion = mcp.V20251125
	runResults(t, fl, []resultCase{{"another method's tools", list, list}})
}

func TestToolsDropped(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`[X]`, `[]`}, {`[X , X]`, `[]`}, {`[ X ,a]`, `[ a]`}, {`[a, X ]`, `[a ]`}, {`[a,X,b]`, `[a,b]`},
		{`[X,a,X,X,b,X]`, `[a,b]`}, {`[a,b]`, `[a,b]`}, {`[]`, `[]`},
	} {
		expand := func(s string) string {
			s = strings.ReplaceAll(s, "X", `{"drop":1}`)
			return strings.ReplaceAll(strings.ReplaceAll(s, "a", `{"name":"A"}`), "b", `{"x":[]}`)
		}
		for _, from := range []mcp.Era{mcp.Legacy, mcp.Modern} {
			r := Result{From: from, To: mcp.Legacy, Method: mcp.ToolsList, Tools: dropMarked}
			runResults(t, r, []resultCase{{c.in, `{"tools":` + expand(c.in) + `}`, `{"tools":` + expand(c.want) + `}`}})
		}
	}
}

func dropMarked(raw []byte, tool framing.Span) []framing.Edit {
	if member(raw[tool.Start:tool.End], "drop") != nil {
		return []framing.Edit{{At: tool}}
	}
	return nil
}
