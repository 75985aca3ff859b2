// Package stdio tests on the real program the fronts that are not Streamable HTTP: hosts that launch the bridge, with raw lines of both
// eras (translation 1.1, right column; STD-12), and clients over HTTP+SSE.
package stdio

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpbridge/test/internal/rig"
)

const (
	patience  = 20 * time.Second
	lineBytes = 4096
	envelope  = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)

var shop *rig.Shop

func TestMain(m *testing.M) {
	code := rig.Run(m, &shop)
	if code == 0 {
		http.DefaultClient.CloseIdleConnections()
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func house(t *testing.T) *rig.House {
	t.Helper()
	return shop.House(t, fmt.Sprintf(`"limits":{"lineBytes":%d},"mcpServers":{"s":{"command":%q,"args":["demo-server"]},"old":{"command":%[2]q,"args":["demo-server","--legacy-only"]},
		"off":{"command":%[2]q,"args":["demo-server"],"sse":false}}`, lineBytes, shop.Bridge(t)))
}

// host is a host with a bridge that it has launched.
type host struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	ended chan error
}

func launch(t *testing.T, server string) *host {
	t.Helper()
	h := &host{t: t, lines: make(chan string, 10_000), ended: make(chan error, 1)}
	h.cmd = exec.Command(shop.Bridge(t), "connect", server, "--config", house(t).Config)
	in, err := h.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	h.in = in
	go func() {
		s := bufio.NewScanner(out)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			h.lines <- s.Text()
		}
		close(h.lines)
		h.ended <- h.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = in.Close()
		_ = h.cmd.Process.Kill()
	})
	return h
}

func (h *host) say(lines ...string) {
	h.t.Helper()
	if _, err := io.WriteString(h.in, strings.Join(lines, "\n")+"\n"); err != nil {
		h.t.Fatal(err)
	}
}

// hear is the next line of the bridge.
func (h *host) hear() string {
	h.t.Helper()
	select {
	case line, ok := <-h.lines:
		if !ok {
			h.t.Fatal("the bridge has closed its output")
		}
		return line
	case <-time.After(patience):
		h.t.Fatal("the bridge says nothing")
	}
	return ""
}

// hears checks that the next line has all of some texts in it.
func (h *host) hears(texts ...string) string {
	h.t.Helper()
	line := h.hear()
	for _, text := range texts {
		if !strings.Contains(line, text) {
			h.t.Fatalf("the bridge says %s, want %s in it", line, text)
		}
	}
	return line
}

func (h *host) end() error {
	h.t.Helper()
	select {
	case err := <-h.ended:
		return err
	case <-time.After(patience):
		h.t.Fatal("the bridge does not end")
		return nil
	}
}

