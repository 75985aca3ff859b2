package exchange

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mcpbridge/config"
	"mcpbridge/test/internal/e2e"
	"mcpbridge/test/internal/jscan"
)

// Header and body disagree (HTTP-M-20, HTTP-M-28): rows of TestHostile; here the case's own example, and names of headers
// in any case (HTTP-M-30).
func TestCase55HeaderAndBody(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.Modern(t, "0", "plain", "{}")
	before := len(b.Hub.Child(t, 0).Seen(t))
	_, body := e2e.ModernCall(`"x"`, "never", "{}", "")
	for _, h := range []e2e.Header{e2e.ModernHeader("tools/call", "plain"), e2e.ModernHeader("tools/call", "NEVER"), e2e.ModernHeader("tools/call", ""),
		{"Mcp-Protocol-Version": "2025-11-25", "Mcp-Method": "tools/call", "Mcp-Name": "never"}} {
		if r := b.Do(t, "POST", h, body); r.Status != 400 || r.Get(t, "error", "code") != "-32020" || r.Get(t, "id") != `"x"` {
			t.Errorf("%v: %d %s", h, r.Status, r.Body)
		}
	}
	if seen := b.Hub.Child(t, 0).Seen(t); len(seen) != before {
		t.Errorf("the server was sent %q", seen[before:])
	}
	w := post(modernCall(`"plain"`), "mCP-pROTOCOL-vERSION: 2026-07-28", "MCP-METHOD: tools/call", "mcp-name: plain")
	if r, _ := (&vectorBed{Bridge: b}).send(t, w); r.Status != 200 {
		t.Errorf("header names in odd case: %d %s", r.Status, r.Body)
	}
}

// Probing a legacy stdio server: whatever it says but the modern errors means initialize; a modern error never does
// (VER-08, VER-09, VER-20 to VER-25, FRM-19).
func TestCase59Probe(t *testing.T) {
	t.Parallel()
	for _, probe := range []string{"-32601", "-32602", "-32600", "-32700", "-32603", "-32001", "-32000", "0", "404", "null-id", "exit", "silent"} {
		t.Run(probe, func(t *testing.T) {
			t.Parallel()
			b := start(t, "-probe", probe)
			for range 2 {
				wantOK(t, b.Modern(t, "1", "plain", "{}"))
			}
			child := b.Hub.Child(t, 0)
			if first := child.Seen(t)[0]; string(jscan.Get(first, "method")) != `"server/discover"` {
				t.Errorf("the first line is %s (VER-20)", first)
			}
			want := 1
			if probe == "exit" {
				want = 2 // VER-24
				child = b.Hub.Child(t, 1)
			}
			if n := b.Hub.Started(); n != want {
				t.Errorf("%d processes were started, want %d", n, want)
			}
			child.Await(t, 0, `"initialize"`, `"2025-11-25"`)
			probes := 0
			for _, line := range child.Seen(t) {
				if bytes.Contains(line, []byte("server/discover")) {
					probes++
				}
			}
			if probes > 1 {
				t.Errorf("the server was probed %d times (VER-07)", probes)
			}
		})
	}
	t.Run("modern error", func(t *testing.T) {
		t.Parallel()
		b := start(t, "-probe", "unsupported")
		r := b.Modern(t, "1", "plain", "{}")
		if r.Status != 503 || r.Get(t, "error", "code") != "-32603" {
			t.Errorf("answered with %d %s", r.Status, r.Body)
		}
		for i := range b.Hub.Started() {
			for _, line := range b.Hub.Child(t, i).Seen(t) {
				if bytes.Contains(line, []byte(`"initialize"`)) {
					t.Errorf("the server was sent %s (VER-08)", line)
				}
			}
		}
	})
}

