package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What makes one entry unusable. The other one stays usable.
func TestServerProblems(t *testing.T) {
	const later = "not supported yet by this version; remove it"
	for _, c := range []struct{ members, want string }{
		{``, "c.json:1:20: mcpServers.s: needs command (a local server) or url (a remote one)"},
		{`"command":"x","url":"https://h/"`, "mcpServers.s: has both command and url; remove one"},
		{`"comand":"x"`, `c.json:1:21: mcpServers.s.comand: unknown key; did you mean "command"?`},
		{`"command":"x","argz":[]`, `mcpServers.s.argz: unknown key; did you mean "args"?`},
		{`"command":"x","command":"y"`, "c.json:1:35: mcpServers.s.command: the key stands twice"},
		{`"command":5`, "mcpServers.s.command: must be a string"},
		{`"command":""`, "mcpServers.s.command: must not be empty"},
		{`"command":[]`, "mcpServers.s.command: must not be empty"},
		{`"command":"x","args":"y"`, "mcpServers.s.args: must be a list"},
		{`"command":"x","args":[1]`, "c.json:1:43: mcpServers.s.args[0]: must be a string"},
		{`"command":"x","env":{"PORT":null}`, "mcpServers.s.env.PORT: must be a string"},
		{`"command":"x","spare":9`, "c.json:1:43: mcpServers.s.spare: must be from 0 to 8"},
		{`"command":"x","spare":"1"`, "mcpServers.s.spare: must be an integer"},
		{`"command":"x","restart":{"breaker":"05/1s"}`, `c.json:1:56: mcpServers.s.restart.breaker: "05/1s" must be a count from 1 to 1000 and a duration, such as "5/60s"`},
		{`"command":"x","restart":{"breaker":"5/1"}`, `mcpServers.s.restart.breaker: "1" is no duration`},
		{`"command":"x","tools":["a"]`, "mcpServers.s.tools: " + later},
		{`"command":"x","tools":[]`, "mcpServers.s.tools: " + later},
		{`"command":"x","env":{"A=B":""}`, "mcpServers.s.env.A=B: this cannot be the name of a variable"},
		{`"command":"x","lazy":"yes"`, "mcpServers.s.lazy: must be true or false"},
		{`"command":"x","isolation":"sesion"`, `mcpServers.s.isolation: "sesion" is not known; did you mean "session"?`},
		{`"command":"x","isolation":"alone"`, `"alone" is not known; use one of principal, request, session, shared`},
		{`"command":"x","protocol":"new"`, `mcpServers.s.protocol: "new" is not known; use one of auto, legacy, modern`},
		{`"command":"x","idleStop":10`, `mcpServers.s.idleStop: must be a duration such as "30s", "10m" or "1h30m"`},
		{`"command":"x","timeout":"10"`, `mcpServers.s.timeout: "10" is no duration; write "500ms", "30s", "10m" or "1h30m"`},
		{`"command":"x","timeout":"-1s"`, "mcpServers.s.timeout: must be above 0"},
		{`"command":"x","restart":{"initial":"2s","max":"1s"}`, "mcpServers.s: restart: initial is longer than max"},
		{`"command":"x","restart":{"maximum":"1s"}`, "mcpServers.s.restart.maximum: unknown key; known are breaker, initial, max, resetAfter"},
		{`"command":"x","restart":{"breaker":"5"}`, `mcpServers.s.restart.breaker: "5" must be a count from 1 to 1000 and a duration, such as "5/60s"`},
		{`"command":"x","restart":{"breaker":"5x/1s"}`, `"5x/1s" must be a count`},
		{`"command":"x","restart":{"breaker":"5/x"}`, `"x" is no duration`},
		{`"command":"x","cache":{"scope":"all"}`, `mcpServers.s.cache.scope: "all" is not known; use one of private, public`},
		{`"command":"x","logLevel":"warn"`, `mcpServers.s.logLevel: "warn" is not known`},
		{`"command":"x","mirror":{"t":{"p":"Bad Name"}}`, `mcpServers.s.mirror.t.p: "Bad Name" cannot be part of a header name`},
		{`"command":"x","mirror":{"t":{"p":""}}`, `"" cannot be part of a header name`},
		{`"command":"x","mirror":{"t":{"p":"A","q":"a"}}`, `mcpServers.s.mirror.t.q: header "a" is used twice for this tool`},
		{`"url":"h/mcp"`, `mcpServers.s.url: must be a URL that starts with "https://" or "http://" and has a host`},
		{`"url":"ftp://h/"`, "mcpServers.s.url: must be a URL"},
		{`"url":"https://u:p@h/"`, "mcpServers.s.url: must not hold a user name or password; use headers"},
		{`"url":"https://h/#x"`, "mcpServers.s.url: must not have a fragment"},
		{`"url":"http://h.example/"`, `mcpServers.s: url: plain http beyond this machine is readable for others; use https or set "allowHttp": true`},
		{`"url":"https://h/","headers":{"X Y":"1"}`, "mcpServers.s.headers.X Y: this cannot be the name of a header"},
		{`"url":"https://h/","headers":{"X":"a\r\nY: b"}`, "mcpServers.s.headers.X: a header cannot hold a line break"},
		{`"url":"https://h/","headers":{"mcp-session-id":"1"}`, "mcpServers.s.headers.mcp-session-id: this header belongs to the protocol and cannot be set"},
		{`"url":"https://h/","headers":{"MCP-PARAM-x":"1"}`, "this header belongs to the protocol"},
		{`"url":"https://h/","headers":{"host":"h2"}`, "this header belongs to the protocol"},
		{`"url":"https://h/","proxy":"proxy:3128"`, `mcpServers.s.proxy: must be a URL that starts with "http://", "https://" or "socks5://" and has a host`},
		{`"url":"https://h/","caFile":"ca.pem"`, "mcpServers.s.caFile: must be an absolute path"},
		{`"url":"https://h/","clientCert":"/c.pem"`, "mcpServers.s: clientCert and clientKey belong together"},
		{`"url":"https://h/","type":5`, "mcpServers.s.type: must be a string"},
		{`"command":"x\u0000y"`, "mcpServers.s.command: must not hold a zero byte"},
		{`"command":"x","tools":{"deny":["a"]}`, "mcpServers.s.tools: deny: " + later},
		{`"command":"x","tools":{"allow":["a"],"deny":[]}`, "mcpServers.s.tools: allow, deny: " + later},
		{`"command":"x","tools":{"block":["a"]}`, "mcpServers.s.tools.block: unknown key; known are allow, deny"},
		{`"command":"x","validate":{"input":true}`, "mcpServers.s.validate: input: " + later},
		{`"command":"x","rate":{"perPrincipal":"20/s"}`, "mcpServers.s.rate: perPrincipal: " + later},
		{`"command":"x","attribution":"exact"`, `mcpServers.s.attribution: "exact": ` + later},
		{`"command":"x","roots":"/"`, "mcpServers.s.roots: must be a list"},
		{`"command":"x","sse":1`, "mcpServers.s.sse: must be true or false"},
	} {
		t.Run(c.members, func(t *testing.T) {
			config, _, err := parse(t, `{"mcpServers":{"s":{`+c.members+`},"other":{"command":"x"}}}`)
			if err != nil {
				t.Fatal(err)
			}
			contains(t, problem(config.Servers[0]), c.want)
			if config.Servers[1].Problem != nil {
				t.Errorf("the other server has a problem: %v", config.Servers[1].Problem)
			}
		})
	}
}

