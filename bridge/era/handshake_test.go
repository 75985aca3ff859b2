package era

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

var update = flag.Bool("update", false, "rewrite testdata")

// server is what one server of the grid answers to its own era's opening.
type server struct{ version, body string }

var servers = []server{
	{"2024-11-05", `{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true},"prompts":{},"experimental":{"x":{}}},"serverInfo":{"name":"s24","version":"1"}}`},
	{"2025-03-26", `{"protocolVersion":"2025-03-26","capabilities":{"tools":{},"logging":{},"completions":{}},"serverInfo":{"name":"s03","version":"1.10"},"instructions":"Ask \u0061lways.","_meta":{"v/k":1.0}}`},
	{"2025-06-18", `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":false,"x":1}},"serverInfo":{"name":"s06","title":"S 06","version":"1"}}`},
	{"2025-11-25", `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]},"a/b":{}}},"serverInfo":{"name":"s11","version":"1","icons":[]}}`},
	{"2026-07-28", `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{}},"new":{}},"instructions":"Go.","ttlMs":60000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s26","version":"1"},"v/k":[1]}}`},
}

// opening is what a client of that version gets to see of a server: shared links, as 1:1 links relay bytes.
func opening(t *testing.T, s server, client mcp.Version) string {
	t.Helper()
	m := result(t, s.body)
	if mcp.Version(s.version).Era() == mcp.Modern {
		if client.Era() == mcp.Modern {
			edits, err := RelayDiscover(m, nil)
			if err != nil {
				t.Fatal(err)
			}
			return resultOf(t, apply(t, m, edits))
		}
		d, err := ParseDiscover(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(d.InitializeResult(mcp.NegotiateLegacy(string(client)), "fallback"))
	}
	h, err := ParseInitialize(m)
	if err != nil {
		t.Fatal(err)
	}
	if client.Era() == mcp.Modern {
		return string(h.DiscoverResult(DiscoverOptions{KeepListChanged: true, KeepSubscribe: true}))
	}
	return string(h.InitializeResult(mcp.NegotiateLegacy(string(client)), "fallback"))
}

// Translation 19, section 2: servers at all five versions before clients at all five.
func TestOpeningGrid(t *testing.T) {
	const file = "testdata/openings.golden"
	var b strings.Builder
	for _, s := range servers {
		for _, client := range append(mcp.LegacyVersions(), mcp.ModernVersions()...) {
			out := opening(t, s, client)
			if !framing.Valid([]byte(out)) {
				t.Errorf("invalid: %s", out)
			}
			b.WriteString("server " + s.version + ", client " + string(client) + "\n" + out + "\n")
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wants, gots := strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")
	if len(wants) != len(gots) {
		t.Fatalf("%d lines, want %d", len(gots), len(wants))
	}
	for i := range gots {
		if gots[i] != wants[i] {
			t.Errorf("%s\ngot  %s\nwant %s", gots[max(i-1, 0)], gots[i], wants[i])
		}
	}
}

// The examples of translation 2.1 and 2.2, word for word.
func TestOpeningExamples(t *testing.T) {
	h, err := ParseInitialize(result(t, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"tasks":{"cancel":{}}},"serverInfo":{"name":"files","title":"Files","version":"1.4.0"},"instructions":"Ask before writing."}`))
	if err != nil {
		t.Fatal(err)
	}
	got := string(h.DiscoverResult(DiscoverOptions{KeepListChanged: true, KeepSubscribe: true}))
	want := `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}},"instructions":"Ask before writing.","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"files","title":"Files","version":"1.4.0"}}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	caps := ClientCapabilitiesToModern([]byte(`{"roots":{"listChanged":true},"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"tasks":{"cancel":{}}}`))
	if want := `{"roots":{},"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}}}`; string(caps) != want {
		t.Errorf("got %s, want %s", caps, want)
	}
}

