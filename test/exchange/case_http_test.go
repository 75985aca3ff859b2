package exchange

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpbridge/config"
	"mcpbridge/test/internal/e2e"
)

// Accept header strictness (HTTP-M-04).
func TestCase31Accept(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", "{}")
	for _, tt := range []struct{ accept, want string }{
		{"*/*", "application/json"}, {"", "application/json"}, {"application/json", "application/json"}, {"application/*", "application/json"},
		{"text/event-stream", "text/event-stream"}, {"text/*;q=0.5, application/json", "application/json"}, {"text/event-stream, application/json", "application/json"},
		{"Application/JSON;q=0.9", "application/json"}, {"text/html", ""}, {"application/json;q=0, text/event-stream", "text/event-stream"},
	} {
		h := e2e.ModernHeader("tools/list", "")
		h["Accept"] = tt.accept
		l := s.Header()
		l["Accept"] = tt.accept
		for era, r := range map[string]*e2e.Reply{"modern": b.Do(t, "POST", h, []byte(modernList("1", ""))),
			"legacy": b.Do(t, "POST", l, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))} {
			if tt.want == "" {
				if r.Status != 406 {
					t.Errorf("%s, Accept %q: status %d, want 406", era, tt.accept, r.Status)
				}
			} else if r.Status != 200 || r.Header.Get("Content-Type") != tt.want || r.Get(t, "result", "tools") == "" {
				t.Errorf("%s, Accept %q: %d %s, want %s", era, tt.accept, r.Status, r.Header.Get("Content-Type"), tt.want)
			}
		}
	}
}

// A client that takes JSON only gets the answer and none of the notifications before it (HTTP-M-04).
func TestJSONOnlyDropsNotifications(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", "{}")
	h, body := e2e.ModernCall("1", "progress", `{"count":3}`, `,"progressToken":"t"`)
	h["Accept"] = "application/json"
	l := s.Header()
	l["Accept"] = "application/json"
	for era, r := range map[string]*e2e.Reply{"modern": b.Do(t, "POST", h, body),
		"legacy": b.Do(t, "POST", l, e2e.LegacyCall("1", "progress", `{"count":3}`, `,"_meta":{"progressToken":"t"}`))} {
		if r.Header.Get("Content-Type") != "application/json" || r.Get(t, "result") == "" {
			t.Errorf("%s: %s %s", era, r.Header.Get("Content-Type"), r.Body)
		}
	}
}

// Content-Type parameters (HTTP-M-05).
func TestCase32ContentType(t *testing.T) {
	t.Parallel()
	b := start(t)
	for value, want := range map[string]int{"application/json; charset=utf-8": 200, "Application/JSON;charset=UTF-8": 200, "application/json": 200,
		"text/plain": 415, "application/x-www-form-urlencoded": 415, "application/jsonp": 415, "": 415} {
		h := e2e.ModernHeader("tools/list", "")
		h["Content-Type"] = value
		if r := b.Do(t, "POST", h, []byte(modernList("1", ""))); r.Status != want {
			t.Errorf("%q: status %d, want %d", value, r.Status, want)
		}
	}
}

// Body limits, at n and n+1, with and without a stated length (SEC-07).
func TestCase35BodyLimit(t *testing.T) {
	t.Parallel()
	b := start(t)
	big := `{"x":"` + strings.Repeat("a", 150_000) + `"}`
	if r := b.Modern(t, "1", "echo", big); r.Status != 200 || r.Get(t, "result", "structuredContent") != big {
		t.Errorf("150 kB: status %d", r.Status)
	}
	const limit = 5000
	b = startWith(t, func(c *config.Config, _ *config.Server) { c.Limits.BodyBytes = limit })
	list := modernList("1", "")
	for _, chunked := range []bool{false, true} {
		for size, want := range map[int]int{limit: 200, limit + 1: 413, 10 * limit: 413} {
			body := strings.Repeat(" ", size-len(list)) + list
			req, _ := http.NewRequest("POST", b.URL, strings.NewReader(body))
			if chunked {
				req.ContentLength = -1
			}
			for k, v := range e2e.ModernHeader("tools/list", "") {
				req.Header.Set(k, v)
			}
			req.Header.Set("Content-Type", "application/json")
			resp, err := b.Client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			r, err := e2e.ReadReply(resp)
			if err != nil || r.Status != want {
				t.Fatalf("%d bytes, chunked %v: status %d (%v), want %d", size, chunked, r.Status, err, want)
			}
			if want == 413 && (!strings.Contains(string(r.Body), "limits.bodyBytes") || !strings.Contains(string(r.Body), "5000") || r.Get(t, "error", "code") != "-32600") {
				t.Errorf("413 with %s", r.Body)
			}
		}
	}
}

