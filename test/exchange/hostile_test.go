package exchange

import (
	"fmt"
	"strings"
	"testing"

	"mcpbridge/config"
	"mcpbridge/test/internal/e2e"
	"mcpbridge/test/internal/jscan"
)

// hostile is one request that must not pass, with the ledger row that says so.
type hostile struct {
	row    string
	w      *wire
	status int
	code   int    // 0: no JSON-RPC body is asked for
	id     string // raw id the error must carry, "" for none
}

// post builds a POST. Headers read "Name: value" and stand beside the usual ones; "-Name" leaves a usual one out.
func post(body string, headers ...string) *wire { return verb("POST", body, headers...) }

func verb(method, body string, headers ...string) *wire {
	w := &wire{Method: method, BodyText: &body}
	usual := [][2]string{{"Content-Type", "application/json"}, {"Accept", "application/json, text/event-stream"}}
	for _, u := range usual {
		if !contains(headers, "-"+u[0]) {
			w.Headers = append(w.Headers, u)
		}
	}
	for _, h := range headers {
		if name, value, ok := strings.Cut(h, ": "); ok {
			w.Headers = append(w.Headers, [2]string{name, value})
		}
	}
	return w
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// env is the envelope of a modern request that nothing is wrong with.
var env = e2e.Envelope("{}", "")

// modernList is a modern tools/list that nothing is wrong with, save what is put in.
func modernList(id, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list","params":{` + params + env + `}}`
}

func modernCall(name string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":` + name + `,"arguments":{},` + env + `}}`
}

func modernMethod(method string) string {
	return `{"jsonrpc":"2.0","id":"m","method":"` + method + `","params":{` + env + `}}`
}

const (
	versionHeader = "MCP-Protocol-Version: 2026-07-28"
	listHeader    = "Mcp-Method: tools/list"
	callHeader    = "Mcp-Method: tools/call"
	legacyHeader  = "MCP-Protocol-Version: 2025-11-25"
	bodyLimit     = 100_000
)

// framingRows are the rows of ledger section 1 that a client can break.
func framingRows(session, session03 string) []hostile {
	m := []string{versionHeader, listHeader}
	var rows []hostile
	add := func(row, body string, status, code int, id string, headers ...string) {
		rows = append(rows, hostile{row, post(body, headers...), status, code, id})
	}
	add("FRM-01 old jsonrpc", `{"jsonrpc":"1.0","id":1,"method":"tools/list","params":{`+env+`}}`, 400, -32600, "1", m...)
	add("FRM-01 no jsonrpc", `{"id":1,"method":"tools/list","params":{`+env+`}}`, 400, -32600, "1", m...)
	add("FRM-01 legacy", `{"jsonrpc":2.0,"id":1,"method":"tools/list"}`, 400, -32600, "1", session)
	add("FRM-02 bad byte", modernList("1", "\"x\":\"\xff\","), 400, -32700, "", m...)
	add("FRM-02 overlong", modernList("1", "\"x\":\"\xc0\xaf\","), 400, -32700, "", m...)
	add("FRM-02 surrogate bytes", modernList("1", "\"x\":\"\xed\xa0\x80\","), 400, -32700, "", m...)
	add("FRM-02 legacy", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"x\":\"\xfe\"}}", 400, -32700, "", session)
	for _, id := range []string{"null", "true", "1.5", "{}", "[]", "1e400", "-0.1"} {
		add("FRM-08 id "+id, modernList(id, ""), 400, -32600, "", m...)
		add("FRM-08 legacy id "+id, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/list"}`, 400, -32600, "", session)
	}
	for _, both := range []string{`"result":{},"error":{"code":1,"message":"x"}`, `"error":{"code":"1","message":"x"}`, `"error":{"code":1}`, `"error":5`, `"x":1`} {
		add("FRM-13 "+both, `{"jsonrpc":"2.0","id":"mb-1",`+both+`}`, 400, -32600, "", session)
	}
	add("FRM-15 response of a modern client", `{"jsonrpc":"2.0","id":1,"result":{}}`, 400, -32600, "", versionHeader)
	add("FRM-16 response without session", `{"jsonrpc":"2.0","id":1,"result":{}}`, 400, -32600, "")
	for i, bad := range []string{"", " ", "{", `{"jsonrpc":"2.0"`, `{"a":1}}`, `{} {}`, `{"a":01}`, `{'a':1}`, "{\"a\":\"\x01\"}", `{"a":nul}`, `{"a":1,}`, "\x00", "\ufeff\ufeff{}",
		`{"a":"\x"}`, `{"a":"\ud800"}`, `{"a":+1}`, `{"a":.5}`, `NaN`, `{"a":1}/**/`} {
		add(fmt.Sprintf("FRM-17 no JSON %d", i), bad, 400, -32700, "", m...)
		add(fmt.Sprintf("FRM-17 no JSON in a session %d", i), bad, 400, -32700, "", session)
	}
	for _, bad := range []string{`"x"`, "1", "null", "true", "{}", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1}`} {
		add("FRM-17 no message "+bad, bad, 400, -32600, "-", m...)
	}
	add("FRM-17 method is no string", `{"jsonrpc":"2.0","id":1,"method":5,"params":{`+env+`}}`, 400, -32600, "1", m...)
	add("FRM-17 params are no object", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}`, 400, -32600, "1", session)
	add("FRM-23 array", `[`+modernList("1", "")+`]`, 400, -32600, "", m...)
	add("FRM-23 array after space", " \n["+modernList("1", "")+`]`, 400, -32600, "", m...)
	add("FRM-23 array in a session of today", `[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`, 400, -32600, "", session)
	add("FRM-23 empty array", `[]`, 400, -32600, "", session03)
	add("FRM-24 modern member", `[`+modernList("1", "")+`]`, 400, -32600, "", session03)
	add("FRM-33 too deep", modernList("1", `"x":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+`,`), 400, -32700, "", m...)
	add("FRM-33 open brackets", strings.Repeat(`{"a":[`, 15_000), 400, -32700, "", m...)
	for _, dup := range []string{`"jsonrpc":"2.0",`, `"id":1,`, `"id":2,`, `"method":"tools/call",`, `"params":{},`, `"\u006dethod":"x",`} {
		add("FRM-34 twice "+dup, `{`+dup+modernList("1", "")[1:], 400, -32600, "-", m...)
	}
	add("FRM-34 name twice", modernCall(`"plain","name":"echo"`), 400, -32600, "1", versionHeader, callHeader, "Mcp-Name: plain")
	add("FRM-34 _meta twice", modernList("1", `"_meta":{},`), 400, -32600, "1", m...)
	add("FRM-34 key of _meta twice", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+e2e.Envelope("{}", `,"`+metaVersion+`":"2026-07-28"`)+`}}`, 400, -32600, "1", m...)
	add("FRM-34 legacy", `{"jsonrpc":"2.0","id":1,"id":1,"method":"tools/list"}`, 400, -32600, "-", session)
	return rows
}

// modernRows are the rows of ledger section 4 that a client can break.
func modernRows(session string) []hostile {
	m := []string{versionHeader, listHeader}
	call := []string{versionHeader, callHeader}
	list := modernList("1", "")
	rows := []hostile{
		{"HTTP-M-04 nothing acceptable", post(list, versionHeader, listHeader, "-Accept", "Accept: text/html"), 406, -32600, ""},
		{"HTTP-M-04 both refused", post(list, versionHeader, listHeader, "-Accept", "Accept: application/json;q=0, text/event-stream;q=0.0"), 406, -32600, ""},
		{"HTTP-M-04 listen without stream", post(modernMethod("subscriptions/listen"), versionHeader, "Mcp-Method: subscriptions/listen", "-Accept", "Accept: application/json"), 406, -32600, `"m"`},
		{"HTTP-M-05 text", post(list, versionHeader, listHeader, "-Content-Type", "Content-Type: text/plain"), 415, -32600, ""},
		{"HTTP-M-05 none", post(list, versionHeader, listHeader, "-Content-Type"), 415, -32600, ""},
		{"HTTP-M-05 twice", post(list, versionHeader, listHeader, "Content-Type: application/json"), 415, -32600, ""},
		{"HTTP-M-05 compressed", post(list, versionHeader, listHeader, "Content-Encoding: gzip"), 415, -32600, ""},
		{"HTTP-M-06 notification of two versions", post(`{"jsonrpc":"2.0","method":"notifications/x","params":{`+env+`}}`, "MCP-Protocol-Version: 2025-11-25"), 400, -32020, ""},
		{"HTTP-M-19 no version header", post(list, listHeader), 400, -32020, "1"},
		{"HTTP-M-20 other version header", post(list, listHeader, legacyHeader), 400, -32020, "1"},
		{"HTTP-M-21 unsupported", post(strings.ReplaceAll(list, "2026-07-28", "2099-01-01"), listHeader, "MCP-Protocol-Version: 2099-01-01"), 400, -32022, "1"},
		{"META-13 legacy version in _meta", post(strings.ReplaceAll(list, "2026-07-28", "2025-11-25"), listHeader, legacyHeader), 400, -32022, "1"},
		{"HTTP-M-22 neither header nor envelope", post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), 400, -32600, "1"},
		{"META-03 header without envelope", post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, m...), 400, -32602, "1"},
		{"META-03 no params at all", post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, m...), 400, -32602, "1"},
		{"META-05 capabilities are null", post(strings.Replace(list, `Capabilities":{}`, `Capabilities":null`, 1), m...), 400, -32602, "1"},
		{"META-05 version is a number", post(strings.Replace(list, `"2026-07-28"`, `20260728`, 1), m...), 400, -32602, "1"},
		{"HTTP-M-25 no method header", post(list, versionHeader), 400, -32020, "1"},
		{"HTTP-M-25 other method", post(list, versionHeader, callHeader), 400, -32020, "1"},
		{"HTTP-M-25 case", post(list, versionHeader, "Mcp-Method: Tools/List"), 400, -32020, "1"},
		{"HTTP-M-27 encoded method", post(list, versionHeader, "Mcp-Method: =?base64?dG9vbHMvbGlzdA==?="), 400, -32020, "1"},
		{"HTTP-M-26 no name", post(modernCall(`"plain"`), call...), 400, -32020, "1"},
		{"HTTP-M-28 other name", post(modernCall(`"never"`), versionHeader, callHeader, "Mcp-Name: plain"), 400, -32020, "1"},
		{"HTTP-M-29 broken sentinel", post(modernCall(`"plain"`), versionHeader, callHeader, "Mcp-Name: =?base64?cGxhaW4?="), 400, -32020, "1"},
		{"HTTP-M-32 name twice", post(modernCall(`"plain"`), versionHeader, callHeader, "Mcp-Name: plain", "Mcp-Name: plain"), 400, -32020, "1"},
		{"HTTP-M-32 version twice", post(list, versionHeader, versionHeader, listHeader), 400, -32020, "1"},
		{"HTTP-M-32 method twice", post(list, versionHeader, listHeader, callHeader), 400, -32020, "1"},
		{"HTTP-M-33 raw UTF-8", post(modernCall(`"天気"`), versionHeader, callHeader, "Mcp-Name: 天気"), 400, -32020, "1"},
		{"HTTP-M-38 GET", verb("GET", "", versionHeader), 405, -32600, ""},
		{"HTTP-M-38 DELETE", verb("DELETE", "", versionHeader), 405, -32600, ""},
		{"HTTP-M-40 other task", post(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"T1",`+e2e.Envelope(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, "")+`}}`,
			versionHeader, "Mcp-Method: tasks/get", "Mcp-Name: T2"), 400, -32020, "1"},
		{"HTTP-M-41 version before support", post(strings.ReplaceAll(list, "2026-07-28", "2099-01-01"), m...), 400, -32020, "1"},
		{"HTTP-M-41 header before method", post(modernMethod("ping"), m...), 400, -32020, `"m"`},
		{"HTTP-M-42 arguments are no object", post(strings.Replace(modernCall(`"plain"`), `"arguments":{}`, `"arguments":[1]`, 1), versionHeader, callHeader, "Mcp-Name: plain"), 400, -32602, "1"},
		{"HTTP-M-01 PUT", verb("PUT", list, m...), 405, -32600, ""},
		{"HTTP-M-01 PATCH", verb("PATCH", list, m...), 405, -32600, ""},
		{"ORG-02 foreign origin", post(list, versionHeader, listHeader, "Origin: https://evil.example"), 403, -32600, ""},
		{"ORG-02 foreign origin, GET", verb("GET", "", session, "Origin: https://evil.example"), 403, -32600, ""},
		{"ORG-02 foreign origin, DELETE", verb("DELETE", "", session, "Origin: https://evil.example"), 403, -32600, ""},
		{"ORG-02 foreign origin, OPTIONS", verb("OPTIONS", "", "Origin: https://evil.example", "Access-Control-Request-Method: POST"), 403, -32600, ""},
		{"ORG-03 null origin", post(list, versionHeader, listHeader, "Origin: null"), 403, -32600, ""},
		{"ORG-03 origin by prefix", post(list, versionHeader, listHeader, "Origin: http://127.0.0.1.evil.example"), 403, -32600, ""},
		{"ORG-04 foreign host", post(list, versionHeader, listHeader, "Host: evil.example.com"), 403, -32600, ""},
		{"HTTP-L-20 no session", post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, legacyHeader), 400, -32600, "1"},
		{"HTTP-L-21 unknown session", post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Session-Id: nope"), 404, -32600, "1"},
		{"HTTP-L-26 unknown version", post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, session, "MCP-Protocol-Version: 1900-01-01"), 400, -32600, "1"},
		{"LEG-06 second initialize", post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, session), 400, -32600, "1"},
		{"SEC-07 too large", post(strings.Repeat(" ", bodyLimit+1-len(list))+list, m...), 413, -32600, ""},
	}
	for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/result", "tasks/list"} {
		rows = append(rows, hostile{"HTTP-M-23 " + method, post(modernMethod(method), versionHeader, "Mcp-Method: "+method), 404, -32601, `"m"`})
	}
	other := post(list, m...)
	other.Path = "/mcp/"
	return append(rows, hostile{"HTTP-M-01 other path", other, 404, 0, ""})
}

