package era

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Values whose spelling a decoder would lose.
var rawValues = rapid.SampledFrom([]string{
	`1.10`, `12345678901234567890`, `-0`, `1E+2`, `"\u0041\/"`, `"é"`, `null`, `[ 1 , {"a":[]} ]`, `{"_meta":{"progressToken":1}, "a":{"b":1,"b":2}}`,
	`{"io.modelcontextprotocol/protocolVersion":"x"}`, `true`, `""`, `"resultType"`,
})

var blanks = rapid.SampledFrom([]string{"", "", "", " ", "\n\t"})

// objectText spells an object of members whose names are a subset of names, in random order and with random blanks.
func objectText(t *rapid.T, label string, names []string, more ...string) string {
	picked := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, label)
	members := more
	for _, n := range picked {
		members = append(members, `"`+n+`"`+blanks.Draw(t, "b")+`:`+blanks.Draw(t, "b")+rawValues.Draw(t, "v"))
	}
	members = rapid.Permutation(members).Draw(t, label+" order")
	sep := blanks.Draw(t, "b") + `,` + blanks.Draw(t, "b")
	return `{` + blanks.Draw(t, "b") + strings.Join(members, sep) + blanks.Draw(t, "b") + `}`
}

var metaNames = []string{"example.com/tenant", "traceparent", "tracestate", "baggage", "vendor", "vend\\u006fr2", "io.modelcontextprotocol/model-immediate-response"}

func drawMeta(t *rapid.T, more ...string) (members []string) {
	if rapid.Bool().Draw(t, "has meta") {
		text := objectText(t, "meta", metaNames, more...)
		if !isEmpty([]byte(text)) { // an empty one does not survive the way back
			members = append(members, `"_meta":`+text)
		}
	}
	return members
}

// strip(inject(m)) is m, byte for byte: what the bridge adds it can take away, and it touches nothing else (FRM-30).
func TestRequestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var token []byte
		var more []string
		if rapid.Bool().Draw(t, "token") {
			token = []byte(rapid.SampledFrom([]string{`"p"`, `0`, `-7`}).Draw(t, "t"))
			more = append(more, `"progressToken":`+string(token))
		}
		params := objectText(t, "params", []string{"name", "arguments", "cursor", "uri", "x", "taskId"}, drawMeta(t, more...)...)
		id := rapid.SampledFrom([]string{`"a-1"`, `0`, `""`, `-1`}).Draw(t, "id")
		method := rapid.SampledFrom([]string{"tools/call", "tools/list", "example.com/x"}).Draw(t, "method")
		members := []string{`"jsonrpc":"2.0"`, `"id": ` + id, `"method":"` + method + `"`, `"params" :` + params}
		in := `{` + strings.Join(rapid.Permutation(members).Draw(t, "order"), ` , `) + `}`

		e := Envelope{Version: mcp.V20260728, ClientInfo: []byte(`{"name":"h"}`), Capabilities: []byte(`{}`)}
		if rapid.Bool().Draw(t, "level") {
			e.LogLevel = "info"
		}
		down := rewriteRequest(t, in, Request{From: mcp.Legacy, To: mcp.Modern, ID: []byte("57"), Token: []byte("57"), Envelope: &e})
		m, err := framing.Scan([]byte(down))
		if err != nil || string(m.Bytes(m.ID)) != "57" || !m.MetaMember(mcp.MetaProtocolVersion).OK() || !m.MetaMember(mcp.MetaClientCapabilities).OK() {
			t.Fatalf("no modern request: %s (%v)", down, err)
		}
		if m.MetaMember("progressToken").OK() != scanned(t, in).MetaMember("progressToken").OK() {
			t.Fatalf("a token came or went: %s", down)
		}
		up := rewriteRequest(t, down, Request{From: mcp.Modern, To: mcp.Legacy, ID: []byte(id), Token: token})
		if up != in {
			t.Fatalf("came back as\n%s\nwas\n%s\nbetween\n%s", up, in, down)
		}
	})
}

