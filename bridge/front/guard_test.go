package front

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func getFrom(host string, origins ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Host = host
	for _, o := range origins {
		r.Header.Add("Origin", o)
	}
	return r
}

func TestGuardHost(t *testing.T) { // ORG-04, cases 43, 80
	loopback := &Guard{LoopbackOnly: true}
	listed := &Guard{LoopbackOnly: true, AllowedHosts: []string{"mcp.example", "dev.example:9000", "any.example:*", "[2001:db8::1]:*"}}
	public := &Guard{}
	publicListed := &Guard{AllowedHosts: []string{"mcp.example"}}
	tests := []struct {
		name  string
		guard *Guard
		host  string
		ok    bool
	}{
		{"localhost", loopback, "localhost", true},
		{"localhost with port", loopback, "LocalHost:1", true},
		{"localhost as a full name", loopback, "localhost.:8420", true},
		{"127.0.0.1", loopback, "127.0.0.1:8420", true},
		{"all of 127/8", loopback, "127.3.2.1", true},
		{"::1", loopback, "[::1]:8420", true},
		{"::1 without port", loopback, "[::1]", true},
		{"mapped loopback", loopback, "[::ffff:127.0.0.1]:1", true},
		{"foreign", loopback, "evil.example", false},
		{"foreign with port", loopback, "evil.example:8420", false},
		{"prefix", loopback, "localhost.evil.example", false},
		{"suffix", loopback, "notlocalhost", false},
		{"below localhost", loopback, "a.localhost", false},
		{"user information", loopback, "localhost@evil.example", false},
		{"unspecified address", loopback, "0.0.0.0:8420", false},
		{"private address", loopback, "192.168.1.2:8420", false},
		{"old spelling of an address", loopback, "127.1", false},
		{"bare IPv6", loopback, "::1", false},
		{"zone", loopback, "[::1%25lo]:1", false},
		{"name in brackets", loopback, "[localhost]", false},
		{"open bracket", loopback, "[::1", false},
		{"bytes behind the bracket", loopback, "[::1]evil:1", false},
		{"two ports", loopback, "localhost:1:2", false},
		{"port is no number", loopback, "localhost:x", false},
		{"empty port", loopback, "localhost:", false},
		{"five digits", loopback, "localhost:65535", true},
		{"six digits", loopback, "localhost:655350", false},
		{"empty", loopback, "", false},

		{"listed", listed, "mcp.example", true},
		{"listed, other case", listed, "MCP.Example", true},
		{"listed, default ports", listed, "mcp.example:443", true},
		{"listed without port", listed, "mcp.example:8443", false},
		{"listed, subdomain", listed, "a.mcp.example", false},
		{"listed port", listed, "dev.example:9000", true},
		{"other port", listed, "dev.example:9001", false},
		{"no port where one is listed", listed, "dev.example", false},
		{"any port", listed, "any.example:5", true},
		{"any port, none", listed, "any.example", true},
		{"listed IPv6", listed, "[2001:db8::1]:7", true},
		{"loopback beside a list", listed, "localhost", true},

		{"public without list", public, "whatever.example", true},
		{"public with list", publicListed, "whatever.example", false},
		{"public with list, listed", publicListed, "mcp.example", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.guard.Check(getFrom(tt.host))
			if (err == nil) != tt.ok {
				t.Fatalf("Host %q: %v, want allowed %v", tt.host, err, tt.ok)
			}
			if err != nil && (err.Status != 403 || err.ID != nil || !strings.Contains(err.Message, "Host") || !strings.Contains(err.Message, "allowedHosts")) {
				t.Errorf("refusal %+v does not name header and setting with 403", err)
			}
		})
	}
}