func request(id, method, params string) string {
	if params != "" {
		params = `,"params":{` + params + `}`
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"` + params + `}`
}

func modern(id, tool, args string) string {
	return request(id, "tools/call", `"name":"`+tool+`","arguments":`+args+`,`+envelope)
}

func hello(version string) string {
	return request("0", "initialize", `"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"x","version":"1"}`)
}

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

// Both eras on one pair of streams, message by message, and everything that belongs to neither (translation 1.1).
func TestClassification(t *testing.T) {
	for _, server := range []string{"s", "old"} {
		t.Run(server, func(t *testing.T) {
			h := launch(t, server)
			h.say(modern(`"m"`, "add", `{"a":1,"b":2}`))
			h.hears(`"id":"m"`, `\"sum\":3`)
			h.say(request("1", "tools/list", ""))
			h.hears(`"id":1`, `-32600`, `handshake_required`)
			for _, method := range []string{"server/discover", "subscriptions/listen", "tasks/update"} {
				h.say(request("2", method, ""))
				h.hears(`"id":2`, `-32602`)
			}
			h.say(`[]`, `[`+request("3", "ping", "")+`]`)
			h.hears(`-32600`)
			h.hears(`-32600`)
			h.say(`{"jsonrpc":"2.0","id":9,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`, initialized, "", "  ") // to nobody
			h.say(hello("2025-06-18"), initialized, request("4", "tools/call", `"name":"add","arguments":{"a":2,"b":2}`))
			h.hears(`"id":0`, `"protocolVersion":"2025-06-18"`)
			h.hears(`"id":4`, `\"sum\":4`)
			h.say(hello("2025-06-18"))
			h.hears(`"id":0`, `-32600`)
			h.say(modern("5", "add", `{"a":3,"b":2}`))
			h.hears(`"id":5`, `"resultType":"complete"`)
			h.say(request("6", "ping", ""))
			h.hears(`"id":6`, `"result":{}`)
			h.say(request("7", "server/discover", ""))
			h.hears(`"id":7`, `-32601`)
			h.say(request("8", "ping", envelope))
			h.hears(`"id":8`, `-32601`)
			h.say(request("9", "tools/list", strings.Replace(envelope, "2026-07-28", "2099-01-01", 1)))
			h.hears(`"id":9`, `-32022`)
			_ = h.in.Close()
			if err := h.end(); err != nil {
				t.Errorf("the bridge ends with %v", err)
			}
		})
	}
}

// Batches of the one revision that has them: one array of answers (FRM-24).
func TestBatch(t *testing.T) {
	h := launch(t, "s")
	h.say(hello("2025-03-26"), initialized)
	h.hears(`"id":0`)
	h.say(`[` + request("1", "ping", "") + `,` + request("2", "tools/call", `"name":"add","arguments":{"a":1,"b":1}`) + `,` + initialized + `,{"x":1}]`)
	var answers []struct{ ID json.RawMessage }
	if line := h.hear(); json.Unmarshal([]byte(line), &answers) != nil || len(answers) != 3 {
		t.Errorf("got %s", line)
	}
}

// Lines that are no message lose nothing: each gets its error, and what follows is served. The limit of a line at n and n+1.
func TestMalformed(t *testing.T) {
	h := launch(t, "s")
	for _, bad := range []string{"junk", "{", `{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`, "\xff\xfe", `"text"`, `{"jsonrpc":"1.0","id":1,"method":"x"}`, "\x00"} {
		h.say(bad)
		h.hears(`"error"`)
	}
	call := request("1", "tools/call", `"pad":"","name":"add","arguments":{"a":1,"b":1},`+envelope)
	fit := strings.Replace(call, `"pad":""`, `"pad":"`+strings.Repeat("x", lineBytes-len(call))+`"`, 1)
	h.say(fit)
	h.hears(`"id":1`, `"result"`)
	h.say(strings.Replace(fit, "xx", "xxx", 1))
	h.hears(`-32600`, "longer than 4096 bytes")
	h.say(call)
	h.hears(`"id":1`, `"result"`)
}

// One id is open once at a time (FRM-09); a cancelled request has no answer, whichever half it belongs to.
func TestOpenRequests(t *testing.T) {
	h := launch(t, "s")
	slow := `{"from":1000,"delayMs":60000}`
	h.say(modern("1", "countdown", slow), modern("1", "add", `{"a":1,"b":1}`))
	h.hears(`"id":1`, `duplicate_id`)
	h.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	h.say(hello("2025-11-25"), initialized, request("2", "tools/call", `"name":"countdown","arguments":`+slow), request("3", "ping", ""))
	h.hears(`"id":0`)
	h.hears(`"id":3`)
	h.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, modern("1", "add", `{"a":1,"b":1}`))
	h.hears(`"id":1`, `\"sum\":2`)
	_ = h.in.Close()
	if err := h.end(); err != nil {
		t.Error(err)
	}
	for line := range h.lines {
		t.Errorf("the bridge says %s too", line)
	}
}

// The host closes its end: what it has asked is still answered, each request once; then the bridge ends, and its server.
func TestHostLeaves(t *testing.T) {
	h := launch(t, "s")
	const n = 100
	var lines []string
	for i := range n {
		lines = append(lines, modern(fmt.Sprint(i), "countdown", `{"from":2,"delayMs":50}`))
	}
	h.say(lines...)
	_ = h.in.Close()
	seen := map[string]int{}
	for line := range h.lines {
		var m struct{ ID json.RawMessage }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		seen[string(m.ID)]++
	}
	if len(seen) != n {
		t.Errorf("%d requests have an answer, want %d", len(seen), n)
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("request %s has %d answers", id, times)
		}
	}
	if err := h.end(); err != nil {
		t.Error(err)
	}
}

// A signal ends the bridge while a request is open.
func TestInterrupted(t *testing.T) {
	h := launch(t, "s")
	h.say(modern("1", "countdown", `{"from":1000,"delayMs":60000}`), modern("2", "add", `{"a":1,"b":1}`))
	h.hears(`"id":2`)
	if err := h.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Skipf("this system has no interrupts: %v", err)
	}
	if err := h.end(); err != nil {
		t.Errorf("the bridge ends with %v", err)
	}
}

// What is wrong with the command line is said, with exit code 2 or 3.
func TestCommandLine(t *testing.T) {
	config := house(t).Config
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{nil, 2, "name one server"},
		{[]string{"nobody", "--config", config}, 3, `no server "nobody"`},
		{[]string{"http://h.example/mcp"}, 3, "allowHttp"},
		{[]string{"https://h.example/mcp", "--header", "nocolon"}, 2, "no colon"},
		{[]string{"https://h.example/mcp", "--protocol", "old"}, 2, "auto, modern or legacy"},
		{[]string{"s", "--config", config, "--header", "a: b"}, 2, "--header is for a URL"},
	} {
		cmd := exec.Command(shop.Bridge(t), append([]string{"connect"}, c.args...)...)
		out, err := cmd.CombinedOutput()
		exit, _ := errors.AsType[*exec.ExitError](err)
		if exit == nil || exit.ExitCode() != c.code || !strings.Contains(string(out), c.text) {
			t.Errorf("%v: %v, %s", c.args, err, out)
		}
	}
}

