package config

import (
	"path/filepath"
	"strings"
	"testing"
)

// Case 89: what people paste is read or warned about, never fatal.
func TestForeignSpellings(t *testing.T) {
	const unused = ": the key is not used"
	kind := func(key, value string) string {
		return "warning: mcpServers.s." + key + `: "` + value + `" is not used: command makes a local server, url a remote one`
	}
	readAs := func(key string) string { return "warning: mcpServers.s." + key + `: the key is read as "type"` }
	events := plain(func(s *Server) { s.Command, s.URL, s.Transport = "", "https://h/mcp", "sse" })
	remote := plain(func(s *Server) { s.Command, s.URL = "", "https://h/mcp" })
	local := plain(func(*Server) {})
	disabled := plain(func(s *Server) { s.Disabled = true })
	for _, c := range []struct {
		members string
		want    Server
		warn    string
	}{
		{`"type":"stdio","command":"x"`, local, ""},
		{`"type":"local","command":"x"`, local, ""},
		{`"type":"http","url":"https://h/mcp"`, remote, ""},
		{`"type":"remote","url":"https://h/mcp"`, remote, ""},
		{`"type":"sse","url":"https://h/mcp"`, events, ""},
		{`"url":"https://h/mcp","type":"streamable-http"`, remote, ""},
		{`"type":"stdio","url":"https://h/mcp"`, remote, kind("type", "stdio")},
		{`"type":"sse","command":"x"`, local, kind("type", "sse")},
		{`"type":"websocket","url":"https://h/mcp"`, remote, `the transport "websocket" is not known, and not used`},
		{`"transportType":"streamableHttp","url":"https://h/mcp"`, remote, readAs("transportType")},
		{`"transport":"sse","url":"https://h/mcp"`, events, readAs("transport")},
		{`"transport":"stdio","command":"x"`, local, readAs("transport")},
		{`"transport":"http","command":"x"`, local, kind("transport", "http")},
		{`"serverUrl":"https://h/mcp"`, remote, `mcpServers.s.serverUrl: the key is read as "url"`},
		{`"httpUrl":"https://h/mcp"`, remote, `mcpServers.s.httpUrl: the key is read as "url"`},
		{`"enabled":false,"command":"x"`, disabled, `mcpServers.s.enabled: the key is read; write "disabled" instead`},
		{`"enabled":true,"command":"x"`, local, "mcpServers.s.enabled: the key is read"},
		{`"disabled":true,"command":"x"`, disabled, ""},
		{`"autoApprove":["a"],"command":"x"`, local, "mcpServers.s.autoApprove" + unused},
		{`"alwaysAllow":["a"],"command":"x"`, local, "mcpServers.s.alwaysAllow" + unused},
		{`"description":"d","command":"x"`, local, "mcpServers.s.description" + unused},
		{`"icon":"i","command":"x"`, local, "mcpServers.s.icon" + unused},
		{`"options":{"authTokens":["t"]},"command":"x"`, local, "mcpServers.s.options: the key is not used: no tool is hidden and nothing is protected by it"},
		{`"tags":["a"],"command":"x"`, local, "mcpServers.s.tags" + unused},
		{`"somethingNobodyKnows":1,"command":"x"`, local, "mcpServers.s.somethingNobodyKnows" + unused},
		{`"environment":{"A":"b"},"command":"x"`, plain(func(s *Server) { s.Env = map[string]string{"A": "b"} }), `mcpServers.s.environment: the key is read as "env"`},
		{`"working_dir":"/w","command":"x"`, plain(func(s *Server) { s.Cwd = "/w" }), `mcpServers.s.working_dir: the key is read as "cwd"`},
		{`"workingDirectory":"/w","command":"x","cwd":"/v"`, plain(func(s *Server) { s.Cwd = "/v" }), `mcpServers.s.workingDirectory: the key is not used beside "cwd"`},
		{`"httpUrl":"https://g/","url":"https://h/mcp"`, remote, `mcpServers.s.httpUrl: the key is not used beside "url"`},
		{`"protocol":"stdio","command":"x"`, local, `mcpServers.s.protocol: the value is read as "type"`},
		{`"protocol":"sse","url":"https://h/mcp"`, events, `mcpServers.s.protocol: the value is read as "type"`},
		{`"isolation":{"enabled":true},"command":"x"`, local, "mcpServers.s.isolation: an object is not used: the server is not put into a container"},
		{`"tools":["*"],"command":"x"`, local, "mcpServers.s.tools: not used: no tool is hidden"},
		{`"oauth":false,"url":"https://h/mcp"`, remote, "mcpServers.s.oauth: not used yet by this version"},
		{`"env":{"PORT":8080},"command":"x"`, plain(func(s *Server) { s.Env = map[string]string{"PORT": "8080"} }), "mcpServers.s.env.PORT: a number is read as text; write it in quotes"},
		{`"command":{"path":"x","args":["a"],"env":{"A":"b"},"more":1}`, plain(func(s *Server) { s.Args, s.Env = []string{"a"}, map[string]string{"A": "b"} }), `mcpServers.s.command: an object is read as "command", "args" and "env"`},
		{`"timeout":60,"command":"x"`, local, `mcpServers.s.timeout: a number without unit is not used; write a duration such as "5m"`},
		{`"command":["x","-a","b c"]`, plain(func(s *Server) { s.Args = []string{"-a", "b c"} }), `mcpServers.s.command: a list is read as "command" and "args"`},
		{`"args":["z"],"command":["x","a"]`, plain(func(s *Server) { s.Args = []string{"a", "z"} }), "a list is read"},
	} {
		t.Run(c.members, func(t *testing.T) {
			s, warnings := serverOf(t, c.members)
			sameServer(t, s, c.want)
			contains(t, strings.Join(warnings, "\n"), c.warn)
		})
	}
}