func TestDiscoverOptions(t *testing.T) {
	caps := []byte(`{"tools":{"listChanged":true,"x":1},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{}}`)
	for _, c := range []struct {
		name string
		o    DiscoverOptions
		want string
	}{
		{"nothing honoured", DiscoverOptions{}, `{"tools":{"x":1},"resources":{},"prompts":{},"completions":{}}`},
		{"lists only", DiscoverOptions{KeepListChanged: true}, `{"tools":{"listChanged":true,"x":1},"resources":{"listChanged":true},"prompts":{"listChanged":true},"completions":{}}`},
		{"subscriptions only", DiscoverOptions{KeepSubscribe: true}, `{"tools":{"x":1},"resources":{"subscribe":true},"prompts":{},"completions":{}}`},
		{"withdrawn", DiscoverOptions{Withdrawn: []string{"prompts", "completions"}, Completions: true}, `{"tools":{"x":1},"resources":{}}`},
		{"completions once", DiscoverOptions{Completions: true}, `{"tools":{"x":1},"resources":{},"prompts":{},"completions":{}}`},
		{"no tasks to bridge", DiscoverOptions{Tasks: "bridge"}, `{"tools":{"x":1},"resources":{},"prompts":{},"completions":{}}`},
	} {
		if got := string(ServerCapabilitiesToModern(caps, c.o)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// Servers spell capabilities in odd ways; the other side gets objects or nothing.
func TestOddCapabilities(t *testing.T) {
	all := DiscoverOptions{KeepListChanged: true, KeepSubscribe: true}
	for in, want := range map[string]string{
		`{"tools":null,"logging":false,"prompts":true,"completions":"yes","experimental":[]}`: `{"prompts":{}}`,
		`{"tools":{"a":1},"tools":{"a":2}}`:                                                   `{"tools":{"a":1}}`,
		`{"to\u006fls":{}}`:                                                                   `{"tools":{}}`,
		`{"Tools":{}}`:                                                                        `{}`,
		`null`:                                                                                `{}`,
		`[]`:                                                                                  `{}`,
		``:                                                                                    `{}`,
		`{"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":null}}`: `{}`,
	} {
		if got := string(ServerCapabilitiesToModern([]byte(in), all)); got != want {
			t.Errorf("server %s: got %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{
		`{"elicitation":true}`:                                                       `{"elicitation":{"form":{}}}`,
		`{"elicitation":{"url":{}}}`:                                                 `{"elicitation":{"url":{}}}`,
		`{"roots":{"listChanged":true,"x":1}}`:                                       `{"roots":{"x":1}}`,
		`{"experimental":{"x":{}},"unknown":{}}`:                                     `{"experimental":{"x":{}}}`,
		`{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["a"]},"a/b":{}}}`: `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["a"]}}}`,
	} {
		if got := string(ClientCapabilitiesToLegacy([]byte(in))); got != want {
			t.Errorf("client %s: got %s, want %s", in, got, want)
		}
	}
}

func TestHasCapability(t *testing.T) {
	caps := []byte(`{"resources":{"subscribe":true,"listChanged":false},"tools":{},"prompts":null}`)
	for path, want := range map[string]bool{
		"resources": true, "resources subscribe": true, "resources listChanged": false, "tools": true,
		"prompts": false, "logging": false, "tools x y": false, "resources subscribe x": false,
	} {
		if got := HasCapability(caps, strings.Fields(path)...); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if HasCapability(nil, "tools") || HasCapability([]byte(`[]`), "tools") {
		t.Error("a capability of nothing")
	}
}

// VER-42, VER-43, and what a legacy server may leave out.
func TestParseInitialize(t *testing.T) {
	for in, want := range map[string]string{
		`{"protocolVersion":"2023-01-01"}`: `cannot accept result of initialize: version not supported: "2023-01-01"`,
		`{"protocolVersion":"2026-07-28"}`: `cannot accept result of initialize: modern version in a handshake: 2026-07-28`,
		`{"protocolVersion":1}`:            `cannot accept result of initialize: it has no protocolVersion`,
		`{}`:                               `cannot accept result of initialize: it has no protocolVersion`,
		`[]`:                               `cannot accept result of initialize: the result is no object`,
	} {
		if _, err := ParseInitialize(result(t, in)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
	h, err := ParseInitialize(result(t, `{"protocolVersion":"2024-11-05","capabilities":null,"serverInfo":"x","instructions":1,"_meta":[]}`))
	if err != nil || h.Version != mcp.V20241105 || h.Capabilities != nil || h.ServerInfo != nil || h.Instructions != nil || h.Meta != nil {
		t.Errorf("got %+v, %v", h, err)
	}
	if got, want := string(h.InitializeResult(mcp.V20250618, "files")), `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"files","version":"unknown"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := string(h.DiscoverResult(DiscoverOptions{})), `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParseOpening(t *testing.T) {
	o, err := ParseOpening(scan(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"x","capabilities":{"roots":{}},"clientInfo":[]}}`))
	if err != nil || o.Requested != "x" || string(o.Capabilities) != `{"roots":{}}` || o.ClientInfo != nil {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestInitializeParams(t *testing.T) {
	if got, want := string(InitializeParams(mcp.V20251125, []byte(`{"roots":{}}`), []byte(`{"name":"h"}`))), `{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"h"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := string(InitializeParams(mcp.V20241105, nil, nil)), `{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"unknown","version":"unknown"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParseDiscover(t *testing.T) {
	d, err := ParseDiscover(result(t, `{"supportedVersions":["2026-07-28","2027-01-01"],"capabilities":{"tools":{}},"serverInfo":{"name":"body"},"ttlMs":-5,"cacheScope":"shared","instructions":"i"}`))
	if err != nil || !slices.Equal(d.SupportedVersions, []string{"2026-07-28", "2027-01-01"}) || string(d.ServerInfo) != `{"name":"body"}` ||
		d.TTLMs != 0 || d.Scope != "private" || string(d.Instructions) != `"i"` || d.Meta != nil {
		t.Errorf("got %+v, %v", d, err)
	}
	d, err = ParseDiscover(result(t, servers[4].body))
	if err != nil || d.TTLMs != 60000 || d.Scope != "public" || string(d.ServerInfo) != `{"name":"s26","version":"1"}` {
		t.Errorf("got %+v, %v", d, err)
	}
	if got := string(Discovery{}.InitializeResult(mcp.V20251125, `a"b`)); !strings.Contains(got, `"serverInfo":{"name":"a\"b","version":"unknown"}`) {
		t.Errorf("no fallback name in %s", got)
	}
	alone, err := ParseDiscover(result(t, `{"supportedVersions":["2026-07-28"],"_meta":{`+srvInfo+`}}`))
	if got, want := string(alone.InitializeResult(mcp.V20250618, "x")), `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"files","version":"1"}}`; err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	if cap(d.Capabilities) != len(d.Capabilities) {
		t.Error("an append to the capabilities would write into the message")
	}
}

// Translation 2.4: bytes stay but for what must change.
func TestRelayDiscover(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"complete", servers[4].body, servers[4].body},
		{"versions are cut to the bridge's", `{"resultType":"complete","supportedVersions":["2027-01-01", "2026-07-28","2025-11-25"],"capabilities":{"x":{}},"ttlMs":1,"cacheScope":"public"}`,
			`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"x":{}},"ttlMs":1,"cacheScope":"public"}`},
		{"fields are ensured", `{"supportedVersions":["2026-07-28"]}`, `{"supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"private","resultType":"complete"}`},
		{"identity moves", `{"serverInfo":{"name":"s"},"supportedVersions":["2026-07-28"],"resultType":"complete","ttlMs":0,"cacheScope":"private"}`,
			`{"supportedVersions":["2026-07-28"],"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}`},
		{"identity joins _meta", `{"supportedVersions":["2026-07-28"],"_meta":{"v/k":1},"serverInfo":{"name":"s"},"resultType":"complete","ttlMs":0,"cacheScope":"private"}`,
			`{"supportedVersions":["2026-07-28"],"_meta":{"v/k":1,"io.modelcontextprotocol/serverInfo":{"name":"s"}},"resultType":"complete","ttlMs":0,"cacheScope":"private"}`},
		{"the one in _meta wins", `{"serverInfo":{"name":"body"},"supportedVersions":["2026-07-28"],"_meta":{` + srvInfo + `},"resultType":"complete","ttlMs":0,"cacheScope":"private"}`,
			`{"supportedVersions":["2026-07-28"],"_meta":{` + srvInfo + `},"resultType":"complete","ttlMs":0,"cacheScope":"private"}`},
	} {
		m := result(t, c.in)
		edits, err := RelayDiscover(m, []byte(`"c"`))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got, want := apply(t, m, edits), `{"jsonrpc":"2.0","id":"c","result":`+c.want+`}`; got != want {
			t.Errorf("%s: got  %s\nwant %s", c.name, got, want)
		}
	}
	for in, want := range map[string]string{
		`{"supportedVersions":["2027-01-01"]}`:                        `no mutual version (the server lists "2027-01-01")`,
		`{"supportedVersions":"2026-07-28"}`:                          `it has no list of supportedVersions`,
		`{"supportedVersions":["1","2","3","4","5","6","7","8"]}`:     `"8")`,
		`{"supportedVersions":["1","2","3","4","5","6","7","8","9"]}`: `"8", ...)`,
	} {
		if _, err := RelayDiscover(result(t, in), nil); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
}
