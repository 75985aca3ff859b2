package back_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/mcp"
)

// toolsOf answers tools/list with tools whose schemas are given.
func toolsOf(schemas ...string) func(http.ResponseWriter, *seen) {
	return func(w http.ResponseWriter, q *seen) {
		var list []string
		for i := 0; i < len(schemas); i += 2 {
			list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object","properties":{%s}}}`, schemas[i], schemas[i+1]))
		}
		sendResult(w, q, `{"resultType":"complete","tools":[`+strings.Join(list, ",")+`],"ttlMs":0,"cacheScope":"private"}`)
	}
}

const annotatedTool = `"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"Count"},"deep":{"type":"object","properties":{"on":{"type":"boolean","x-mcp-header":"On"}}}`

func echoes(w http.ResponseWriter, q *seen) {
	sendResult(w, q, `{"resultType":"complete","content":[]}`)
}

// The headers of a request repeat its body and nothing else (HTTP-M-03, HTTP-M-19, HTTP-M-25, HTTP-M-26, HTTP-M-34, HTTP-M-39, XMH-01,
// XMH-14, XMH-15, ENC-02, SEC-10; cases 32, 57, 82).
func TestModernHeaders(t *testing.T) {
	t.Parallel()
	r := newRemoteRig(t, modernServer(answers{mcp.ToolsList: toolsOf("a\r\nX-Evil: 1", annotatedTool), mcp.ToolsCall: echoes,
		mcp.ResourcesRead: echoes, mcp.TasksGet: echoes, "vendor/x": echoes}),
		configured(func(c *back.RemoteConfig) { c.Headers = map[string]string{"Authorization": "Bearer a b"} }))
	r.call(mcp.ToolsCall, `"name":"a\r\nX-Evil: 1","arguments":{"region":"größe","n":42,"deep":{"on":true}}`, func(ex *bridge.Exchange) {
		ex.Headers = map[string][]string{"Mcp-Param-Other": {"kept"}, "Mcp-Param-Region": {"the front's"}}
	}).want(`"content":[]`)
	h := r.await(1, method(mcp.ToolsCall))[0].Header
	for name, want := range map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "=?base64?YQ0KWC1FdmlsOiAx?=",
		"Mcp-Param-Region": "=?base64?Z3LDtsOfZQ==?=", "Mcp-Param-Count": "42", "Mcp-Param-On": "true", "Mcp-Param-Other": "kept", "X-Evil": "",
		"Authorization": "Bearer a b", "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": "", "Last-Event-Id": ""} {
		if got := strings.Join(h.Values(name), "|"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	r.call(mcp.ToolsCall, `"name":"a\r\nX-Evil: 1","arguments":{"region":null,"deep":7,"n":"7"}`).want(`"content":[]`)
	for name := range r.await(2, method(mcp.ToolsCall))[1].Header {
		if strings.HasPrefix(name, "Mcp-Param-") {
			t.Errorf("header %s for an argument that is null, absent or of another type", name)
		}
	}
	for method, members := range map[string][2]string{mcp.ResourcesRead: {`"uri":"file:///x y"`, "file:///x y"}, "vendor/x": {"", ""}} {
		r.call(method, members[0]).want(`"content":[]`)
		if got := r.await(1, func(q *seen) bool { return q.Method == method })[0].Header.Get("Mcp-Name"); got != members[1] {
			t.Errorf("%s: Mcp-Name %q, want %q", method, got, members[1])
		}
	}
	r.call(mcp.TasksGet, `"taskId":"t-1"`).want(`"content":[]`)
	if got := r.await(1, method(mcp.TasksGet))[0].Header.Get("Mcp-Name"); got != "t-1" {
		t.Errorf("tasks/get: Mcp-Name %q (HTTP-M-40)", got)
	}
}

// A server that refuses the headers has changed its list: it is read again, and the call repeated once, with another id
// (HTTP-M-36, translation 12.3).
func TestHeaderMismatch(t *testing.T) {
	t.Parallel()
	list := toolsOf("t", `"region":{"type":"string"}`)
	r := newRemoteRig(t, nil)
	r.play(modernServer(answers{
		mcp.ToolsList: func(w http.ResponseWriter, q *seen) { list(w, q) },
		mcp.ToolsCall: func(w http.ResponseWriter, q *seen) {
			if q.Header.Get("Mcp-Param-Region") != "eu" {
				list = toolsOf("t", annotatedTool)
				sendError(w, q, 400, mcp.CodeHeaderMismatch, "")
				return
			}
			echoes(w, q)
		}}))
	r.call(mcp.ToolsCall, `"name":"t","arguments":{"region":"eu"}`).want(`"content":[]`)
	calls := r.all(method(mcp.ToolsCall))
	if len(calls) != 2 || string(calls[0].ID) == string(calls[1].ID) {
		t.Errorf("%d calls, ids %s and %s; want two ids", len(calls), calls[0].ID, calls[len(calls)-1].ID)
	}
}

// A second refusal is the bridge's fault, and no client's to mend (translation 11.3, 12.3).
func TestHeaderMismatchTwice(t *testing.T) {
	t.Parallel()
	r := newRemoteRig(t, modernServer(answers{
		mcp.ToolsCall:  func(w http.ResponseWriter, q *seen) { sendError(w, q, 400, mcp.CodeHeaderMismatch, `{"h":1}`) },
		mcp.PromptsGet: func(w http.ResponseWriter, q *seen) { sendError(w, q, 400, mcp.CodeHeaderMismatch, "") }}))
	r.call(mcp.ToolsCall, `"name":"t"`).want(`"code":-32603`, `"original":{"code":-32020,"data":{"h":1}}`)
	if n := len(r.all(method(mcp.ToolsCall))); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
	r.call(mcp.PromptsGet, `"name":"p"`).want(`"code":-32603`)
	if n := len(r.all(method(mcp.PromptsGet))); n != 1 {
		t.Errorf("%d prompts/get, want 1: there is nothing to mend", n)
	}
}

// A version that is refused although the server lists it is tried once more (VER-02).
func TestVersionRefusedOnce(t *testing.T) {
	t.Parallel()
	n := 0
	r := newRemoteRig(t, nil)
	r.play(modernServer(answers{mcp.PromptsGet: func(w http.ResponseWriter, q *seen) {
		if n++; n == 1 {
			sendError(w, q, 400, mcp.CodeUnsupportedProtocolVersion, `{"supported":["2026-07-28"],"requested":"2026-07-28"}`)
			return
		}
		echoes(w, q)
	}}))
	r.call(mcp.PromptsGet, `"name":"p"`).want(`"content":[]`)
}

// Headers that cannot be made are refused here, naming the argument, and nothing is sent (ENC-13, translation 12.3): the value's
// and the block's limits at n and n+1.
func TestHeadersRefused(t *testing.T) {
	t.Parallel()
	many := annotatedTool
	for i := range 5 {
		many += fmt.Sprintf(`,"p%d":{"type":"string","x-mcp-header":"P%d"}`, i, i)
	}
	r := newRemoteRig(t, modernServer(answers{mcp.ToolsList: toolsOf("t", many), mcp.ToolsCall: echoes}))
	value := func(n int) string { return strings.Repeat("v", n) }
	block := func(last int) string {
		args := ""
		for i := range 3 {
			args += fmt.Sprintf(`"p%d":"%s",`, i, value(8<<10))
		}
		return args + `"p3":"` + value(last) + `"`
	}
	fixed := 3*(len("Mcp-Param-P0")+(8<<10)) + len("Mcp-Param-P3") + len("Mcp-Protocol-Version2026-07-28") + len("Mcp-Methodtools/call") + len("Mcp-Namet")
	for _, tc := range []struct{ name, args, refusal string }{
		{"safe integer", `"n":9007199254740991`, ""},
		{"unsafe integer", `"n":9007199254740992`, `argument [\"n\"]`},
		{"twice", `"region":"a","region":"b"`, "given twice"},
		{"long value", `"region":"` + value(8<<10) + `"`, ""},
		{"longer value", `"region":"` + value(8<<10+1) + `"`, "Mcp-Param-Region would have 8193 bytes"},
		{"large block", block(32<<10 - fixed), ""},
		{"larger block", block(32<<10 - fixed + 1), "would have 32769 bytes"},
	} {
		before := len(r.all(method(mcp.ToolsCall)))
		c := r.call(mcp.ToolsCall, `"name":"t","arguments":{`+tc.args+`}`)
		if tc.refusal == "" {
			c.want(`"content":[]`)
			continue
		}
		c.want(`"code":-32602`, `"source":"bridge"`, tc.refusal)
		if len(r.all(method(mcp.ToolsCall))) != before {
			t.Errorf("%s: the call was sent", tc.name)
		}
	}
}

// A tool whose annotations no HTTP client may use is left off the list, with a warning, and cannot be called (XMH-11, translation
// 12.1, case 63). The same tool of a legacy server stays, without them (XMH-13).
func TestInvalidAnnotations(t *testing.T) {
	t.Parallel()
	bad := []string{"empty", `"a":{"type":"string","x-mcp-header":""}`, "colon", `"a":{"type":"string","x-mcp-header":"a:b"}`,
		"number", `"a":{"type":"number","x-mcp-header":"N"}`, "double", `"a":{"type":"string","x-mcp-header":"N"},"b":{"type":"string","x-mcp-header":"n"}`}
	list := toolsOf(append([]string{"good", annotatedTool}, bad...)...)
	r := newRemoteRig(t, modernServer(answers{mcp.ToolsList: list, mcp.ToolsCall: echoes}))
	got := r.call(mcp.ToolsList, "").want(`"name":"good"`, `"x-mcp-header":"Region"`)
	for _, name := range []string{"empty", "colon", "number", "double"} {
		if strings.Contains(got, `"name":"`+name) {
			t.Errorf("tool %s is listed", name)
		}
	}
	r.call(mcp.ToolsCall, `"name":"colon","arguments":{}`).want(`"code":-32602`, "tool is not offered")
	r.call(mcp.ToolsCall, `"name":"good","arguments":{"region":"eu"}`).want(`"content":[]`)
	if n := len(r.all(method(mcp.ToolsCall))); n != 1 {
		t.Errorf("%d calls were sent, want 1", n)
	}
	r.mu.Lock()
	warned := fmt.Sprint(r.events)
	r.mu.Unlock()
	if !strings.Contains(warned, "tool colon is left out") {
		t.Errorf("no warning: %s", warned)
	}
	old := newRemoteRig(t, legacyServer("2025-11-25", answers{mcp.ToolsList: list}))
	if got := old.call(mcp.ToolsList, "").want(`"name":"colon"`, `"name":"good"`); strings.Contains(got, "a:b") {
		t.Errorf("the annotation of a legacy server's tool stays: %s", got)
	}
}

// The list of tools is watched, so that a change is known before the next call; when the watch is cut, the next call reads the list and
// watches again (XMH-18, SUB-02).
func TestToolsWatched(t *testing.T) {
	t.Parallel()
	change, drop := make(chan struct{}), make(chan struct{})
	watching := strings.Replace(remoteDiscovery, `"tools":{}`, `"tools":{"listChanged":true}`, 1)
	r := newRemoteRig(t, modernServer(answers{
		mcp.Discover:  func(w http.ResponseWriter, q *seen) { sendResult(w, q, watching) },
		mcp.ToolsList: toolsOf("t", annotatedTool), mcp.ToolsCall: echoes,
		mcp.Listen: func(w http.ResponseWriter, q *seen) {
			openStream(w)
			meta := `"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(q.ID) + `}`
			sendEvent(w, "", `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},`+meta+`}}`)
			for {
				select {
				case <-change:
					sendEvent(w, "", `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{`+meta+`}}`)
				case <-drop:
					return
				case <-q.ctx.Done():
					return
				}
			}
		}}))
	call := func() { r.call(mcp.ToolsCall, `"name":"t","arguments":{"region":"eu"}`).want(`"content":[]`) }
	until := func(method string, n int) {
		t.Helper()
		for late := time.Now().Add(remotePatience); len(r.all(func(q *seen) bool { return q.Method == method })) < n; call() {
			if time.Now().After(late) {
				t.Fatalf("fewer than %d requests %s", n, method)
			}
		}
	}
	call()
	call()
	if n := len(r.all(method(mcp.ToolsList))); n != 1 {
		t.Errorf("the list was read %d times for two calls", n)
	}
	change <- struct{}{}
	until(mcp.ToolsList, 2)
	drop <- struct{}{}
	until(mcp.Listen, 2)
	until(mcp.ToolsList, 3)
}
