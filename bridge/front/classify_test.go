package front

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// legacyBody and modernBody make messages; params is the inside of the object.
func legacyBody(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"%s","params":{%s}}`, method, params)
}

func modernBody(method, params string) string {
	if params != "" {
		params += ","
	}
	return legacyBody(method, params+envelope)
}

// headers makes a header from alternating names and values.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func modernHeaders(method string, more ...string) http.Header {
	return headers(append([]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}, more...)...)
}

var (
	noSession      = SessionView{}
	unknownSession = SessionView{Present: true}
	session03      = SessionView{Present: true, Known: true, Version: mcp.V20250326}
	session11      = SessionView{Present: true, Known: true, Version: mcp.V20251125}
	opening        = SessionView{Present: true, Known: true}
)

// placed is what a test expects of Classify: the era, or status and code of the refusal and whether it echoes id 7.
type placed struct {
	era    mcp.Era
	status int
	code   int
	id     bool
}

func checkPlaced(t *testing.T, h http.Header, body string, s SessionView, want placed) *Class {
	t.Helper()
	c, err := Classify(h, []byte(body), s)
	if err == nil {
		if c.Era != want.era || want.status != 0 {
			t.Fatalf("placed in era %v, want %+v", c.Era, want)
		}
		return c
	}
	if c != nil || err.HTTPStatus() != want.status || err.Code != want.code || (string(err.ID) == "7") != want.id || !want.id && err.ID != nil {
		t.Fatalf("refused with %d %d id %q (%s), want %+v", err.HTTPStatus(), err.Code, err.ID, err.Message, want)
	}
	if !strings.HasPrefix(err.Message, "cannot ") || !strings.HasSuffix(err.Message, ".") {
		t.Errorf("message %q is no sentence of ours", err.Message)
	}
	return nil
}

func TestClassifyWhatKindOfMessage(t *testing.T) { // translation 1.1, row by row
	var (
		modern    = placed{era: mcp.Modern}
		legacy    = placed{era: mcp.Legacy}
		none      = http.Header{}
		v26       = headers("MCP-Protocol-Version", "2026-07-28")
		v11       = headers("MCP-Protocol-Version", "2025-11-25")
		notify    = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		enveloped = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,` + envelope + `}}`
		result    = `{"jsonrpc":"2.0","id":7,"result":{}}`
		failure   = `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`
		initBody  = legacyBody("initialize", `"protocolVersion":"2025-11-25"`)
	)
	tests := []struct {
		name    string
		headers http.Header
		body    string
		session SessionView
		want    placed
	}{
		{"enveloped request", modernHeaders("tools/list"), modernBody("tools/list", ""), noSession, modern},
		{"enveloped request on a session", modernHeaders("tools/list"), modernBody("tools/list", ""), session11, modern},
		{"enveloped request, unknown session", modernHeaders("tools/list"), modernBody("tools/list", ""), unknownSession, modern},
		{"enveloped initialize", modernHeaders("initialize"), modernBody("initialize", ""), noSession, placed{0, 404, -32601, true}},

		{"initialize", none, initBody, noSession, legacy},
		{"initialize, legacy header", v11, initBody, noSession, legacy},
		{"initialize, unknown header", headers("MCP-Protocol-Version", "2027-01-01"), initBody, noSession, legacy}, // case 64
		{"initialize, modern header", v26, initBody, noSession, placed{0, 400, -32020, true}},
		{"initialize with a dead session", none, initBody, unknownSession, legacy},
		{"initialize again", none, initBody, session11, placed{0, 400, -32600, true}}, // LEG-06
		{"initialize again while opening", none, initBody, opening, placed{0, 400, -32600, true}},

		{"session request", none, legacyBody("tools/list", ""), session11, legacy},
		{"session request, header", v11, legacyBody("tools/list", ""), session11, legacy},
		{"session request, other legacy header", headers("MCP-Protocol-Version", "2025-03-26"), legacyBody("tools/list", ""), session11, legacy}, // HTTP-L-27
		{"session request, unknown header", headers("MCP-Protocol-Version", "1900-01-01"), legacyBody("tools/list", ""), session11, placed{0, 400, -32600, true}},
		{"session request, empty header", headers("MCP-Protocol-Version", ""), legacyBody("tools/list", ""), session11, placed{0, 400, -32600, true}},
		{"session request, header twice", headers("MCP-Protocol-Version", "2025-11-25", "MCP-Protocol-Version", "2025-11-25"), legacyBody("tools/list", ""), session11, placed{0, 400, -32600, true}},
		{"session request, modern header", v26, legacyBody("tools/list", ""), session11, placed{0, 400, -32602, true}},
		{"session request before the version is known", none, legacyBody("ping", ""), opening, legacy},
		{"session request of the modern era", none, legacyBody("server/discover", ""), session11, placed{0, 200, -32601, true}}, // translation 17.6
		{"session listen", none, legacyBody("subscriptions/listen", ""), session11, placed{0, 200, -32601, true}},
		{"session task update", none, legacyBody("tasks/update", ""), session11, placed{0, 200, -32601, true}},
		{"session request nobody knows", none, legacyBody("vendor/x", ""), session11, legacy},
		{"session request with params that are no object", none, `{"jsonrpc":"2.0","id":7,"method":"vendor/x","params":[1]}`, session11, legacy},

		{"modern header, no envelope", v26, legacyBody("tools/list", ""), noSession, placed{0, 400, -32602, true}},
		{"modern header, empty _meta", v26, legacyBody("tools/list", `"_meta":{}`), noSession, placed{0, 400, -32602, true}},
		{"modern header, dead session", v26, legacyBody("tools/list", ""), unknownSession, placed{0, 400, -32602, true}},
		{"discover without envelope", none, legacyBody("server/discover", ""), noSession, placed{0, 400, -32602, true}},
		{"listen without envelope", v11, legacyBody("subscriptions/listen", ""), noSession, placed{0, 400, -32602, true}},
		{"task update without envelope", none, legacyBody("tasks/update", ""), noSession, placed{0, 400, -32602, true}},
		{"bare request", none, legacyBody("tools/list", ""), noSession, placed{0, 400, -32600, true}}, // LEG-05
		{"bare request, legacy header", v11, legacyBody("tools/list", ""), noSession, placed{0, 400, -32600, true}},
		{"dead session", v11, legacyBody("tools/list", ""), unknownSession, placed{0, 404, -32600, true}},
		{"dead session, discover", none, legacyBody("server/discover", ""), unknownSession, placed{0, 404, -32600, true}},
		{"dead session, bad header", headers("MCP-Protocol-Version", "x"), legacyBody("tools/list", ""), unknownSession, placed{0, 404, -32600, true}},

		{"enveloped notification", none, enveloped, noSession, modern}, // HTTP-M-07
		{"enveloped notification on a session", none, enveloped, session11, modern},
		{"enveloped notification, same version", v26, enveloped, noSession, modern},
		{"enveloped notification, other version", v11, enveloped, noSession, placed{0, 400, -32020, false}},
		{"notification with modern header", v26, notify, noSession, modern},
		{"notification with modern header on a session", v26, notify, session11, legacy},
		{"notification with unknown header on a session", headers("MCP-Protocol-Version", "1900-01-01"), notify, session11, placed{0, 400, -32600, false}},
		{"notification with two headers on a session", headers("MCP-Protocol-Version", "2025-11-25", "MCP-Protocol-Version", "2026-07-28"), notify, session11, placed{0, 400, -32600, false}},
		{"answer with modern header on a session", v26, result, session11, legacy},
		{"session notification", v11, notify, session11, legacy},
		{"notification, dead session", none, notify, unknownSession, placed{0, 404, -32600, false}},
		{"bare notification", none, notify, noSession, placed{0, 400, -32600, false}},

		{"answer on a session", v11, result, session11, legacy},
		{"failure on a session", none, failure, session11, legacy},
		{"answer, dead session", none, result, unknownSession, placed{0, 404, -32600, false}},
		{"answer without session", none, result, noSession, placed{0, 400, -32600, false}},
		{"answer with modern header", v26, result, noSession, placed{0, 400, -32600, false}},
		{"envelope in a result is none", none, `{"jsonrpc":"2.0","id":7,"result":{` + envelope + `}}`, session11, legacy},

		{"no JSON", none, `{`, session11, placed{0, 400, -32700, false}},
		{"nothing", none, ``, noSession, placed{0, 400, -32700, false}},
		{"both result and error", none, `{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"x"}}`, session11, placed{0, 400, -32600, false}},
		{"no version of JSON-RPC", none, `{"id":7,"method":"ping"}`, session11, placed{0, 400, -32600, true}},
		{"null id", none, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, session11, placed{0, 400, -32600, false}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkPlaced(t, tt.headers, tt.body, tt.session, tt.want) })
	}
}