func TestForeignFiles(t *testing.T) {
	for _, c := range []struct{ name, text, warn string }{
		{"VS Code", `{"inputs": [], "servers": {"s": {"command": "x"}}}`, "c.json:1:2: warning: inputs: the key is not used"},
		{"proxy block", `{"mcpProxy": {"options": {"panicIfInvalid": true}}, "mcpServers": {"s": {"command": "x"}}}`, "c.json:1:2: warning: mcpProxy: the key is not used: no address, token or filter in it has any effect"},
		{"list form", `{"mcpServers": [{"name": "s", "command": "x"}]}`, "c.json:1:16: warning: mcpServers: a list is read as an object whose keys are the names"},
		{"anything", `{"numStartups": 5, "mcpServers": {"s": {"command": "x"}}}`, "c.json:1:2: warning: numStartups: the key is not used"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, warnings, err := parse(t, c.text)
			if err != nil || len(config.Servers) != 1 {
				t.Fatal(config, err)
			}
			sameServer(t, config.Servers[0], plain(func(*Server) {}))
			if strings.Join(warnings, "\n") != c.warn {
				t.Errorf("warnings %q", warnings)
			}
		})
	}
}

// Both spellings of the servers may stand in a file; the order is that of the file.
func TestBothServerKeys(t *testing.T) {
	c, _, err := parse(t, `{"servers": {"z": {"command": "x"}}, "mcpServers": {"y": {"command": "x"}, "a": {"command": "x"}}}`)
	if err != nil || len(c.Servers) != 3 || c.Servers[0].Name+c.Servers[1].Name+c.Servers[2].Name != "zya" {
		t.Errorf("%+v, %v", c, err)
	}
}

// Case 89: files of other programs as they are. Each has a local server s and a remote one r, the same in all of them.
func TestFilesOfOtherPrograms(t *testing.T) {
	local := plain(func(s *Server) { s.Args, s.Env = []string{"a"}, map[string]string{"PORT": "80"} })
	remote := newServer("r")
	remote.URL, remote.Headers = "https://h/mcp", map[string]string{"K": "v"}
	files, err := filepath.Glob("testdata/foreign/*")
	if err != nil || len(files) < 7 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c, warnings, err := Load(path)
			if err != nil || len(c.Servers) < 2 {
				t.Fatal(c, err)
			}
			if len(warnings) == 0 {
				t.Error("no warning")
			}
			sameServer(t, c.Servers[0], local)
			for _, s := range c.Servers[1:] {
				switch s.Name {
				case "r":
					want := remote
					if filepath.Base(path) == "vscode-settings.jsonc" {
						want.Transport = TransportSSE
					}
					sameServer(t, s, want)
				case "off":
					if !s.Disabled || s.Problem != nil {
						t.Errorf("%+v", s)
					}
				case "asks":
					contains(t, problem(s), "${input:key}: a bridge cannot ask for inputs; use ${env:NAME} or ${file:PATH}")
				case "hidden":
					t.Error("a server of one project is served")
				}
			}
			if err := validate(t, read(t, path)); err != nil {
				t.Errorf("the schema refuses it: %v", err)
			}
		})
	}
}

// A list names its entries; one without a name cannot be used.
func TestListWithoutName(t *testing.T) {
	c, _, err := parse(t, `{"mcpServers": [{"command": "x"}, {"name": 5, "command": "x"}, 7, {"name": "ok", "command": "x"}]}`)
	if err != nil || len(c.Servers) != 4 || c.Servers[3].Problem != nil {
		t.Fatal(c, err)
	}
	contains(t, problem(c.Servers[0]), `c.json:1:17: mcpServers[0]: the name "" cannot be used`)
	contains(t, problem(c.Servers[1]), `c.json:1:35: mcpServers[1]: the name "" cannot be used`)
	contains(t, problem(c.Servers[2]), "mcpServers[2]: must be an object")
}