// Bad input gets the status and the code the ledger states, the server never sees it, and the next good request of
// either era works (issue acceptance 9).
func TestHostile(t *testing.T) {
	t.Parallel()
	b := &vectorBed{sessions: map[string]*e2e.Session{}}
	b.Bridge = startWith(t, func(c *config.Config, s *config.Server) {
		shared(c, s)
		c.Limits.BodyBytes = bodyLimit
	})
	s := b.NewSession(t, "2025-11-25", "{}")
	old := b.NewSession(t, "2025-03-26", "{}")
	good := func(t *testing.T) {
		t.Helper()
		if r := b.Modern(t, "1", "plain", "{}"); r.Status != 200 || r.Get(t, "result", "resultType") != `"complete"` {
			t.Fatalf("the next good request fails: %d %s", r.Status, r.Body)
		}
		if r := s.Call(t, "1", "plain", "{}"); r.Status != 200 || r.Get(t, "result", "content") == "" {
			t.Fatalf("the next good request of a session fails: %d %s", r.Status, r.Body)
		}
	}
	good(t)
	rows := append(framingRows("Mcp-Session-Id: "+s.ID, "Mcp-Session-Id: "+old.ID), modernRows("Mcp-Session-Id: "+s.ID)...)
	for _, row := range rows {
		t.Run(row.row, func(t *testing.T) {
			before := b.seen(t)
			r, _ := b.send(t, row.w)
			row.check(t, r)
			good(t)
			if seen := b.since(t, before); len(seen) != 2 {
				t.Errorf("the server was sent %q, want the two good calls", seen)
			}
		})
	}
}