func TestEntryThatIsNoObject(t *testing.T) {
	c, _, err := parse(t, `{"mcpServers":{"s":5,"other":{"command":"x"}}}`)
	if err != nil || problem(c.Servers[0]) != "c.json:1:20: mcpServers.s: must be an object" || c.Servers[1].Problem != nil {
		t.Errorf("%+v, %v", c, err)
	}
}

// What a later version will act on is said, unless it protects something.
func TestLaterKeys(t *testing.T) {
	for _, member := range []string{`"oauth":{"clientId":"x"}`,
		`"tasks":true`} {
		s, warnings := serverOf(t, `"command":"x",`+member)
		sameServer(t, s, plain(func(*Server) {}))
		contains(t, strings.Join(warnings, "\n"), "not used yet by this version")
	}
	for _, member := range []string{`"attribution":"auto"`, `"tools":{}`, `"rate":{}`, `"validate":{}`} {
		s, warnings := serverOf(t, `"command":"x",`+member)
		if s.Problem != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, %v", member, s.Problem, warnings)
		}
	}
}

// A disabled server may be broken: it is a warning, and no reason to fail a check.
func TestDisabledServer(t *testing.T) {
	s, warnings := serverOf(t, `"command":"${NOPE}","disabled":true`)
	if s.Problem != nil || !s.Disabled {
		t.Errorf("%+v", s)
	}
	contains(t, strings.Join(warnings, "\n"), "NOPE is not set; set it or write ${NOPE:-default} (the server is disabled)")
}