// A legacy result completed for a modern client and stripped for a legacy one is the same, byte for byte.
func TestResultRoundTrip(t *testing.T) {
	methods := []string{mcp.ToolsCall, mcp.ToolsList, mcp.PromptsGet, mcp.ResourcesRead, mcp.ResourcesList, mcp.Complete, "example.com/x"}
	rapid.Check(t, func(t *rapid.T) {
		body := objectText(t, "result", []string{"content", "isError", "nextCursor", "contents", "x"}, drawMeta(t)...)
		in := `{"id":"a", "jsonrpc":"2.0","result" : ` + body + ` }`
		up := Result{From: mcp.Legacy, To: mcp.Modern, Method: rapid.SampledFrom(methods).Draw(t, "method"), ID: []byte("57")}
		if rapid.Bool().Draw(t, "identity") {
			up.ServerInfo = []byte(`{"name":"s"}`)
		}
		modern := rewriteResult(t, in, up)
		if f := fieldsOf(scanned(t, modern)); !f.resultType.OK() || f.ttlMs.OK() != mcp.TraitsOf(up.Method).Cacheable {
			t.Fatalf("no modern result: %s", modern)
		}
		down := rewriteResult(t, modern, Result{From: mcp.Modern, To: mcp.Legacy, Method: up.Method, ID: []byte(`"a"`), ClientVersion: mcp.V20251125})
		if down != in {
			t.Fatalf("came back as\n%s\nwas\n%s\nbetween\n%s", down, in, modern)
		}
	})
}

// Whatever the back sends and whatever the pair: the edits never overlap and a valid message with the client's id comes out.
func TestResultAlwaysValid(t *testing.T) {
	names := []string{"content", "messages", "structuredContent", "tools", "resultType", "ttlMs", "cacheScope", "_meta", "inputRequests", "requestState"}
	blocks := rapid.SampledFrom([]string{audio, link, odd, plain, `{}`, `1`, `{"role":"user","content":` + audio + `}`, `{"name":"a","execution":{},"outputSchema":{}}`, `{"drop":1}`})
	pairs := rapid.SampledFrom([][2]mcp.Era{{mcp.Legacy, mcp.Legacy}, {mcp.Legacy, mcp.Modern}, {mcp.Modern, mcp.Legacy}, {mcp.Modern, mcp.Modern}})
	rapid.Check(t, func(t *rapid.T) {
		lists := `[` + strings.Join(rapid.SliceOfN(blocks, 0, 5).Draw(t, "list"), ",") + `]`
		body := objectText(t, "result", names)
		for _, n := range []string{"content", "messages", "tools"} {
			if rapid.Bool().Draw(t, n) {
				body = string(change([]byte(body), framing.Op{Name: n, Value: []byte(lists)}))
			}
		}
		pair := pairs.Draw(t, "pair")
		r := Result{From: pair[0], To: pair[1], ID: []byte(`"c"`), ServerInfo: []byte(`{"name":"s"}`), MayAsk: true, Tools: dropMarked,
			Method:        rapid.SampledFrom([]string{mcp.ToolsCall, mcp.ToolsList, mcp.PromptsGet, "x"}).Draw(t, "method"),
			ClientVersion: rapid.SampledFrom(append(mcp.LegacyVersions(), "")).Draw(t, "client")}
		m := scanned(t, `{"jsonrpc":"2.0","id":57,"result":`+body+`}`)
		edits, err := r.Edits(m)
		if err != nil {
			return
		}
		out := scanned(t, string(framing.Rewrite(m.Raw, edits).Bytes()))
		if string(out.Bytes(out.ID)) != `"c"` {
			t.Fatalf("id lost: %s", out.Raw)
		}
		if r.To == mcp.Modern && !out.ResultMember("resultType").OK() {
			t.Fatalf("no modern result: %s", out.Raw)
		}
		tools := string(out.Bytes(out.ResultMember("tools")))
		if r.From == mcp.Legacy && r.To == mcp.Modern && r.Method == mcp.ToolsList && strings.Contains(tools, `"execution"`) {
			t.Fatalf("execution left: %s", out.Raw)
		}
	})
}

func scanned(t *rapid.T, raw string) *framing.Message {
	m, err := framing.Scan([]byte(raw))
	if err != nil {
		t.Fatalf("cannot scan %s: %v", raw, err)
	}
	return m
}

func rewriteRequest(t *rapid.T, raw string, r Request) string {
	m := scanned(t, raw)
	return string(framing.Rewrite(m.Raw, r.Edits(m)).Bytes())
}

func rewriteResult(t *rapid.T, raw string, r Result) string {
	m := scanned(t, raw)
	edits, err := r.Edits(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(framing.Rewrite(m.Raw, edits).Bytes())
}