func TestGuardOrigin(t *testing.T) { // ORG-01..03
	g := &Guard{LoopbackOnly: true, AllowedOrigins: []string{"https://App.example", "http://dev.example:3000", "https://[2001:db8::1]", "vscode-webview://abc"}}
	public := &Guard{AllowedOrigins: g.AllowedOrigins}
	null := &Guard{LoopbackOnly: true, AllowedOrigins: []string{"null"}}
	tests := []struct {
		name    string
		guard   *Guard
		origins []string
		ok      bool
	}{
		{"none", g, nil, true},
		{"listed", g, []string{"https://app.example"}, true},
		{"host in capitals", g, []string{"https://APP.EXAMPLE"}, true},
		{"default port", g, []string{"https://app.example:443"}, true},
		{"port of the other scheme", g, []string{"https://app.example:80"}, false},
		{"other port", g, []string{"https://app.example:8443"}, false},
		{"other scheme", g, []string{"http://app.example"}, false},
		{"longer", g, []string{"https://app.example.evil.example"}, false},
		{"user information", g, []string{"https://app.example@evil.example"}, false},
		{"path", g, []string{"https://app.example/x"}, false},
		{"listed port", g, []string{"http://dev.example:3000"}, true},
		{"listed port left out", g, []string{"http://dev.example"}, false},
		{"IPv6", g, []string{"https://[2001:db8::1]:443"}, true},
		{"other schemes", g, []string{"vscode-webview://abc"}, true},
		{"twice", g, []string{"https://app.example", "https://app.example"}, false},
		{"two in one", g, []string{"https://app.example, https://app.example"}, false},
		{"empty", g, []string{""}, false},
		{"null", g, []string{"null"}, false},
		{"null listed", null, []string{"null"}, true},
		{"own", g, []string{"http://127.0.0.1:8420"}, true},
		{"own name", g, []string{"https://localhost"}, true},
		{"own IPv6", g, []string{"http://[::1]:1"}, true},
		{"own with another scheme", g, []string{"ftp://localhost"}, false},
		{"looks like own", g, []string{"http://localhost.evil.example"}, false},
		{"loopback page, public listener", public, []string{"http://localhost:8420"}, false},
		{"listed, public listener", public, []string{"https://app.example"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
				r := getFrom("localhost", tt.origins...)
				r.Method = method
				err := tt.guard.Check(r)
				if (err == nil) != tt.ok {
					t.Fatalf("%s from %q: %v, want allowed %v", method, tt.origins, err, tt.ok)
				}
				if err != nil && (err.Status != 403 || !strings.Contains(err.Message, "Origin") || !strings.Contains(err.Message, "allowedOrigins")) {
					t.Errorf("refusal %+v does not name header and setting with 403", err)
				}
			}
		})
	}
}

func TestGuardShowsBoundedValue(t *testing.T) { // case 80: the value is named
	g := &Guard{LoopbackOnly: true}
	at := g.Check(getFrom(strings.Repeat("a", shownLimit)))
	if !strings.Contains(at.Message, `"`+strings.Repeat("a", shownLimit)+`"`) {
		t.Errorf("message %q does not show the whole value", at.Message)
	}
	over := g.Check(getFrom(strings.Repeat("a", shownLimit+1)))
	if !strings.Contains(over.Message, `"`+strings.Repeat("a", shownLimit)+`..."`) {
		t.Errorf("message %q does not cut the value", over.Message)
	}
}