func (h *hostile) check(t *testing.T, r *e2e.Reply) {
	t.Helper()
	if r.Status != h.status {
		t.Errorf("status %d, want %d: %s", r.Status, h.status, r.Body)
	}
	if r.Status == 405 && r.Header.Get("Allow") == "" {
		t.Error("405 without Allow")
	}
	if h.code == 0 || len(r.Body) == 0 {
		if h.code != 0 {
			t.Errorf("no body, want code %d", h.code)
		}
		return
	}
	if got := string(jscan.Get(r.Body, "error", "code")); got != fmt.Sprint(h.code) {
		t.Errorf("code %s, want %d: %s", got, h.code, r.Body)
	}
	if got := string(jscan.Get(r.Body, "id")); h.id != "-" && got != h.id && !(h.id == "" && got == "null") {
		t.Errorf("id %q, want %q: %s", got, h.id, r.Body)
	}
}

// Members of a 2025-03-26 batch are judged one by one (FRM-24, FRM-25, HTTP-L-30, translation 17.4).
func TestHostileBatchMembers(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-03-26", "{}")
	r := s.Post(t, `[{"jsonrpc":"2.0","id":1,"method":"ping"}, 5, {"jsonrpc":"1.0","id":2,"method":"ping"},
		{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}}, {"jsonrpc":"2.0","method":"notifications/x"},
		{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"n":1.10}}}, {"jsonrpc":"2.0","id":4.5,"method":"ping"}]`)
	want := map[string]string{"1": "", "2": "-32600", "3": "-32600", "4": ""}
	anonymous := 0
	for _, m := range batchMembers(t, r) {
		id, code := string(jscan.Get(m, "id")), string(jscan.Get(m, "error", "code"))
		if expected, ok := want[id]; ok && code == expected {
			delete(want, id)
		} else if (id == "" || id == "null") && code == "-32600" {
			anonymous++
		} else {
			t.Errorf("unexpected member %s", m)
		}
	}
	if len(want) > 0 || anonymous != 2 {
		t.Errorf("missing answers to %v, %d errors without id, want 2; answer: %s", want, anonymous, r.Body)
	}
	for _, line := range b.Hub.Child(t, 0).Seen(t) {
		if strings.Contains(string(line), `"1.0"`) || strings.HasPrefix(string(line), "[") {
			t.Errorf("the server was sent %q", line)
		}
	}
}

// batchMembers are the answers to a batch, from an array or an event stream.
func batchMembers(t *testing.T, r *e2e.Reply) (list [][]byte) {
	t.Helper()
	for _, m := range r.Messages {
		if len(m) > 0 && m[0] == '[' {
			for _, kid := range parseNode(string(m)).kids {
				list = append(list, []byte(kid.String()))
			}
		} else {
			list = append(list, m)
		}
	}
	return list
}