// A legacy client before a modern-only server, and a modern one before a legacy-only one: handshake, lists, calls and
// levels work, and each server sees its own era only (translation 2, 3; LEG-10).
func TestCase57OtherEra(t *testing.T) {
	t.Parallel()
	b := start(t, "-era", "modern")
	s := b.NewSession(t, "2025-11-25", `{"roots":{}}`)
	if got := s.Hello.Get(t, "result", "capabilities", "tools"); got == "" {
		t.Errorf("the handshake was answered with %s", s.Hello.Body)
	}
	for _, body := range []string{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"warning"}}`, `{"jsonrpc":"2.0","id":4,"method":"prompts/get","params":{"name":"greet"}}`} {
		r := s.Post(t, body)
		if r.Status != 200 || r.Get(t, "result") == "" || strings.Contains(string(r.Body), "resultType") || strings.Contains(string(r.Body), "ttlMs") {
			t.Errorf("%s was answered with %d %s", body, r.Status, r.Body)
		}
	}
	wantOK(t, s.Call(t, "5", "plain", "{}"))
	child := b.Hub.Child(t, b.Hub.Started()-1)
	child.Await(t, 0, `"tools/call"`, `"`+metaVersion+`":"2026-07-28"`, `"`+metaCaps+`":`, `"io.modelcontextprotocol/logLevel":"warning"`, `"`+metaInfo+`":{"name":"e2e","version":"1"}`)
	for _, line := range child.Seen(t) {
		switch m := string(jscan.Get(line, "method")); m {
		case `"ping"`, `"logging/setLevel"`, `"notifications/initialized"`:
			t.Errorf("the modern server was sent %s", line)
		}
	}

	b = start(t)
	r := b.Do(t, "POST", e2e.ModernHeader("server/discover", ""), []byte(modernMethod("server/discover")))
	if r.Status != 200 || r.Get(t, "result", "supportedVersions") != `["2026-07-28"]` || r.Get(t, "result", "resultType") != `"complete"` {
		t.Errorf("discovery was answered with %d %s", r.Status, r.Body)
	}
	h, body := e2e.ModernCall("1", "echo", "{}", `,"traceparent":"00-1-2-01"`)
	b.Do(t, "POST", h, body)
	line, _ := b.Hub.Child(t, 0).Await(t, 0, `"tools/call"`, `"traceparent":"00-1-2-01"`)
	if bytes.Contains(line, []byte("io.modelcontextprotocol/")) {
		t.Errorf("the legacy server was sent %s", line)
	}
}

// Missing _meta, unsupported version: the data says what is served (HTTP-M-21); the rest are rows of TestHostile.
func TestCase61UnsupportedVersion(t *testing.T) {
	t.Parallel()
	b := start(t)
	h := e2e.ModernHeader("tools/list", "")
	h["Mcp-Protocol-Version"] = "1900-01-01"
	r := b.Do(t, "POST", h, []byte(strings.ReplaceAll(modernList("1", ""), "2026-07-28", "1900-01-01")))
	if r.Status != 400 || r.Get(t, "error", "data", "supported") != `["2026-07-28"]` || r.Get(t, "error", "data", "requested") != `"1900-01-01"` {
		t.Errorf("answered with %d %s", r.Status, r.Body)
	}
}

// An invalid x-mcp-header of a stdio server is taken off, and the tool stays usable on every front (XMH-12).
func TestCase63InvalidAnnotation(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", "{}")
	for era, r := range map[string]*e2e.Reply{"modern": b.Do(t, "POST", e2e.ModernHeader("tools/list", ""), []byte(modernList("1", ""))),
		"legacy": s.Post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)} {
		var got struct {
			Result struct {
				Tools []struct {
					Name        string
					InputSchema json.RawMessage
				}
			}
		}
		if err := json.Unmarshal(r.Body, &got); err != nil {
			t.Fatal(err)
		}
		schemas := map[string]string{}
		for _, tool := range got.Result.Tools {
			schemas[tool.Name] = string(tool.InputSchema)
		}
		if schema, ok := schemas["spoilt"]; !ok || strings.Contains(schema, "x-mcp-header") {
			t.Errorf("%s: spoilt is shown as %q", era, schema)
		}
		if !strings.Contains(schemas["query"], `"x-mcp-header":"Region"`) {
			t.Errorf("%s: query is shown as %q", era, schemas["query"])
		}
	}
	wantOK(t, b.Modern(t, "2", "spoilt", `{"n":1}`))
	b.AwaitLog(t, "tool spoilt")
}

// Mirrored arguments are checked on every page of the tool list, against a list that is fetched once and again after a
// change (XMH-16, XMH-18, decision 11).
func TestMirroredArguments(t *testing.T) {
	t.Parallel()
	b := startWith(t, func(_ *config.Config, s *config.Server) {
		s.Mirror = map[string]map[string]string{"echo": {"city": "City"}}
	}, "-page", "3")
	call := func(tool, args, param, value string) *e2e.Reply {
		h, body := e2e.ModernCall("1", tool, args, "")
		if param != "" {
			h["Mcp-Param-"+param] = value
		}
		return b.Do(t, "POST", h, body)
	}
	for range 3 {
		wantOK(t, call("query", `{"region":"eu"}`, "Region", "eu"))
		wantOK(t, call("echo", `{"city":"東京"}`, "City", "=?base64?5p2x5Lqs?="))
	}
	fetched := 0
	for _, line := range b.Hub.Child(t, 0).Seen(t) {
		if bytes.Contains(line, []byte(`"tools/list"`)) {
			fetched++
		}
	}
	if fetched != 7 { // 21 tools, 3 on a page
		t.Errorf("%d requests for the list, want 7", fetched)
	}
	for _, bad := range []*e2e.Reply{call("query", `{"region":"eu"}`, "", ""), call("query", `{"region":"eu"}`, "Region", "us"), call("query", `{}`, "Region", "eu"),
		call("echo", `{"city":"x"}`, "", "")} {
		if bad.Status != 400 || bad.Get(t, "error", "code") != "-32020" {
			t.Errorf("answered with %d %s", bad.Status, bad.Body)
		}
	}
}

// Server answers initialize with an older version: the client is told, and the session works (VER-41, LEG-07, case 64).
func TestCase64OlderVersion(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18"} {
		b := start(t, "-version", version)
		s := b.NewSession(t, "2025-11-25", "{}")
		if s.Version != version {
			t.Errorf("server %s: the client is told %s", version, s.Version)
		}
		wantOK(t, s.Call(t, "1", "plain", "{}"))
		wantOK(t, b.Modern(t, "1", "plain", "{}"))
	}
	b := start(t)
	init := []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2027-01-01","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	r := b.Do(t, "POST", e2e.Header{"Mcp-Protocol-Version": "2027-01-01"}, init)
	if r.Status != 200 || r.Get(t, "result", "protocolVersion") != `"2025-11-25"` {
		t.Errorf("answered with %d %s", r.Status, r.Body)
	}
	h := e2e.Header{"Mcp-Session-Id": r.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2027-01-01"}
	if r := b.Do(t, "POST", h, []byte(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)); r.Status != 400 {
		t.Errorf("an unsupported header was answered with %d (HTTP-L-26)", r.Status)
	}
}

// Progress nobody asked for is dropped, as is progress after the answer (PRG-02, PRG-03, PRG-10).
func TestCase67UnaskedProgress(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", "{}")
	args := `{"tokens":["999","\"x\"","null","1.5","{}"],"count":1,"after":true}`
	h, body := e2e.ModernCall("1", "progress", args, `,"progressToken":"mine"`)
	for era, r := range map[string]*e2e.Reply{"modern": b.Do(t, "POST", h, body),
		"legacy": s.Post(t, string(e2e.LegacyCall("1", "progress", args, `,"_meta":{"progressToken":"mine"}`)))} {
		if len(r.Messages) != 2 || string(jscan.Get(r.Messages[0], "params", "progressToken")) != `"mine"` || r.Get(t, "result") == "" {
			t.Errorf("%s: the stream has %q", era, r.Messages)
		}
	}
	for era, r := range map[string]*e2e.Reply{"modern": b.Modern(t, "1", "progress", args), "legacy": s.Call(t, "1", "progress", args)} {
		if len(r.Messages) != 1 { // no token, no progress
			t.Errorf("%s without token: the stream has %q", era, r.Messages)
		}
	}
}

// A storm of progress reaches a client that reads, in order, without repeats, and never costs the answer (PRG-03, PRG-05).
func TestProgressStorm(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", "{}")
	args := `{"count":20000,"pad":50}`
	h, body := e2e.ModernCall("1", "progress", args, `,"progressToken":7`)
	for era, r := range map[string]*e2e.Reply{"modern": b.Do(t, "POST", h, body),
		"legacy": s.Post(t, string(e2e.LegacyCall("1", "progress", args, `,"_meta":{"progressToken":7}`)))} {
		last := 0
		for _, m := range r.Messages[:len(r.Messages)-1] {
			var got struct {
				Params struct{ ProgressToken, Progress int }
			}
			if err := json.Unmarshal(m, &got); err != nil || got.Params.ProgressToken != 7 || got.Params.Progress <= last {
				t.Fatalf("%s: %s after %d (%v)", era, m, last, err)
			}
			last = got.Params.Progress
		}
		if last != 20000 || r.Get(t, "result") == "" { // the newest is never merged away
			t.Errorf("%s: the last progress is %d, the answer %.100s", era, last, r.Last(t))
		}
	}
}

// A legacy server's question during a modern client's call that declared nothing: the server is refused at once, and
// nothing but the answer is on the stream (HTTP-M-10, FRM-15). Legacy clients: see TestQuestions. Modern clients that
// declare the feature need questions carried across eras, which the bridge does not have yet.
func TestCase68QuestionDuringModernCall(t *testing.T) {
	t.Parallel()
	for _, isolation := range []func(*config.Config, *config.Server){nil, shared} {
		b := startWith(t, isolation)
		stranger := b.NewSession(t, "2025-11-25", allFeatures)
		st := stranger.Listen(t, "")
		st.Next(t)
		begun := time.Now()
		for _, q := range questions {
			r := b.Modern(t, "1", "ask", `{"method":"`+q.method+`","params":{}}`)
			if len(r.Messages) != 1 || r.Get(t, "result", "structuredContent", "error", "code") != "-32601" {
				t.Errorf("%s: answered with %s", q.method, r.Body)
			}
		}
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		for i := range b.Hub.Started() {
			b.Hub.Child(t, i).Write(t, listChanged+"\n")
		}
		if e := st.Message(t); string(e.Data) != listChanged {
			t.Errorf("a session that has nothing to do with it got %s", e.Data)
		}
	}
	// A modern server that asks breaks its own rules: it is not answered, and nobody else is asked (FRM-16).
	b := start(t, "-era", "modern")
	r := b.Modern(t, "1", "ask", `{"method":"ping","id":77,"wait":false}`)
	if len(r.Messages) != 1 {
		t.Errorf("answered with %q", r.Messages)
	}
	wantOK(t, b.Modern(t, "2", "plain", "{}"))
	for _, line := range b.Hub.Child(t, 0).Seen(t) {
		if jscan.Get(line, "method") == nil {
			t.Errorf("the modern server was answered with %s", line)
		}
	}
}