func TestClassifyFillsClass(t *testing.T) {
	t.Run("modern call", func(t *testing.T) {
		c := checkPlaced(t, modernHeaders("tools/call", "Mcp-Name", "=?base64?Z3LDtsOfZQ==?="), modernBody("tools/call", `"name":"gr\u00f6\u00dfe"`), noSession, placed{era: mcp.Modern})
		if c.Method != "tools/call" || c.Name != "größe" || c.Version != mcp.V20260728 || !c.Traits.MayAsk || c.Message == nil || c.Batch != nil {
			t.Errorf("class %+v", c)
		}
	})
	t.Run("escaped spelling", func(t *testing.T) {
		body := `{"jsonrpc":"2.0","id":7,"method":"tools\/call","params":{"n\u0061me":"a\/b","_meta":{"io.modelcontextprotocol\/protocolVersion":"2026\u002d07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
		c := checkPlaced(t, modernHeaders("tools/call", "Mcp-Name", "a/b"), body, noSession, placed{era: mcp.Modern})
		if c.Method != "tools/call" || c.Name != "a/b" || c.Version != mcp.V20260728 {
			t.Errorf("class %+v", c)
		}
	})
	t.Run("header with the raw spelling of an escape", func(t *testing.T) {
		checkPlaced(t, modernHeaders("tools/call", "Mcp-Name", `a\/b`), modernBody("tools/call", `"name":"a\/b"`), noSession, placed{0, 400, -32020, true})
	})
	t.Run("session read", func(t *testing.T) {
		c := checkPlaced(t, http.Header{}, legacyBody("resources/read", `"uri":"file:///a"`), session11, placed{era: mcp.Legacy})
		if c.Method != "resources/read" || c.Name != "file:///a" || c.Version != mcp.V20251125 {
			t.Errorf("class %+v", c)
		}
	})
	t.Run("session call without name", func(t *testing.T) {
		c := checkPlaced(t, http.Header{}, legacyBody("tools/call", `"name":5`), session11, placed{era: mcp.Legacy})
		if c.Name != "" {
			t.Errorf("name %q", c.Name)
		}
	})
	t.Run("answer", func(t *testing.T) {
		c := checkPlaced(t, http.Header{}, `{"jsonrpc":"2.0","id":7,"result":{}}`, session11, placed{era: mcp.Legacy})
		if c.Message.Kind != framing.Result || c.Method != "" {
			t.Errorf("class %+v", c)
		}
	})
	t.Run("discover", func(t *testing.T) {
		c := checkPlaced(t, modernHeaders("server/discover"), modernBody("server/discover", ""), noSession, placed{era: mcp.Modern})
		if c.Method != mcp.Discover || !c.Traits.Cacheable {
			t.Errorf("class %+v", c)
		}
	})
}

func TestClassifyCause(t *testing.T) {
	_, err := Classify(http.Header{}, []byte(`{"jsonrpc":"2.0","id":"q-1","result":{},"error":{"code":1,"message":"x"}}`), session11)
	var scan *framing.ScanError
	if !errors.As(err, &scan) || string(scan.ID) != `"q-1"` || scan.Kind != framing.Result {
		t.Errorf("cause %+v does not tell which question was answered", scan)
	}
}

func TestVersionUnsupportedData(t *testing.T) { // HTTP-M-21
	body := strings.Replace(modernBody("tools/list", ""), "2026-07-28", `2099\"01`, 1)
	_, err := Classify(headers("MCP-Protocol-Version", `2099"01`), []byte(body), noSession)
	want := `{"jsonrpc":"2.0","id":7,"error":{"code":-32022,"message":"cannot serve the requested protocol version. Supported: 2026-07-28.","data":{"source":"bridge","reason":"unsupported_version","supported":["2026-07-28"],"requested":"2099\"01"}}}`
	if err == nil || err.Status != 400 || string(err.Body(false)) != want {
		t.Errorf("got %s, want %s", err.Body(false), want)
	}
}

// The good path costs no memory beyond message and class.
func TestClassifyAllocations(t *testing.T) {
	h := modernHeaders("tools/call", "Mcp-Name", "echo")
	legacy := headers("MCP-Protocol-Version", "2025-11-25")
	tests := []struct {
		name    string
		headers http.Header
		body    string
		session SessionView
		extra   float64
	}{
		{"modern call", h, modernBody("tools/call", `"name":"echo","arguments":{"text":"x"}`), noSession, 1},
		{"modern vendor method", modernHeaders("vendor/x"), modernBody("vendor/x", ""), noSession, 1},
		{"legacy list", legacy, legacyBody("tools/list", ""), session11, 1},
		{"legacy call", legacy, legacyBody("tools/call", `"name":"echo"`), session11, 2}, // the name
	}
	for _, tt := range tests {
		body := []byte(tt.body)
		scan := testing.AllocsPerRun(100, func() {
			if _, err := framing.Scan(body); err != nil {
				t.Fatal(err)
			}
		})
		all := testing.AllocsPerRun(100, func() {
			if _, err := Classify(tt.headers, body, tt.session); err != nil {
				t.Fatal(err)
			}
		})
		if all > scan+tt.extra {
			t.Errorf("%s: %v allocations, %v of them for the scan", tt.name, all, scan)
		}
	}
}

func BenchmarkClassify(b *testing.B) {
	h := modernHeaders("tools/call", "Mcp-Name", "echo")
	body := []byte(modernBody("tools/call", `"name":"echo","arguments":{"text":"`+strings.Repeat("x", 100)+`"}`))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Classify(h, body, noSession); err != nil {
			b.Fatal(err)
		}
	}
}
