package front

import (
	"net/http"
	"strings"
	"testing"

	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/mirror"
)

func TestStandardHeaders(t *testing.T) { // HTTP-M-25..33, HTTP-M-40
	call := func(name string) string { return modernBody("tools/call", `"name":"`+name+`"`) }
	with := func(pairs ...string) http.Header {
		return headers(append([]string{"MCP-Protocol-Version", "2026-07-28"}, pairs...)...)
	}
	tasks := func(method string) string {
		return strings.Replace(modernBody(method, `"taskId":"T1"`), `clientCapabilities":{}`, `clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, 1)
	}
	refused := placed{0, 400, -32020, true}
	passed := placed{era: mcp.Modern}
	tests := []struct {
		name    string
		headers http.Header
		body    string
		want    placed
	}{
		{"good", with("Mcp-Method", "tools/call", "Mcp-Name", "a"), call("a"), passed},
		{"white space around", with("Mcp-Method", " tools/call\t", "Mcp-Name", "\ta "), call("a"), passed},
		{"no method", with("Mcp-Name", "a"), call("a"), refused},
		{"method twice", with("Mcp-Method", "tools/call", "Mcp-Method", "tools/call", "Mcp-Name", "a"), call("a"), refused},
		{"method of another case", with("Mcp-Method", "Tools/Call", "Mcp-Name", "a"), call("a"), refused},
		{"method with raw UTF-8", with("Mcp-Method", "v/ö"), modernBody("v/ö", ""), refused},
		{"no name", with("Mcp-Method", "tools/call"), call("a"), refused},
		{"name twice", with("Mcp-Method", "tools/call", "Mcp-Name", "a", "Mcp-Name", "a"), call("a"), refused},
		{"other name", with("Mcp-Method", "tools/call", "Mcp-Name", "b"), call("a"), refused},
		{"name with raw UTF-8", with("Mcp-Method", "tools/call", "Mcp-Name", "ö"), call("ö"), refused},
		{"name with a control byte", with("Mcp-Method", "tools/call", "Mcp-Name", "a\x01"), call(`a\u0001`), refused},
		{"sentinel as text", with("Mcp-Method", "tools/call", "Mcp-Name", "=?base64?YQ==?="), call("=?base64?YQ==?="), refused},
		{"sentinel", with("Mcp-Method", "tools/call", "Mcp-Name", "=?base64?YQ==?="), call("a"), passed},
		{"empty name, empty header", with("Mcp-Method", "tools/call", "Mcp-Name", ""), call(""), passed}, // ENC-10
		{"empty name, no header", with("Mcp-Method", "tools/call"), call(""), refused},
		{"prompt", with("Mcp-Method", "prompts/get", "Mcp-Name", "b"), modernBody("prompts/get", `"name":"a"`), refused},
		{"resource", with("Mcp-Method", "resources/read", "Mcp-Name", "file:///b"), modernBody("resources/read", `"uri":"file:///a"`), refused},
		{"name nobody asked for", with("Mcp-Method", "tools/list", "Mcp-Name", "x"), modernBody("tools/list", ""), passed},
		{"name nobody asked for, twice", with("Mcp-Method", "tools/list", "Mcp-Name", "x", "Mcp-Name", "x"), modernBody("tools/list", ""), refused},
		{"name nobody asked for, raw bytes", with("Mcp-Method", "tools/list", "Mcp-Name", "ö"), modernBody("tools/list", ""), refused},
		{"name nobody asked for, DEL", with("Mcp-Method", "tools/list", "Mcp-Name", "\x7f"), modernBody("tools/list", ""), refused},
		{"name nobody asked for, tab", with("Mcp-Method", "tools/list", "Mcp-Name", "a\tb~"), modernBody("tools/list", ""), passed},
		{"task", with("Mcp-Method", "tasks/get", "Mcp-Name", "T1"), tasks("tasks/get"), passed},
		{"task without name", with("Mcp-Method", "tasks/cancel"), tasks("tasks/cancel"), passed},
		{"other task", with("Mcp-Method", "tasks/update", "Mcp-Name", "T2"), tasks("tasks/update"), refused},
		{"session id twice is ignored", with("Mcp-Method", "tools/list", "Mcp-Session-Id", "a", "Mcp-Session-Id", "b"), modernBody("tools/list", ""), passed}, // HTTP-M-39
		{"unknown parameter header", with("Mcp-Method", "tools/list", "Mcp-Param-X", "ö"), modernBody("tools/list", ""), passed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkPlaced(t, tt.headers, tt.body, noSession, tt.want) })
	}
}

func TestHeaderRefusalsHideValues(t *testing.T) { // SEC-09, XMH-19
	const canary = "canary-4711"
	params := []mirror.Param{{Header: "Region", Path: []string{"region"}, Type: mirror.String}}
	body := []byte(modernBody("tools/call", `"name":"a","arguments":{"region":"`+canary+`"}`))
	for header, h := range map[string]http.Header{
		"MCP-Protocol-Version": headers("MCP-Protocol-Version", canary),
		"Mcp-Method":           headers("MCP-Protocol-Version", "2026-07-28", "Mcp-Method", canary),
		"Mcp-Name":             modernHeaders("tools/call", "Mcp-Name", canary),
		"Mcp-Param-Region":     modernHeaders("tools/call", "Mcp-Name", "a", "Mcp-Param-Region", canary+"x"),
	} {
		c, err := Classify(h, body, noSession)
		if err == nil {
			err = CheckParams(c, h, params)
		}
		if err == nil || err.Code != -32020 || err.Status != 400 || string(err.ID) != "7" {
			t.Errorf("%s: %+v, want -32020 with status 400 and the id", header, err)
			continue
		}
		if answer := strings.ToLower(string(err.Body(false))); strings.Contains(answer, canary) || !strings.Contains(answer, strings.ToLower(header)) {
			t.Errorf("%s: answer %s shows the value or not the name", header, answer)
		}
	}
}

func TestCheckParams(t *testing.T) { // HTTP-M-41 check 12; the comparison itself is tested with the vectors
	params := []mirror.Param{{Header: "Region", Path: []string{"region"}, Type: mirror.String}}
	call := modernBody("tools/call", `"name":"a","arguments":{"region":"eu"}`)
	name := []string{"Mcp-Name", "a"}
	tests := []struct {
		name    string
		headers http.Header
		body    string
		session SessionView
		params  []mirror.Param
		ok      bool
	}{
		{"equal", modernHeaders("tools/call", append(name, "Mcp-Param-Region", "eu")...), call, noSession, params, true},
		{"missing", modernHeaders("tools/call", name...), call, noSession, params, false},
		{"no schema", modernHeaders("tools/call", name...), call, noSession, nil, true},
		{"no arguments", modernHeaders("tools/call", name...), modernBody("tools/call", `"name":"a"`), noSession, params, true},
		{"null arguments", modernHeaders("tools/call", name...), modernBody("tools/call", `"name":"a","arguments":null`), noSession, params, true},
		{"no arguments, header", modernHeaders("tools/call", append(name, "Mcp-Param-Region", "eu")...), modernBody("tools/call", `"name":"a"`), noSession, params, false},
		{"argument twice", modernHeaders("tools/call", append(name, "Mcp-Param-Region", "eu")...), modernBody("tools/call", `"name":"a","arguments":{"region":"eu","region":"us"}`), noSession, params, false},
		{"legacy", http.Header{}, legacyBody("tools/call", `"name":"a","arguments":{"region":"eu"}`), session11, params, true},
		{"other method", modernHeaders("prompts/get", name...), modernBody("prompts/get", `"name":"a","arguments":{"region":"eu"}`), noSession, params, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Classify(tt.headers, []byte(tt.body), tt.session)
			if err != nil {
				t.Fatal(err)
			}
			if err = CheckParams(c, tt.headers, tt.params); (err == nil) != tt.ok {
				t.Errorf("got %v, want ok %v", err, tt.ok)
			}
		})
	}
	if err := CheckParams(&Class{Era: mcp.Legacy, Batch: [][]byte{}}, http.Header{}, params); err != nil {
		t.Errorf("batch: %v", err)
	}
}
