// Package listen tests on the real program who is told of changes: many listening clients of both eras on one legacy server
// that announces changes all the time and is killed meanwhile (translation 8.2, 8.4, 19 row 8).
package listen

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpbridge/test/internal/rig"
)

var shop *rig.Shop

func TestMain(m *testing.M) {
	code := rig.Run(m, &shop)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

const (
	modernListeners = 100
	legacySessions  = 20
	kills           = 5
	beat            = 10 * time.Millisecond // between two changes
	patience        = 30 * time.Second
	uri             = "counter://a"
)

// noted is what of a notification matters here.
type noted struct {
	ID     any
	Method string
	Params struct {
		V    int // which change it tells of, 0 if the bridge says that something may have changed
		URI  string
		Meta map[string]any `json:"_meta"`
	}
	Result json.RawMessage
}

// listener is one client and what it has heard.
type listener struct {
	name string
	id   string // of the listen of a modern one
	body io.Closer

	mu        sync.Mutex
	acked     bool
	lists     int // newest change of the tools it was told of
	updates   int // newest change of the resource
	synthetic int
	problems  []string
}

func (l *listener) hear(n noted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case n.Method == "notifications/subscriptions/acknowledged":
		l.acked = true
	case !l.acked:
		l.problems = append(l.problems, "heard "+n.Method+" before the acknowledgement")
	case n.Method == "notifications/tools/list_changed":
		l.lists = max(l.lists, n.Params.V)
	case n.Method == "notifications/resources/updated" && n.Params.URI == uri:
		l.updates = max(l.updates, n.Params.V)
	case n.Method == "notifications/resources/list_changed":
		if l.id != "" {
			l.problems = append(l.problems, "heard of a list it did not ask for")
		}
	default:
		l.problems = append(l.problems, "heard "+n.Method)
	}
	if n.Method != "" && n.Params.V == 0 && n.Method != "notifications/subscriptions/acknowledged" {
		l.synthetic++
	}
	if l.id != "" && n.Params.Meta["io.modelcontextprotocol/subscriptionId"] != l.id {
		l.problems = append(l.problems, fmt.Sprintf("a notification has the subscription id %v", n.Params.Meta))
	}
}

// knows reports whether the listener was told of a change, or of a later one.
func (l *listener) knows(v int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists >= v && l.updates >= v
}

func (l *listener) rest() (synthetic int, problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.synthetic, l.problems
}

// follow reads an event stream to its end.
func (l *listener) follow(r io.Reader) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		data, ok := bytes.CutPrefix(in.Bytes(), []byte("data: "))
		if !ok || len(data) == 0 {
			continue
		}
		var n noted
		if err := json.Unmarshal(data, &n); err != nil {
			l.mu.Lock()
			l.problems = append(l.problems, err.Error())
			l.mu.Unlock()
			continue
		}
		l.hear(n)
	}
}

// city is the bridge with everybody who listens.
type city struct {
	url    string
	http   *http.Client
	log    string // of the server
	people []*listener
	wg     sync.WaitGroup
}

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func (c *city) post(t testing.TB, header map[string]string, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return c.do(t, r, header)
}

func (c *city) do(t testing.TB, r *http.Request, header map[string]string) *http.Response {
	t.Helper()
	r.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range header {
		r.Header.Set(k, v)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// closed reads a response to its end.
func closed(t testing.TB, resp *http.Response, status int) []byte {
	t.Helper()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		t.Fatalf("status %d, want %d: %s, %v", resp.StatusCode, status, b, err)
	}
	return b
}

func (c *city) follow(l *listener, resp *http.Response) {
	l.body = resp.Body
	c.people = append(c.people, l)
	c.wg.Go(func() { l.follow(resp.Body) })
}

func modernHeader(method, name string) map[string]string {
	h := map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	if name != "" {
		h["Mcp-Name"] = name
	}
	return h
}

// modern opens a listen of a modern client.
func (c *city) modern(t testing.TB, i int) {
	t.Helper()
	l := &listener{name: fmt.Sprint("modern ", i), id: fmt.Sprint("listen-", i)}
	resp := c.post(t, modernHeader("subscriptions/listen", ""), `{"jsonrpc":"2.0","id":"`+l.id+
		`","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["`+uri+`"]},`+envelope+`}}`)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("listen: %s", closed(t, resp, http.StatusOK))
	}
	c.follow(l, resp)
}

