package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestEmptyFileHasDefaults(t *testing.T) {
	c, warnings, err := parse(t, "{}")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	want := &Config{
		Listen: []string{"127.0.0.1:8420"},
		Limits: Limits{
			BodyBytes: 67108864, BodyTotal: 536870912, LineBytes: 67108864, Sessions: 1000, Processes: 64,
			SessionIdle: 30 * time.Minute, SessionLife: 7 * 24 * time.Hour, QueueWait: 10 * time.Second, Shutdown: 3 * time.Second,
		},
		Log: Log{Level: "info", MaxMB: 10, Keep: 5},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Everything this version acts on, with comments, trailing commas and a byte order mark.
func TestFullFile(t *testing.T) {
	lazy := true
	c, warnings, err := parse(t, "\ufeff"+`{
	"$schema": "./schema.json",
	"listen": ["127.0.0.1:1", "[::1]:2", "localhost:3", "unix:///run/x.sock"], // loopback only
	"allowedHosts": ["bridge.example", "h:*"], "allowedOrigins": ["https://app.example", "null"],
	"limits": {"bodyBytes": 1024, "bodyTotalBytes": 1048577, "lineBytes": 2048, "sessions": 3, "processes": 4,
		"sessionIdle": "5m", "sessionLife": "6h", "queueWait": "7s", "shutdown": "8s"},
	"keys": ["${KEY}", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="],
	"log": {"level": "debug", "file": "/var/log/x", "maxMB": 1, "keep": 0},
	/* the servers */
	"mcpServers": {
		"files": {
			"command": "npx", "args": ["-y", "pkg", "/srv"], "env": {"TOKEN": "${env:TOKEN}"}, "cwd": "/srv", "inheritEnv": true,
			"isolation": "shared", "lazy": true, "idleStop": "1m", "maxProcesses": 2, "spare": 1, "required": true, "timeout": "90s",
			"startTimeout": "2m", "protocol": "legacy",
			"restart": {"initial": "1s", "max": "2s", "resetAfter": "3s", "breaker": "4/5s"},
			"mirror": {"read_file": {"path": "Path", "opt.depth": "Depth"}}, "cache": {"ttlMs": 5, "scope": "public"},
			"logLevel": "warning", "disabled": false,
			"ask": {"ttl": "1m", "life": "2m", "window": "0", "perPrincipal": 3, "perLink": 4}, "profile": ["roots", "sampling.tools"],
			"overDeclare": true, "roots": ["file:///r"], "restartReads": false, "sse": false,
		},
		"linear": {"url": "https://${HOST}/mcp?k=v", "headers": {"X-Key": "${TOKEN}"}},
	},
}`)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	files := Server{
		Name: "files", Command: "npx", Args: []string{"-y", "pkg", "/srv"}, Env: map[string]string{"TOKEN": "s3cret"}, Cwd: "/srv",
		InheritEnv: true, Isolation: "shared", Lazy: &lazy, IdleStop: time.Minute, MaxProcesses: 2, Spare: 1, Required: true,
		Timeout: 90 * time.Second, StartTimeout: 2 * time.Minute, Protocol: "legacy",
		Restart:  Restart{Initial: time.Second, Max: 2 * time.Second, ResetAfter: 3 * time.Second, Breaker: "4/5s", BreakerCount: 4, BreakerWindow: 5 * time.Second},
		Mirror:   map[string]map[string]string{"read_file": {"path": "Path", "opt.depth": "Depth"}},
		Cache:    Cache{TTLMs: 5, Scope: "public"},
		LogLevel: "warning",
		Ask:      Ask{TTL: time.Minute, Life: 2 * time.Minute, Window: -1, PerPrincipal: 3, PerLink: 4},
		Profile:  []string{"roots", "sampling.tools"}, OverDeclare: true, Roots: []string{"file:///r"},
	}
	linear := newServer("linear")
	linear.URL, linear.Headers = "https://h.example/mcp?k=v", map[string]string{"X-Key": "s3cret"}
	want := &Config{
		Listen:       []string{"127.0.0.1:1", "[::1]:2", "localhost:3", "unix:///run/x.sock"},
		AllowedHosts: []string{"bridge.example", "h:*"}, AllowedOrigins: []string{"https://app.example", "null"},
		Limits: Limits{BodyBytes: 1024, BodyTotal: 1048577, LineBytes: 2048, Sessions: 3, Processes: 4,
			SessionIdle: 5 * time.Minute, SessionLife: 6 * time.Hour, QueueWait: 7 * time.Second, Shutdown: 8 * time.Second},
		Keys:    []string{testKey, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
		Log:     Log{Level: "debug", File: "/var/log/x", MaxMB: 1},
		Servers: []Server{files, linear},
	}
	if diff := cmp.Diff(want, c, cmpopts.IgnoreUnexported(Server{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An entry without settings has the defaults of design and contract.
func TestServerDefaults(t *testing.T) {
	s, warnings := serverOf(t, `"command":"x"`)
	if len(warnings) > 0 {
		t.Error(warnings)
	}
	sameServer(t, s, Server{
		Name: "s", Command: "x", IdleStop: 10 * time.Minute, MaxProcesses: 8, Timeout: 5 * time.Minute, StartTimeout: time.Minute,
		Protocol: "auto", Restart: Restart{Initial: 500 * time.Millisecond, Max: 30 * time.Second, ResetAfter: 30 * time.Second, Breaker: "5/60s", BreakerCount: 5, BreakerWindow: time.Minute},
		Cache: Cache{Scope: "private"}, LogLevel: "info", RestartReads: true, SSE: true,
		Ask: Ask{TTL: 10 * time.Minute, Life: time.Hour, Window: 30 * time.Millisecond, PerPrincipal: 32, PerLink: 64},
	})
}

// What makes the whole file unusable, with its place.
func TestFileErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"syntax", "{\n  \"listen\": ,\n}", "c.json:2:13: not valid JSON: invalid character ',' at start of value"},
		{"cut", "{\n  \"a\": [1,", "c.json:2:11: not valid JSON: the file ends in the middle: a closing bracket, quote or comment end is missing"},
		{"empty", "", "c.json:1:1: not valid JSON: the file ends in the middle: a closing bracket, quote or comment end is missing"},
		{"trailing", "{}{}", "c.json:1:3: not valid JSON: invalid character '{' after top-level value"},
		{"utf8", "{\n\"é\xff\": 1}", "c.json:2:3: not valid UTF-8"},
		{"no object", "[]", "c.json:1:1: must be an object"},
		{"misspelt", "{\n  \"lisen\": \"x\"}", `c.json:2:3: lisen: unknown key; did you mean "listen"?`},
		{"misspelt case", `{"allowedhosts": []}`, `c.json:1:2: allowedhosts: unknown key; did you mean "allowedHosts"?`},
		{"twice", `{"log": {}, "log": {}}`, "c.json:1:13: log: the key stands twice"},
		{"twice below", `{"log": {"keep": 1, "keep": 2}}`, "c.json:1:21: log.keep: the key stands twice"},
		{"server twice", `{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`, "c.json:1:40: mcpServers.a: the key stands twice"},
		{"unknown below", `{"log": {"colour": true}}`, "c.json:1:10: log.colour: unknown key; known are file, keep, level, maxMB"},
		{"misspelt below", `{"limits": {"session": 1}}`, `c.json:1:13: limits.session: unknown key; did you mean "sessions"?`},
		{"column in characters", `{"log": {"file": "größe", "keep": "x"}}`, "c.json:1:35: log.keep: must be an integer"},
		{"tls", `{"tls": {"cert": "c"}}`, "c.json:1:9: tls: not supported yet by this version; remove it"},
		{"auth", `{"auth": {}}`, "c.json:1:10: auth: not supported yet by this version; remove it"},
		{"level", `{"log": {"level": "warning"}}`, `c.json:1:19: log.level: "warning" is not known; use one of debug, error, info, trace, warn`},
		{"level near", `{"log": {"level": "infos"}}`, `c.json:1:19: log.level: "infos" is not known; did you mean "info"?`},
		{"level no string", `{"log": {"level": 5}}`, "c.json:1:19: log.level: must be a string"},
		{"servers no object", `{"mcpServers": 5}`, "c.json:1:16: mcpServers: must be an object"},
		{"listen no string", `{"listen": 8420}`, "c.json:1:12: listen: must be a string"},
		{"listen none", `{"listen": []}`, "c.json:1:12: listen: must name at least one address"},
		{"listen twice", `{"listen": ["[::1]:1", "[::1]:1"]}`, `c.json:1:24: listen[1]: "[::1]:1" stands twice`},
		{"listen no port", `{"listen": "127.0.0.1"}`, `c.json:1:12: listen: cannot listen on "127.0.0.1": write "host:port" or "unix:///path"`},
		{"listen relative", `{"listen": "unix://x"}`, `c.json:1:12: listen: cannot listen on "unix://x": write unix:///absolute/path`},
		{"listen beyond", `{"listen": "0.0.0.0:80"}`, `c.json:1:12: listen: "0.0.0.0:80" can be reached from other machines; that needs auth, which is not supported yet by this version; remove it`},
		{"host", `{"allowedHosts": ["http://x"]}`, `c.json:1:19: allowedHosts[0]: "http://x" is no host; write "bridge.example", "bridge.example:8420" or "bridge.example:*"`},
		{"origin", `{"allowedOrigins": ["https://x/"]}`, `c.json:1:21: allowedOrigins[0]: "https://x/" is no origin; write scheme, host and port only, such as "https://app.example"`},
		{"limit unit", "{\n  \"limits\": {\"queueWait\": 10}}", `c.json:2:27: limits.queueWait: must be a duration such as "30s", "10m" or "1h30m"`},
		{"limit beyond", `{"limits": {"shutdown": "11m"}}`, "c.json:1:25: limits.shutdown: must be above 0 and at most 10m"},
		{"limit misspelt", `{"limits": {"sessionidle": "1m"}}`, `c.json:1:13: limits.sessionidle: unknown key; did you mean "sessionIdle"?`},
		{"state relative", `{"stateDir": "state"}`, "c.json:1:14: stateDir: must be an absolute path"},
		{"state unset", `{"stateDir": "${NOPE}"}`, "c.json:1:14: stateDir: ${NOPE}: the variable NOPE is not set; set it or write ${NOPE:-default}"},
		{"state empty", `{"stateDir": ""}`, "c.json:1:14: stateDir: must be an absolute path"},
		{"state number", `{"stateDir": 1}`, "c.json:1:14: stateDir: must be a string"},
		{"state misspelt", `{"statedir": "/x"}`, `c.json:1:2: statedir: unknown key; did you mean "stateDir"?`},
		{"control relative", `{"control": "x.sock"}`, "c.json:1:13: control: must be an absolute path"},
		{"control misspelt", `{"controll": "/x"}`, `c.json:1:2: controll: unknown key; did you mean "control"?`},
		{"keys no list", `{"keys": "x"}`, "c.json:1:10: keys: must be a list"},
		{"keys none", `{"keys": []}`, "c.json:1:10: keys: must name at least one key; remove it to use the key in the state folder"},
		{"keys misspelt", `{"key": []}`, `c.json:1:2: key: unknown key; did you mean "keys"?`},
		{"key number", `{"keys": [5]}`, "c.json:1:11: keys[0]: must be a string"},
		{"key unset", `{"keys": ["${env:NOPE}"]}`, "c.json:1:11: keys[0]: ${env:NOPE}: the variable NOPE is not set; set it or write ${NOPE:-default}"},
		{"log file unset", `{"log": {"file": "${NOPE}"}}`, "c.json:1:18: log.file: ${NOPE}: the variable NOPE is not set; set it or write ${NOPE:-default}"},
		{"all are told", `{"log": {"keep": -1, "maxMB": 1.5}}`, "c.json:1:18: log.keep: must be from 0 to 1000\nc.json:1:31: log.maxMB: must be an integer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := parse(t, c.text)
			wantError(t, err, c.want)
		})
	}
}

// Each number at its ends and one beyond.
func TestNumberLimits(t *testing.T) {
	for _, c := range []struct{ format, low, below, high, above string }{
		{`{"limits":{"bodyTotalBytes":%}}`, "1048576", "1048575", "68719476736", "68719476737"},
		{`{"limits":{"bodyBytes":%}}`, "1024", "1023", "1073741824", "1073741825"},
		{`{"limits":{"lineBytes":%}}`, "1024", "1023", "1073741824", "1073741825"},
		{`{"limits":{"sessions":%}}`, "1", "0", "1000000", "1000001"},
		{`{"limits":{"processes":%}}`, "1", "0", "10000", "10001"},
		{`{"log":{"maxMB":%}}`, "1", "0", "100000", "100001"},
		{`{"log":{"keep":%}}`, "0", "-1", "1000", "1001"},
		{`{"mcpServers":{"s":{"command":"x","maxProcesses":%}}}`, "1", "0", "1000", "1001"},
		{`{"mcpServers":{"s":{"command":"x","cache":{"ttlMs":%}}}}`, "0", "-1", "2147483647", "99999999999999999999"},
		{`{"limits":{"sessionIdle":%}}`, `"1ns"`, `"0s"`, `"720h"`, `"720h0m1s"`},
		{`{"limits":{"sessionLife":%}}`, `"1ns"`, `"0s"`, `"720h"`, `"720h0m1s"`},
		{`{"limits":{"queueWait":%}}`, `"1ns"`, `"0s"`, `"10m"`, `"10m0.000000001s"`},
		{`{"limits":{"shutdown":%}}`, `"1ns"`, `"-1ns"`, `"10m"`, `"10m0.000000001s"`},
		{`{"mcpServers":{"s":{"command":"x","spare":%}}}`, "0", "-1", "8", "9"},
		{`{"mcpServers":{"s":{"command":"x","restart":{"breaker":%}}}}`, `"1/1ns"`, `"1/0s"`, `"1/720h"`, `"1/720h0m1s"`},
		{`{"mcpServers":{"s":{"command":"x","timeout":%}}}`, `"1ns"`, `"0s"`, `"720h"`, `"720h0m1s"`},
		{`{"mcpServers":{"s":{"command":"x","restart":{"breaker":%}}}}`, `"1/1s"`, `"0/1s"`, `"1000/1s"`, `"1001/1s"`},
	} {
		for value, good := range map[string]bool{c.low: true, c.below: false, c.high: true, c.above: false} {
			text := strings.Replace(c.format, "%", value, 1)
			config, _, err := parse(t, text)
			bad := err != nil || len(config.Servers) > 0 && config.Servers[0].Problem != nil
			if bad == good {
				t.Errorf("%s: good %v, want %v", text, !bad, good)
			}
		}
	}
}

func TestFileLimits(t *testing.T) {
	servers := func(n int) string { return `{"mcpServers":{` + repeat(`"s%d":{"command":"x"}`, n) + `}}` }
	nested := func(n int) string {
		return `{"inputs":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	padded := func(n int) string { return "{}" + strings.Repeat(" ", n-2) }
	for name, c := range map[string]struct{ good, bad, want string }{
		"servers": {servers(MaxServers), servers(MaxServers + 1), "more than 1000 servers"},
		"depth":   {nested(MaxDepth), nested(MaxDepth + 1), "more than 64 levels of nesting"},
		"bytes":   {padded(MaxFileBytes), padded(MaxFileBytes + 1), "more than 4194304 bytes"},
	} {
		if _, _, err := parse(t, c.good); err != nil {
			t.Errorf("%s n: %v", name, err)
		}
		_, _, err := parse(t, c.bad)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s n+1: %v", name, err)
		}
	}
}

// Brackets in strings and comments are no nesting.
func TestDepthCountsBracketsOnly(t *testing.T) {
	many := strings.Repeat("[", 2*MaxDepth)
	for _, text := range []string{`{"inputs": "` + many + `"}`, `{"inputs": "\"` + many + `"}`, "{ // " + many + "\n}", "{ /* \" " + many + " */ }", "{} // \"" + many} {
		if _, _, err := parse(t, text); err != nil {
			t.Errorf("%.30s: %v", text, err)
		}
	}
	if _, _, err := parse(t, `/* " */ `+many); err == nil || !strings.Contains(err.Error(), "levels of nesting") {
		t.Errorf("hidden behind a comment: %v", err)
	}
}

func TestLoad(t *testing.T) {
	path := write(t, "c.json", `{"mcpServers":{"s":{"command":"x"}}}`)
	c, _, err := Load(path)
	if err != nil || len(c.Servers) != 1 {
		t.Fatal(c, err)
	}
	_, _, err = Load(filepath.Join(filepath.Dir(path), "none.json"))
	if err == nil || !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("missing file: %v", err)
	}
	big := write(t, "big.json", "{}"+strings.Repeat(" ", MaxFileBytes))
	if _, _, err = Load(big); err == nil {
		t.Error("a file above the limit was read")
	}
}

func unwrapAll(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		if _, isPath := err.(*os.PathError); isPath {
			return err
		}
		err = inner.Unwrap()
	}
}

func TestForCommandAndDemo(t *testing.T) {
	c := ForCommand([]string{"prog", "$A", "${B}"})
	if c.Listen[0] != DefaultListen || len(c.Servers) != 1 {
		t.Fatalf("%+v", c)
	}
	want := newServer("default")
	want.Command, want.Args = "prog", []string{"$A", "${B}"}
	sameServer(t, c.Servers[0], want)
	want.Command, want.Args = "/bin/self", []string{"demo-server"}
	sameServer(t, ForDemo("/bin/self").Servers[0], want)
	if got := c.Show().Servers["default"]; got.Command != "prog" || len(got.Args) != 2 {
		t.Errorf("shown %+v", got)
	}
}

func TestDefaultPath(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", filepath.FromSlash("/xdg"))
	if dir, err := os.UserConfigDir(); err == nil && DefaultPath() != filepath.Join(dir, "mcpbridge", "config.json") {
		t.Errorf("got %s", DefaultPath())
	}
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true, "LOCALHOST:1": true, "unix:///x": true,
		"[::ffff:127.0.0.1]:1": true, "0.0.0.0:1": false, "[::]:1": false, ":1": false, "10.0.0.1:1": false, "host.example:1": false,
		"localhost.example:1": false, "127.0.0.1": false,
	} {
		if got := Loopback(addr); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
	for addr, good := range map[string]bool{"h:0": true, "h:65535": true, "h:65536": false, "h:-1": false, "h:http": false, "h": false, "unix:///a": true, "unix://a": false} {
		if err := CheckListen(addr); (err == nil) != good {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// Nothing secret is shown: not what variables hold, not literal values of env and headers, not URL queries.
func TestShowMasks(t *testing.T) {
	c, _, err := parse(t, `{"mcpServers": {
		"a": {"command": "${TOKEN}", "args": ["--key=${TOKEN}", "plain"], "env": {"K": "${TOKEN}", "L": "literal-secret"}, "cwd": "/${TOKEN}"},
		"b": {"url": "https://h/${TOKEN}?key=literal-secret&x", "headers": {"Authorization": "Bearer literal-secret"}},
		"broken": {"command": "x", "args": ["literal-secret"], "lazy": 5}}}`)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal(c.Show())
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"s3cret", "literal-secret", "broken"} {
		if strings.Contains(string(shown), secret) {
			t.Errorf("%s in %s", secret, shown)
		}
	}
	for _, part := range []string{`"command":"${TOKEN}","args":["--key=${TOKEN}","plain"],"env":{"K":"***","L":"***"},"cwd":"/${TOKEN}"`,
		`"url":"https://h/${TOKEN}?key=***\u0026x=***","headers":{"Authorization":"***"}`, `"idleStop":"10m"`, `"timeout":"5m"`, `"initial":"500ms"`} {
		contains(t, string(shown), part)
	}
}

func TestSpell(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Hour: "1h", 90 * time.Minute: "1h30m", 10 * time.Minute: "10m", 90 * time.Second: "1m30s",
		500 * time.Millisecond: "500ms", time.Hour + time.Second: "1h0m1s", 10 * time.Second: "10s"} {
		if got := spell(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