func TestPlainHTTP(t *testing.T) {
	for members, good := range map[string]bool{`"url":"http://127.0.0.1:1/"`: true, `"url":"http://localhost/"`: true, `"url":"http://[::1]:2/"`: true,
		`"url":"http://h/","allowHttp":true`: true, `"allowHttp":true,"url":"http://h/"`: true, `"url":"http://10.0.0.1/"`: false} {
		if s, _ := serverOf(t, members); (s.Problem == nil) != good {
			t.Errorf("%s: %v", members, s.Problem)
		}
	}
}

// Case 91.
func TestExpansion(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	for name, text := range map[string]string{"secret": "from file\n", "crlf": "x\r\n", "two": "a\n\n", "empty": "\n", "big": strings.Repeat("x", maxSecretBytes), "bigger": strings.Repeat("x", maxSecretBytes+1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := &file{name: filepath.Join(dir, "c.json"), dir: dir, env: env}
	for in, want := range map[string]string{
		"$HOME": "$HOME", "a$b": "a$b", "$5": "$5", "$$": "$$", "%X%": "%X%", "$": "$", "{x}": "{x}", "": "",
		"${TOKEN}": "s3cret", "a${TOKEN}b${HOST}": "as3cretbh.example", "${env:TOKEN}": "s3cret", "${EMPTY}": "",
		"${NOPE:-d}": "d", "${NOPE:-}": "", "${EMPTY:-d}": "d", "${TOKEN:-d}": "s3cret", "${env:NOPE:-d e}": "d e", "$${TOKEN}": "$s3cret",
		"${NOPE:-$TOKEN}": "$TOKEN", "${file:" + secret + "}": "from file", "${file:secret}": "from file", "${file:crlf}": "x", "${file:two}": "a\n",
	} {
		if got, err := f.expand(in); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"${NOPE}": "${NOPE}: the variable NOPE is not set; set it or write ${NOPE:-default}", "${env:NOPE}": "the variable NOPE is not set",
		"${keyring:x}": "the keyring is not supported yet by this version", "${input:x}": "a bridge cannot ask for inputs",
		"${}": "${} cannot be understood", "${a b}": "cannot be understood", "${1}": "cannot be understood", "${a-b}": "cannot be understood",
		"${env:}": "cannot be understood", "${file:}": "cannot be understood", "${other:x}": "cannot be understood",
		"x${TOKEN": `"${TOKEN" has no closing brace`, "${file:none}": "cannot read secret", "${file:empty}": "the file is empty",
		"${file:bigger}": "more than 65536 bytes",
	} {
		_, err := f.expand(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", in, err, want)
		}
	}
	if got, err := f.expand("${file:big}"); err != nil || len(got) != maxSecretBytes {
		t.Errorf("secret of the largest size: %d bytes, %v", len(got), err)
	}
}

// Variables are replaced in these members and nowhere else; the problem names entry and key.
func TestWhereExpansionHappens(t *testing.T) {
	s, _ := serverOf(t, `"command":"c-${TOKEN}","args":["$HOME","a-${TOKEN}","a$b"],"env":{"E":"${TOKEN}"},"cwd":"/${TOKEN}","mirror":{"${TOKEN}":{"p":"H"}}`)
	sameServer(t, s, plain(func(s *Server) {
		s.Command, s.Args, s.Cwd = "c-s3cret", []string{"$HOME", "a-s3cret", "a$b"}, "/s3cret"
		s.Env, s.Mirror = map[string]string{"E": "s3cret"}, map[string]map[string]string{"${TOKEN}": {"p": "H"}}
	}))
	for members, place := range map[string]string{
		`"command":"${NOPE}"`: "mcpServers.s.command: ${NOPE}", `"command":"x","args":["$HOME","${NOPE}","a$b"]`: "mcpServers.s.args[1]: ${NOPE}",
		`"command":"x","env":{"K":"${NOPE}"}`: "mcpServers.s.env.K: ${NOPE}", `"command":"x","cwd":"${NOPE}"`: "mcpServers.s.cwd: ${NOPE}",
		`"url":"${NOPE}"`: "mcpServers.s.url: ${NOPE}", `"url":"https://h/","headers":{"K":"${NOPE}"}`: "mcpServers.s.headers.K: ${NOPE}",
	} {
		s, _ := serverOf(t, members)
		contains(t, problem(s), place)
		if len(s.Problem.(Errors)) != 1 {
			t.Errorf("%s: %v", members, s.Problem)
		}
	}
}

// Case 102.
func TestCommandAsOneString(t *testing.T) {
	existing := write(t, "my server", "")
	for members, want := range map[string]string{
		`"command":"npx -y x"`:                           `"npx -y x" is not one program and no shell splits it; write "command":"npx","args":["-y","x"]`,
		`"command":"npx -y x","args":["z"]`:              `write "command":"npx","args":["-y","x","z"]`,
		`"command":"A=1 B= srv 'a b' \"\" c"`:            `write "command":"srv","args":["a b","","c"],"env":{"A":"1","B":""}`,
		`"command":"srv C:\\dir x"`:                      `write "command":"srv","args":["C:\\dir","x"]`,
		`"command":"A=1"`:                                `"A=1" is not one program`,
		`"command":"srv ${TOKEN}"`:                       `write "command":"srv","args":["${TOKEN}"]`,
		`"command":"plain"`:                              "",
		`"command":"/no/such/plain"`:                     "",
		`"command":"` + filepath.ToSlash(existing) + `"`: "",
		`"command":"my server","cwd":"` + filepath.ToSlash(filepath.Dir(existing)) + `"`: "",
	} {
		s, _ := serverOf(t, members)
		contains(t, problem(s), want)
		if strings.Contains(problem(s), "s3cret") {
			t.Errorf("secret in %v", s.Problem)
		}
	}
}

// Case 26.
func TestContainers(t *testing.T) {
	const noInput, terminal = "run without -i gives the server no input", "run with -t changes what the server writes"
	for args, want := range map[string]string{
		`["run","--rm","img"]`: noInput, `["run","-i","--rm","img"]`: "", `["run","--interactive","img"]`: "", `["run","-it","img"]`: terminal,
		`["run","-i","--tty","img"]`: terminal, `["run","-di","img"]`: "", `["ps"]`: "", `["run","-eit=1","img"]`: noInput,
	} {
		for _, program := range []string{"docker", "podman", "/usr/bin/docker"} {
			_, warnings := serverOf(t, `"command":"`+program+`","args":`+args)
			contains(t, strings.Join(warnings, "\n"), want)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"args", "command", "timeout"}
	for in, want := range map[string]string{"comand": "command", "comamd": "command", "commmmand": "command", "cmd": "", "Args": "args", "arg": "args",
		"tags": "", "timeouts": "timeout", "timeout_ms": "", "": ""} {
		if got := nearestOf(in, words); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

// How a remote server is reached: what stands in the file is read, a certificate that is not checked is warned of, and a proxy's
// password is not shown (case 93, SEC-09).
func TestWay(t *testing.T) {
	s, warnings := serverOf(t, `"url":"https://h/mcp","proxy":"http://me:pass@p.example:3128","insecure":true`)
	if want := (Way{Proxy: "http://me:pass@p.example:3128", Insecure: true}); s.Way != want {
		t.Errorf("%+v", s.Way)
	}
	contains(t, strings.Join(warnings, ""), "mcpServers.s.insecure: the certificate of the server is not checked")
	shown := s.show()
	if shown.Proxy != "http://***@p.example:3128" || !shown.Insecure {
		t.Errorf("shown as %+v", shown)
	}
	if other, _ := serverOf(t, `"url":"https://h/mcp"`); sameEntry(s, other) {
		t.Error("another way to the server is no change of it")
	}
}

// Settings for servers that ask their clients something, and what is wrong with them.
func TestAskSettings(t *testing.T) {
	s, _ := serverOf(t, `"command":"x","profile":"fixed"`)
	if len(s.Profile) != 5 {
		t.Errorf("fixed is %q", s.Profile)
	}
	if s, _ = serverOf(t, `"command":"x","profile":[]`); s.Profile == nil || len(s.Profile) != 0 {
		t.Errorf("no feature is %v, which must not be auto", s.Profile)
	}
	for _, member := range []string{`"ask":{"ttl":"0s"}`, `"ask":{"window":"2s"}`, `"ask":{"window":0}`, `"ask":{"perPrincipal":0}`, `"ask":{"perLink":10001}`,
		`"ask":{"x":1}`, `"profile":"none"`, `"profile":["elicitation"]`, `"overDeclare":1`, `"roots":["/srv"]`, `"roots":["https://h/x"]`, `"restartReads":"no"`} {
		if s, _ := serverOf(t, `"command":"x",`+member); s.Problem == nil {
			t.Errorf("%s is taken", member)
		}
	}
}
