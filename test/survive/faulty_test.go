package survive

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"mcpbridge/test/internal/e2e"
)

// faults are files that cannot be read, with the place and a word of what is said about them.
var faults = []struct{ name, text, place, word string }{
	{"syntax", "{\n  \"listen\": %s,\n  \"mcpServers\": {\"a\": {\"command\": \"x\" \"args\": []}}\n}", "mcp.json:3:39", ""},
	{"cut off", "{\n  \"listen\": %s,\n  \"mcpServers\": {\"a\": ", "mcp.json:3:", ""},
	{"misspelt key", "{\n  \"listen\": %s,\n  \"limits\": {\"sesions\": 5}\n}", "mcp.json:3:14", `did you mean`},
	{"wrong value", "{\n  \"listen\": %s,\n  \"limits\": {\"sessions\": -5}\n}", "mcp.json:3:26", "limits.sessions"},
}

// Acceptance 7, case 92: a file with an error changes nothing and says why, with line and column: to `mcpbridge reload`, which
// exits 3, in the log, and in status. Calls and readiness are not affected. A file in order is taken again.
func TestFaultyFile(t *testing.T) {
	for _, c := range faults {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := settle(t, "", entry{name: "a"}, entry{name: "b", flags: []string{"-mark", "old"}})
			tenant := h.Start(t)
			w := gather(t, callers(t, h.at("a")))
			place := regexp.MustCompile(regexp.QuoteMeta(c.place) + ".*" + regexp.QuoteMeta(c.word))
			h.WriteRaw(t, fmt.Sprintf(c.text, e2e.Quote(h.Addr)))
			for _, flags := range [][]string{nil, {"--control", h.control()}} { // before the bridge is asked, and by the bridge
				out, complaint, code := h.Run(t, append([]string{"reload"}, flags...)...)
				if code != 3 || !place.MatchString(complaint) {
					t.Errorf("reload %v: exit %d, want 3 and %s in %q (stdout %q)", flags, code, place, complaint, out)
				}
			}
			told := len(place.FindAllString(tenant.Log(), -1))
			tenant.Signal(t, hangup)
			eventually(t, "the log tells what is wrong", func() bool { return len(place.FindAllString(tenant.Log(), -1)) > told })
			if last := h.status(t, "--control", h.control()).Bridge.LastReload; last == nil || last.OK || !place.MatchString(last.Error) {
				t.Errorf("status: last reload is %+v, want %s", last, place)
			}
			if code, body := h.get(t, "/readyz"); code != 200 || !strings.Contains(body, `"b"`) {
				t.Errorf("readyz: %d %s", code, body)
			}
			if _, why := serves(h.at("b"), "old"); why != "" {
				t.Error(why)
			}
			h.furnish(t, "", entry{name: "a"}, entry{name: "b", flags: []string{"-mark", "new"}})
			tellings[0].tell(t, h, tenant)
			if _, why := serves(h.at("b"), "new"); why != "" {
				t.Error(why)
			}
			if last := h.status(t).Bridge.LastReload; last == nil || !last.OK || last.Error != "" {
				t.Errorf("status: last reload is %+v", last)
			}
			w.dismiss(t)
		})
	}
}

// get reads a page of the bridge's own.
func (h *home) get(t testing.TB, path string) (int, string) {
	t.Helper()
	b := &e2e.Bridge{URL: "http://" + h.Addr + path, Client: h.client}
	r := b.Do(t, "GET", nil, nil)
	return r.Status, string(r.Body)
}

// Issue 3, config: one broken entry never takes the others down, at the start and at a reload. It is told by readyz and status,
// and the bridge is ready unless the entry is required.
func TestBrokenEntry(t *testing.T) {
	t.Parallel()
	const broken = `"b": {"command": "x", "idleStop": 7}`
	h := settle(t, "")
	members := func(more string) string {
		return `"mcpServers": {` + entry{name: "a"}.text(t, h.log) + more + `}`
	}
	h.Write(t, members(","+broken))
	h.Start(t)
	w := gather(t, callers(t, h.at("a")))
	h.wantBroken(t, 200)
	h.Write(t, members(""))
	tellings[0].tell(t, h, nil)
	if code, body := h.get(t, "/readyz"); code != 200 || strings.Contains(body, `"b"`) {
		t.Errorf("readyz without the broken entry: %d %s", code, body)
	}
	h.Write(t, members(","+strings.TrimSuffix(broken, "}")+`, "required": true}`))
	tellings[0].tell(t, h, nil)
	h.wantBroken(t, 503)
	w.dismiss(t)
}

func (h *home) wantBroken(t testing.TB, ready int) {
	t.Helper()
	code, body := h.get(t, "/readyz")
	if code != ready || !strings.Contains(body, `"b":{"ready":false`) || !strings.Contains(body, `"a":{"ready":true`) {
		t.Errorf("readyz: %d %s, want %d, a ready and b not", code, body, ready)
	}
	for _, s := range h.status(t).Servers {
		switch s.Name {
		case "a":
			if !s.Ready {
				t.Errorf("status: a is %+v", s)
			}
		case "b":
			if s.Ready || !strings.Contains(s.Problem, "idleStop") {
				t.Errorf("status: b is %+v, want a problem that names idleStop", s)
			}
		}
	}
	if _, why := serves(h.at("b"), ""); why != "" {
		t.Errorf("b: %s", why)
	}
}

// control is the socket of the house's bridge.
func (h *home) control() string { return h.Dir + "/mcpbridge.sock" }