// Idle streams cut by proxies: life at once, and comments all along (HTTP-M-13, HTTP-M-14).
func TestCase37IdleStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: two keep-alives on silent streams take half a minute; run go test -run TestCase37 ./test/exchange")
	}
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", "{}")
	h := e2e.ModernHeader("subscriptions/listen", "")
	modern := b.Open(t, "POST", h, []byte(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{},`+env+`}}`))
	for name, st := range map[string]*e2e.Stream{"listen": modern, "GET": s.Listen(t, "")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if st.Header.Get("Content-Type") != "text/event-stream" || st.Header.Get("Cache-Control") != "no-cache" || st.Header.Get("X-Accel-Buffering") != "no" {
				t.Errorf("headers %v", st.Header)
			}
			begun := time.Now()
			if _, ok := st.Next(t); !ok || time.Since(begun) > time.Second {
				t.Errorf("the first byte took %v", time.Since(begun))
			}
			last := time.Now()
			for comments := 0; comments < 2; {
				e, ok := st.Next(t) // gives up after 15 s and a little
				switch {
				case !ok:
					t.Fatal("the stream has ended")
				case e.Note:
					comments++
				case !bytes.Contains(e.Data, []byte("acknowledged")) && !e.Bare:
					t.Errorf("an idle stream carries %s", e.Data)
				}
				if pause := time.Since(last); pause > 16*time.Second {
					t.Errorf("%v without a sign of life", pause)
				}
				last = time.Now()
			}
		})
	}
}

// CORS base case (ORG-07).
func TestCase39Preflight(t *testing.T) {
	t.Parallel()
	b := startWith(t, func(c *config.Config, _ *config.Server) { c.AllowedOrigins = []string{"https://app.example"} })
	asked := "authorization, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, last-event-id, mcp-param-region"
	h := e2e.Header{"Origin": "https://app.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": asked}
	r := b.Do(t, "OPTIONS", h, nil)
	if r.Status != 204 || r.Header.Get("Access-Control-Allow-Origin") != "https://app.example" || r.Header.Get("Access-Control-Max-Age") == "" ||
		!strings.Contains(strings.Join(r.Header.Values("Vary"), ","), "Origin") {
		t.Errorf("%d %v", r.Status, r.Header)
	}
	allowed := strings.ToLower(r.Header.Get("Access-Control-Allow-Headers"))
	for _, name := range strings.Split(asked, ", ") {
		if !strings.Contains(allowed, name) {
			t.Errorf("%s is not in %q", name, allowed)
		}
	}
	for _, m := range []string{"GET", "POST", "DELETE"} {
		if !strings.Contains(r.Header.Get("Access-Control-Allow-Methods"), m) {
			t.Errorf("%s is not in %q", m, r.Header.Get("Access-Control-Allow-Methods"))
		}
	}
	if r.Header.Get("Access-Control-Allow-Origin") == "*" && r.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("credentials for everybody")
	}
	init := e2e.Header{"Origin": "https://app.example"}
	r = b.Do(t, "POST", init, []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
	if r.Status != 200 || !strings.Contains(strings.ToLower(r.Header.Get("Access-Control-Expose-Headers")), "mcp-session-id") ||
		r.Header.Get("Access-Control-Allow-Origin") != "https://app.example" {
		t.Errorf("%d %v", r.Status, r.Header)
	}
}

// A cut request body is no fault of the bridge's, and no business of the server's.
func TestCase42CutBody(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.Modern(t, "1", "plain", "{}")
	child := b.Hub.Child(t, 0)
	before := len(child.Seen(t))
	for _, half := range []bool{true, false} { // half: the client still reads
		conn, err := net.Dial("tcp", b.Addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\":\"2.0\",\"i", b.Addr)
		if half {
			_ = conn.(*net.TCPConn).CloseWrite()
			_ = conn.SetDeadline(time.Now().Add(e2e.Patience))
			if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && resp.StatusCode != 400 {
				t.Errorf("status %d, want 400", resp.StatusCode)
			}
		}
		_ = conn.Close()
	}
	wantOK(t, b.Modern(t, "2", "plain", "{}"))
	if seen := child.Seen(t); len(seen) != before+1 {
		t.Errorf("the server was sent %q", seen[before:])
	}
	for _, bad := range []string{`"status":5`, "panic", "goroutine"} {
		if strings.Contains(b.Log(), bad) {
			t.Errorf("the log has %s:\n%s", bad, b.Log())
		}
	}
}

// localhost is ::1 as well.
func TestCase43Localhost(t *testing.T) {
	t.Parallel()
	b := startWith(t, func(c *config.Config, _ *config.Server) { c.Listen = []string{"localhost:0"} })
	if len(b.Listen) == 1 {
		t.Log("this machine has no IPv6")
	}
	for _, addr := range b.Listen {
		for _, host := range []string{addr, "localhost:" + addr[strings.LastIndex(addr, ":")+1:]} {
			req, _ := http.NewRequest("POST", "http://"+addr+"/servers/default/mcp", strings.NewReader(modernList("1", "")))
			req.Host = host
			req.Header.Set("Content-Type", "application/json")
			for k, v := range e2e.ModernHeader("tools/list", "") {
				req.Header.Set(k, v)
			}
			resp, err := b.Client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := e2e.ReadReply(resp); err != nil || r.Status != 200 {
				t.Errorf("%s with Host %s: status %d (%v)", addr, host, r.Status, err)
			}
		}
	}
}