func TestPreflight(t *testing.T) { // ORG-07, case 39
	g := &Guard{LoopbackOnly: true, AllowedOrigins: []string{"https://app.example"}}
	ask := func(host, origin, headers string) (*httptest.ResponseRecorder, bool) {
		r := httptest.NewRequest(http.MethodOptions, "/mcp", nil)
		r.Host = host
		if origin != "" {
			r.Header.Set("Origin", origin)
			r.Header.Set("Access-Control-Request-Method", "POST")
		}
		if headers != "" {
			r.Header.Set("Access-Control-Request-Headers", headers)
		}
		w := httptest.NewRecorder()
		return w, g.Preflight(w, r)
	}

	t.Run("allowed", func(t *testing.T) {
		w, ok := ask("localhost", "https://app.example", "authorization,mcp-session-id,mcp-protocol-version,mcp-method,mcp-name,last-event-id,content-type,mcp-param-region, x-evil, Mcp-Param-, mcp-param-a b")
		if !ok || w.Code != 204 {
			t.Fatalf("handled %v, status %d, want 204", ok, w.Code)
		}
		h := w.Header()
		if h.Get("Access-Control-Allow-Origin") != "https://app.example" || h.Get("Access-Control-Allow-Credentials") != "" || h.Get("Access-Control-Max-Age") == "" {
			t.Errorf("headers %v", h)
		}
		if got := h.Get("Access-Control-Allow-Methods"); got != "GET, POST, DELETE, OPTIONS" {
			t.Errorf("methods %q", got)
		}
		if vary := strings.Join(h.Values("Vary"), ","); !strings.Contains(vary, "Origin") || !strings.Contains(vary, "Access-Control-Request-Headers") {
			t.Errorf("vary %q", vary)
		}
		granted := map[string]bool{}
		for name := range strings.SplitSeq(h.Get("Access-Control-Allow-Headers"), ",") {
			granted[strings.ToLower(strings.TrimSpace(name))] = true
		}
		for _, name := range []string{"authorization", "content-type", "accept", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id", "mcp-param-region"} {
			if !granted[name] {
				t.Errorf("%s is not granted", name)
			}
		}
		if len(granted) != 9 {
			t.Errorf("granted %v, want those nine only", granted)
		}
	})
	t.Run("foreign", func(t *testing.T) {
		for _, from := range [][2]string{{"localhost", "https://evil.example"}, {"evil.example", "https://app.example"}, {"evil.example", ""}} {
			w, ok := ask(from[0], from[1], "authorization")
			if !ok || w.Code != 403 || len(w.Header().Values("Access-Control-Allow-Origin")) > 0 || !strings.Contains(w.Body.String(), "-32600") {
				t.Errorf("%v: handled %v, status %d, headers %v, want 403 without CORS", from, ok, w.Code, w.Header())
			}
		}
	})
	t.Run("no browser", func(t *testing.T) {
		w, ok := ask("localhost", "", "")
		if !ok || w.Code != 204 || w.Header().Get("Allow") == "" || w.Header().Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("handled %v, status %d, headers %v", ok, w.Code, w.Header())
		}
	})
	t.Run("other methods", func(t *testing.T) {
		w := httptest.NewRecorder()
		if g.Preflight(w, getFrom("localhost", "https://app.example")) || len(w.Header()) > 0 {
			t.Errorf("a POST was taken for a preflight, headers %v", w.Header())
		}
	})
}

func TestPreflightParamLimit(t *testing.T) {
	names := strings.Repeat("mcp-param-x,", maxAskedParams)
	if got := strings.Count(askedParams([]string{names}), "mcp-param-x"); got != maxAskedParams {
		t.Errorf("%d names granted of %d", got, maxAskedParams)
	}
	if got := strings.Count(askedParams([]string{names, "mcp-param-x"}), "mcp-param-x"); got != maxAskedParams {
		t.Errorf("%d names granted, the limit is %d", got, maxAskedParams)
	}
}

func TestAddCORS(t *testing.T) { // ORG-07
	g := &Guard{LoopbackOnly: true, AllowedOrigins: []string{"https://app.example"}}
	tests := []struct{ origin, allow, vary string }{
		{"", "", ""},
		{"https://app.example", "https://app.example", "Origin"},
		{"https://evil.example", "", "Origin"},
	}
	for _, tt := range tests {
		r := getFrom("localhost")
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		w := httptest.NewRecorder()
		g.AddCORS(w, r)
		h := w.Header()
		if h.Get("Access-Control-Allow-Origin") != tt.allow || h.Get("Vary") != tt.vary {
			t.Errorf("%q: headers %v", tt.origin, h)
		}
		if exposed := h.Get("Access-Control-Expose-Headers"); (exposed == "Mcp-Session-Id, WWW-Authenticate") != (tt.allow != "") {
			t.Errorf("%q: exposed %q", tt.origin, exposed)
		}
	}
}

func TestGuardAllocatesNothing(t *testing.T) {
	g := &Guard{LoopbackOnly: true, AllowedHosts: []string{"mcp.example"}, AllowedOrigins: []string{"https://app.example"}}
	for _, r := range []*http.Request{getFrom("127.0.0.1:8420"), getFrom("mcp.example", "https://APP.example:443")} {
		n := testing.AllocsPerRun(100, func() {
			if err := g.Check(r); err != nil {
				t.Fatal(err)
			}
		})
		if n > 0 {
			t.Errorf("Host %s: %v allocations", r.Host, n)
		}
	}
}
