package front

import (
	"net/http"
	"strings"
	"testing"

	"mcpbridge/bridge/mcp"
)

func TestEnvelopeTypes(t *testing.T) { // META-03..05, PRG-01
	const version = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	const caps = `"io.modelcontextprotocol/clientCapabilities":{}`
	tests := []struct {
		meta string
		ok   bool
	}{
		{version + `,` + caps, true},
		{version, false},
		{caps, false},
		{version + `,"io.modelcontextprotocol/clientCapabilities":null`, false},
		{version + `,"io.modelcontextprotocol/clientCapabilities":[]`, false},
		{version + `,"IO.modelcontextprotocol/clientCapabilities":{}`, false},
		{`"io.modelcontextprotocol/protocolVersion":20260728,` + caps, false},
		{`"io.modelcontextprotocol/protocolVersion":null,` + caps, false},
		{version + `,` + caps + `,"io.modelcontextprotocol/clientInfo":{}`, true},
		{version + `,` + caps + `,"io.modelcontextprotocol/clientInfo":null`, false},
		{version + `,` + caps + `,"progressToken":"a"`, true},
		{version + `,` + caps + `,"progressToken":""`, true},
		{version + `,` + caps + `,"progressToken":-12345678901234567890`, true},
		{version + `,` + caps + `,"progressToken":1.5`, false},
		{version + `,` + caps + `,"progressToken":1e3`, false},
		{version + `,` + caps + `,"progressToken":1E3`, false},
		{version + `,` + caps + `,"progressToken":null`, false},
		{version + `,` + caps + `,"progressToken":true`, false},
		{version + `,` + caps + `,"vendor.example/x":[1]`, true},
	}
	for _, tt := range tests {
		want := placed{era: mcp.Modern}
		if !tt.ok {
			want = placed{0, 400, -32602, true}
		}
		t.Run(tt.meta, func(t *testing.T) {
			checkPlaced(t, modernHeaders("tools/list"), legacyBody("tools/list", `"_meta":{`+tt.meta+`}`), noSession, want)
		})
	}
}

func TestParamShapes(t *testing.T) { // HTTP-M-41 check 11: LOG-03, MRT-15, SUB-01
	type row struct {
		method, params string
		want           placed
	}
	passed, refused := placed{era: mcp.Modern}, placed{0, 400, -32602, true}
	tests := []row{
		{"tools/call", `"name":"a"`, passed},
		{"tools/call", `"name":"a","arguments":{}`, passed},
		{"tools/call", `"name":"a","arguments":null`, passed},
		{"tools/call", `"name":"a","arguments":[]`, refused},
		{"tools/call", `"name":"a","arguments":"x"`, refused},
		{"tools/call", ``, refused},
		{"tools/call", `"name":null`, refused},
		{"tools/call", `"name":{"a":1}`, refused},
		{"prompts/get", ``, refused},
		{"resources/read", `"uri":5`, refused},
		{"tasks/get", ``, refused},

		{"tools/call", `"name":"a","requestState":"s"`, passed},
		{"tools/call", `"name":"a","requestState":null`, refused},
		{"tools/call", `"name":"a","requestState":{}`, refused},
		{"tools/call", `"name":"a","inputResponses":{}`, passed},
		{"tools/call", `"name":"a","inputResponses":{"k":{"action":"decline"},"l":{}}`, passed},
		{"tools/call", `"name":"a","inputResponses":null`, refused},
		{"tools/call", `"name":"a","inputResponses":[]`, refused},
		{"tools/call", `"name":"a","inputResponses":{"k":{},"l":null}`, refused},
		{"resources/read", `"uri":"a","inputResponses":[]`, refused},
		{"prompts/get", `"name":"a","requestState":1`, refused},
		{"tools/list", `"inputResponses":[],"requestState":1`, passed},
		{"vendor/x", `"name":5,"arguments":[],"requestState":1`, passed},

		{"subscriptions/listen", `"notifications":{}`, passed},
		{"subscriptions/listen", `"notifications":{"toolsListChanged":true,"promptsListChanged":false,"resourcesListChanged":true,"resourceSubscriptions":["file:///a","b"],"x":1}`, passed},
		{"subscriptions/listen", `"notifications":{"resourceSubscriptions":[]}`, passed},
		{"subscriptions/listen", ``, refused},
		{"subscriptions/listen", `"notifications":null`, refused},
		{"subscriptions/listen", `"notifications":[]`, refused},
		{"subscriptions/listen", `"notifications":{"toolsListChanged":1}`, refused},
		{"subscriptions/listen", `"notifications":{"promptsListChanged":null}`, refused},
		{"subscriptions/listen", `"notifications":{"resourcesListChanged":"true"}`, refused},
		{"subscriptions/listen", `"notifications":{"resourceSubscriptions":{}}`, refused},
		{"subscriptions/listen", `"notifications":{"resourceSubscriptions":["a",null]}`, refused},
		{"subscriptions/listen", `"notifications":{"taskIds":"T1"}`, refused},
		{"subscriptions/listen", `"notifications":{"toolsListChanged":true,"toolsListChanged":false}`, refused},
		{"subscriptions/listen", `"notifications":{"resourceSubscriptions":["a"],"resourceSubscriptions":["b"]}`, refused},
		{"subscriptions/listen", `"notifications":{"taskIds":["T1"]}`, placed{0, 400, -32021, true}},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.params, func(t *testing.T) {
			h := modernHeaders(tt.method)
			switch tt.method {
			case "tools/call", "prompts/get", "resources/read", "tasks/get":
				h.Set("Mcp-Name", "a")
			}
			checkPlaced(t, h, modernBody(tt.method, tt.params), noSession, tt.want)
		})
	}
}