// HTTP+SSE: the first event says where to post; what belongs to no stream is 404; the session ends with its stream.
func TestEvents(t *testing.T) {
	h := house(t)
	h.Start(t)
	url := strings.TrimSuffix(h.URL("s"), "mcp") + "sse"
	open := func() (*http.Response, *bufio.Scanner, string) {
		resp, err := http.Get(url)
		if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%v, %+v", err, resp)
		}
		s := bufio.NewScanner(resp.Body)
		s.Buffer(nil, 1<<20)
		if !s.Scan() || s.Text() != "event: endpoint" || !s.Scan() {
			t.Fatalf("the stream begins with %q", s.Text())
		}
		return resp, s, "http://" + h.Addr + strings.TrimPrefix(s.Text(), "data: ")
	}
	post := func(to, body, kind string) int {
		resp, err := http.Post(to, kind, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	event := func(s *bufio.Scanner) string {
		for s.Scan() {
			if data, ok := strings.CutPrefix(s.Text(), "data: "); ok {
				return data
			}
		}
		t.Fatal("the stream has ended")
		return ""
	}
	one, events, to := open()
	defer one.Body.Close()
	for body, status := range map[string]int{hello("2024-11-05"): 202, "junk": 400} {
		if got := post(to, body, "application/json"); got != status {
			t.Errorf("%s: status %d, want %d", body, got, status)
		}
	}
	if got := event(events); !strings.Contains(got, `"protocolVersion":"2024-11-05"`) {
		t.Errorf("got %s", got)
	}
	post(to, initialized, "application/json")
	post(to, request("1", "tools/call", `"name":"add","arguments":{"a":1,"b":2}`), "application/json; charset=utf-8")
	if got := event(events); !strings.Contains(got, `\"sum\":3`) {
		t.Errorf("got %s", got)
	}
	two, _, other := open()
	if other == to {
		t.Error("two streams have one address")
	}
	_ = two.Body.Close()
	for deadline := time.Now().Add(patience); post(other, request("1", "ping", ""), "application/json") != 404; {
		if time.Now().After(deadline) {
			t.Fatal("the address of a stream that has ended is still there")
		}
	}
	for what, got := range map[string][2]int{
		"a forged token":  {post(to+"x", request("1", "ping", ""), "application/json"), 404},
		"no token":        {post(url, request("1", "ping", ""), "application/json"), 404},
		"text":            {post(to, request("1", "ping", ""), "text/plain"), 415},
		"turned off":      {post(strings.Replace(to, "/servers/s/", "/servers/off/", 1), "{}", "application/json"), 404},
		"foreign origin":  {foreign(t, url), 403},
		"another verb":    {verb(t, http.MethodDelete, url), 405},
		"json from a GET": {accepting(t, url, "application/json"), 406},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: status %d, want %d", what, got[0], got[1])
		}
	}
}

func status(t *testing.T, method, url string, header, value string) int {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(header, value)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func foreign(t *testing.T, url string) int {
	return status(t, http.MethodGet, url, "Origin", "https://evil.example")
}

func verb(t *testing.T, method, url string) int { return status(t, method, url, "X-Nothing", "1") }

func accepting(t *testing.T, url, kind string) int {
	return status(t, http.MethodGet, url, "Accept", kind)
}

// What doctor tells of servers of each era, and of one that cannot be used.
func TestDoctor(t *testing.T) {
	h := house(t)
	for server, speaks := range map[string]string{"s": "modern legacy", "old": "legacy"} {
		out, errOut, code := h.Run(t, "doctor", server, "--json")
		var x struct {
			Speaks  []string
			Clients map[string][]struct{ What, How string }
		}
		if err := json.Unmarshal([]byte(out), &x); err != nil || code != 0 || strings.Join(x.Speaks, " ") != speaks || len(x.Clients) != 5 {
			t.Errorf("%s: %v, %s %s", server, err, out, errOut)
			continue
		}
		how := map[string]string{}
		for _, c := range x.Clients["2026-07-28"] {
			how[strings.Fields(c.What)[0]] = c.How
		}
		if want := map[string]string{"s": "same", "old": "translated"}[server]; how["questions"] != want || how["tools"] != "same" {
			t.Errorf("%s: %v", server, how)
		}
	}
	h.Write(t, `"mcpServers":{"gone":{"command":"no-such-program-anywhere"}}`)
	if _, errOut, code := h.Run(t, "doctor", "gone"); code != 1 || !strings.Contains(errOut, "no-such-program-anywhere") {
		t.Errorf("a server that is not there: %d, %s", code, errOut)
	}
}
