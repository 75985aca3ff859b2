package survive

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"mcpbridge/test/internal/e2e"
)

// Case 89: what people have for other programs is served as it is, with a warning for what means nothing here.
func TestCase89Spellings(t *testing.T) {
	t.Parallel()
	binary := e2e.Quote(counterBinary(t))
	for name, c := range map[string]struct{ members, warning string }{
		"an editor's": {`"inputs": [], // comments
			"servers": {"a": {"type": "stdio", "command": ` + binary + `, "args": ["-mark", "x"], "autoApprove": ["next"],},},`, "autoApprove"},
		"a host's":           {`"mcpServers": {"a": {"command": ` + binary + `, "args": ["-mark", "x"], "timeout": 60, "disabled": false, "alwaysAllow": []}}`, "alwaysAllow"},
		"a command as list":  {`"mcp": {"a": {"type": "local", "enabled": true, "command": [` + binary + `, "-mark", "x"]}}`, "a list is read as"},
		"a list of servers":  {`"mcpServers": [{"name": "a", "protocol": "stdio", "enabled": true, "command": ` + binary + `, "args": ["-mark", "x"]}]`, "protocol"},
		"a proxy's":          {`"mcpProxy": {"addr": ":9090", "options": {"panicIfInvalid": false}}, "mcpServers": {"a": {"command": ` + binary + `, "args": ["-mark", "x"], "options": {"toolFilter": {"mode": "allow", "list": ["next"]}}}}`, "mcpProxy"},
		"with remote beside": {`"mcpServers": {"far": {"type": "streamable-http", "url": "https://h.example/mcp"}, "a": {"transport": "stdio", "command": ` + binary + `, "args": ["-mark", "x"]}}`, "transport"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := settle(t, "")
			h.Write(t, c.members)
			tenant := h.Start(t)
			if _, why := serves(h.at("a"), "x"); why != "" {
				t.Error(why)
			}
			if n := strings.Count(tenant.Log(), c.warning); n != 1 {
				t.Errorf("%d warnings about %s, want 1:\n%s", n, c.warning, tenant.Log())
			}
		})
	}
}

// Case 91: ${NAME} is replaced, in what is set and with its default; one that is neither takes its own server out, with entry and
// key in the message. Nothing else is touched, and there is no shell.
func TestCase91Variables(t *testing.T) {
	t.Parallel()
	plain := []string{"$HOME", "a$b", "$5", "$$", "%X%", "$(id)", "`id`", "*", "~"}
	h := settle(t, "",
		entry{name: "a", flags: append([]string{"--", "${HOME}", "${env:HOME}", "${MCPBRIDGE_TEST_NOPE:-in stead}"}, plain...)},
		entry{name: "b", flags: []string{"--", "$HOME", "${MCPBRIDGE_TEST_NOPE}", "a$b"}})
	tenant := h.Start(t)
	header, body := e2e.ModernCall("1", "about", "{}", "")
	got := told(t, h.at("a").Do(t, "POST", header, body)).Args
	if want := append([]string{os.Getenv("HOME"), os.Getenv("HOME"), "in stead"}, plain...); !slices.Equal(got, want) {
		t.Errorf("the server was started with %q, want %q", got, want)
	}
	if _, why := serves(h.at("b"), ""); why != "" {
		t.Error(why)
	}
	for _, s := range h.status(t).Servers {
		if s.Name == "b" && (s.Ready || !strings.Contains(s.Problem, "MCPBRIDGE_TEST_NOPE") || !strings.Contains(s.Problem, "mcpServers.b.args")) {
			t.Errorf("status: %+v, want the variable, the entry and its key", s)
		}
	}
	if !strings.Contains(tenant.Log(), "MCPBRIDGE_TEST_NOPE") {
		t.Errorf("the log does not name the variable:\n%s", tenant.Log())
	}
	out, complaint, code := h.Run(t, "check")
	if code != 3 || !strings.Contains(complaint, "mcpServers.b.args") || !strings.Contains(complaint, "MCPBRIDGE_TEST_NOPE") {
		t.Errorf("check: exit %d, %s%s", code, out, complaint)
	}
}

// Case 94: any name is served under its percent-encoded path, without a redirect; names that a URL cannot tell apart, or that
// are no segment of one, are refused with a message and take nobody down.
func TestCase94Names(t *testing.T) {
	t.Parallel()
	good := []string{"My Server (2)", "größe", "a.b", "Capital", "100%", "a+b", "q?x=1#f", "…"}
	bad := []string{"a/b", "..", "."}
	var all []entry
	for i, name := range append(slices.Clone(good), append(bad, "GRÖSSE")...) {
		all = append(all, entry{name: name, flags: []string{"-mark", fmt.Sprint(i)}})
	}
	h := settle(t, "", all...)
	h.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	tenant := h.Start(t)
	for i, name := range good {
		if _, why := serves(h.at(url.PathEscape(name)), fmt.Sprint(i)); why != "" {
			t.Errorf("%q: %s", name, why)
		}
	}
	for _, path := range []string{"a/b", "a%2Fb", "..", "%2e%2e", ".", "gr%C3%B6sse", "capital", "a.b/", "a.b/../a.b", "/a.b"} {
		header, body := e2e.ModernCall("1", "about", "{}", "")
		if r := h.at(path).Do(t, "POST", header, body); r.Status != 404 {
			t.Errorf("path %q: %d %.200s, want 404", path, r.Status, r.Body)
		}
	}
	for _, name := range append(bad, "GRÖSSE") {
		if !strings.Contains(tenant.Log(), name) {
			t.Errorf("the log does not tell that %q cannot be served", name)
		}
	}
	if code, body := h.get(t, "/readyz"); code != 200 {
		t.Errorf("readyz: %d %s", code, body)
	}
}