func TestListenNeedsStream(t *testing.T) { // HTTP-M-04
	body := modernBody("subscriptions/listen", `"notifications":{}`)
	for accept, want := range map[string]placed{
		"":                            {era: mcp.Modern},
		"*/*":                         {era: mcp.Modern},
		"text/event-stream":           {era: mcp.Modern},
		"application/json":            {0, 406, -32600, true},
		"*/*,text/event-stream;q=0.0": {0, 406, -32600, true},
	} {
		h := modernHeaders("subscriptions/listen")
		if accept != "" {
			h.Set("Accept", accept)
		}
		checkPlaced(t, h, body, noSession, want)
	}
}

func TestLogLevels(t *testing.T) { // LOG-03
	for level, ok := range map[string]bool{
		`"debug"`: true, `"emergency"`: true, `"w\u0061rning"`: true, `"Warning"`: false, `"verbose"`: false, `""`: false, `3`: false, `null`: false,
	} {
		want := placed{era: mcp.Modern}
		if !ok {
			want = placed{0, 400, -32602, true}
		}
		body := strings.Replace(modernBody("tools/list", ""), `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":`+level+`,`, 1)
		checkPlaced(t, modernHeaders("tools/list"), body, noSession, want)
	}
}

func TestTasksNeedExtension(t *testing.T) { // META-09, TSK-M-09
	for caps, ok := range map[string]bool{
		`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`:             true,
		`{"extensions":{"x":1,"io.modelcontextprotocol\/tasks":{"a":1}}}`: true,
		`{}`:                      false,
		`{"extensions":null}`:     false,
		`{"extensions":[]}`:       false,
		`{"extensions":{"x":{}}}`: false,
		`{"extensions":{"io.modelcontextprotocol/tasks":null}}`: false,
		`{"tasks":{}}`: false,
	} {
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			body := strings.Replace(modernBody(method, `"taskId":"T1"`), `Capabilities":{}`, `Capabilities":`+caps, 1)
			want := placed{era: mcp.Modern}
			if !ok {
				want = placed{0, 400, -32021, true}
			}
			checkPlaced(t, modernHeaders(method, "Mcp-Name", "T1"), body, noSession, want)
		}
	}
	_, err := Classify(modernHeaders("tasks/get", "Mcp-Name", "T1"), []byte(modernBody("tasks/get", `"taskId":"T1"`)), noSession)
	if want := `"data":{"source":"bridge","reason":"capability_not_declared","requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`; !strings.Contains(string(err.Body(false)), want) {
		t.Errorf("answer %s lacks %s", err.Body(false), want)
	}
}

// On a session the bytes pass: what these checks refuse is the server's to judge.
func TestSessionParamsPass(t *testing.T) {
	for _, body := range []string{
		legacyBody("tools/call", `"arguments":[]`),
		legacyBody("tools/list", `"_meta":{"io.modelcontextprotocol/logLevel":"x"}`),
		legacyBody("tasks/get", `"taskId":5`),
	} {
		checkPlaced(t, http.Header{}, body, session11, placed{era: mcp.Legacy})
	}
}