// legacy opens a session that listens and is subscribed.
func (c *city) legacy(t testing.TB, i int) {
	t.Helper()
	l := &listener{name: fmt.Sprint("legacy ", i), acked: true}
	resp := c.post(t, nil, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	closed(t, resp, http.StatusOK)
	h := map[string]string{"Mcp-Session-Id": resp.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version": "2025-11-25"}
	closed(t, c.post(t, h, `{"jsonrpc":"2.0","method":"notifications/initialized"}`), http.StatusAccepted)
	r, err := http.NewRequest(http.MethodGet, c.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.follow(l, c.do(t, r, h))
	if b := closed(t, c.post(t, h, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"`+uri+`"}}`), http.StatusOK); !bytes.Contains(b, []byte(`"result"`)) {
		t.Fatalf("subscribe: %s", b)
	}
}

// announce has the server tell of a change, and reports whether it did.
func (c *city) announce(t testing.TB, method, params string) bool {
	resp := c.post(t, modernHeader("tools/call", "announce"), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"announce","arguments":{"method":"`+
		method+`","params":`+params+`},`+envelope+`}}`)
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return bytes.Contains(b, []byte(`"structuredContent"`))
}

// change makes change number v of both kinds, as often as it takes.
func (c *city) change(t testing.TB, v int) {
	t.Helper()
	for _, call := range [][2]string{
		{"notifications/tools/list_changed", fmt.Sprintf(`{"v":%d}`, v)},
		{"notifications/resources/updated", fmt.Sprintf(`{"uri":%q,"v":%d}`, uri, v)},
	} {
		for deadline := time.Now().Add(patience); !c.announce(t, call[0], call[1]); {
			if time.Now().After(deadline) {
				t.Fatal("the server cannot be made to announce a change")
			}
		}
	}
}

// lines returns the log of the server: what each process was sent.
func (c *city) lines(t testing.TB) [][2]string {
	t.Helper()
	text, err := os.ReadFile(c.log)
	if err != nil {
		t.Fatal(err)
	}
	var list [][2]string
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		pid, rest, _ := strings.Cut(line, " ")
		list = append(list, [2]string{pid, rest})
	}
	return list
}

// await waits until everybody knows of a change.
func (c *city) await(t testing.TB, v int) {
	t.Helper()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	deadline := time.After(patience)
	for _, l := range c.people {
		for !l.knows(v) {
			select {
			case <-deadline:
				t.Fatalf("%s was not told of change %d: %+v", l.name, v, l)
			case <-tick.C:
			}
		}
	}
}

// 100 modern listeners and 20 legacy sessions share a process that announces a change every 10 ms and is killed five times: nobody
// misses that something changed, nobody hears anything before its acknowledgement or of what it did not ask for, and each process
// is subscribed to the resource once.
func TestManyListeners(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	command := shop.Build(t, "./test/fakemcp/counter")
	h := shop.House(t, fmt.Sprintf(`"mcpServers":{"s":{"command":%q,"args":["-log",%q],"isolation":"shared","protocol":"legacy","restart":{"initial":"20ms","resetAfter":"100ms","breaker":"100/60s"}}}`, command, log))
	h.Start(t)
	c := &city{url: h.URL("s"), log: log, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}}}
	t.Cleanup(func() {
		for _, l := range c.people {
			_ = l.body.Close()
		}
		c.wg.Wait()
		c.http.CloseIdleConnections()
	})
	for i := range modernListeners {
		c.modern(t, i)
		if i < legacySessions {
			c.legacy(t, i)
		}
	}
	v := 0
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for k := range kills + 1 {
		for range 30 {
			<-tick.C
			v++
			c.change(t, v)
		}
		c.await(t, v)
		if k < kills {
			lines := c.lines(t)
			pid, _ := strconv.Atoi(lines[len(lines)-1][0])
			p, err := os.FindProcess(pid)
			if err == nil {
				err = p.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, l := range c.people {
		synthetic, problems := l.rest()
		if synthetic == 0 { // of one restart at least; for a slow reader newer news takes the place of older
			t.Errorf("%s was never told that something may have changed", l.name)
		}
		for _, p := range problems {
			t.Errorf("%s %s", l.name, p)
		}
	}
	held := map[string]int{}
	for _, line := range c.lines(t) {
		switch {
		case strings.HasPrefix(line[1], "start"):
			held[line[0]] = 0
		case strings.Contains(line[1], `"resources/subscribe"`):
			held[line[0]]++
		case strings.Contains(line[1], `"resources/unsubscribe"`):
			held[line[0]]--
		}
	}
	if len(held) != kills+1 {
		t.Errorf("%d processes were started, want %d", len(held), kills+1)
	}
	for pid, n := range held {
		if n != 1 {
			t.Errorf("process %s holds %d subscriptions, want 1", pid, n)
		}
	}
}
