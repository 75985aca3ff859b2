package exchange

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"mcpbridge/test/internal/e2e"
	"mcpbridge/test/internal/jscan"
)

const (
	metaVersion = "io.modelcontextprotocol/protocolVersion"
	metaInfo    = "io.modelcontextprotocol/clientInfo"
	metaCaps    = "io.modelcontextprotocol/clientCapabilities"
	metaServer  = "io.modelcontextprotocol/serverInfo"
)

// column is one pair of eras: a client in front, a server behind.
type column struct {
	name        string
	back        string // era of the server
	modernFront bool
	sameEra     bool
	bridge      *e2e.Bridge
	session     *e2e.Session
	child       *e2e.Child

	mu    sync.Mutex
	tag   int // of the last message
	lines int // of the server's input that have been looked at
}

// columns are the four pairs of eras; design rule 8.
func columns(t testing.TB) []*column {
	t.Helper()
	var list []*column
	for _, back := range []string{"legacy", "modern"} {
		for _, front := range []string{"legacy", "modern"} {
			c := &column{name: front + "-" + back, back: back, sameEra: front == back, modernFront: front == "modern"}
			c.bridge = startWith(t, shared, "-era", back)
			if c.modernFront {
				c.bridge.Modern(t, "0", "plain", "{}")
			} else {
				c.session = c.bridge.NewSession(t, "2025-11-25", "{}")
				c.session.Call(t, "0", "plain", "{}")
			}
			last := c.bridge.Hub.Started() - 1
			c.child = c.bridge.Hub.Child(t, last)
			list = append(list, c)
		}
	}
	return list
}

// sent is one message with the spans the bridge owns marked out by the values in them.
type sent struct {
	text      string
	id, token string   // raw
	pieces    []string // texts that must arrive as they are, in any era
}

// request builds a tools/call. The arguments, members nobody knows at every level, and the order are generated.
func (c *column) request(g *gen, payload string) sent {
	c.tag++
	s := sent{id: g.pick("7", `"7"`, `"i\u0064"`, "0", `""`, "-3", "9007199254740991"), token: g.pick(`"t"`, "12", `"\u0074 "`, "0")}
	vendor := g.extra()
	meta := []string{`"progressToken"` + g.ws() + ":" + s.token, vendor, `"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`}
	if c.modernFront {
		meta = append(meta, `"`+metaVersion+`":"2026-07-28"`, `"`+metaInfo+`":{"name":"e2e" ,"version":"1.10"}`, `"`+metaCaps+`": {"x":{"n":1.10}}`)
	}
	more := g.extra()
	params := []string{`"name":"never"`, `"arguments"` + g.ws() + ":" + g.ws() + payload, more, `"_meta"` + g.ws() + ":" + g.join(meta...)}
	top := g.extra()
	s.text = g.join(`"jsonrpc":"2.0"`, `"id"`+g.ws()+":"+s.id, `"method":"tools/call"`, `"params":`+g.join(params...), top,
		fmt.Sprintf(`"tag":"tag-%d-"`, c.tag))
	s.pieces = []string{payload, vendor, more, top}
	return s
}

// response builds the answer to it, under an id the bridge gave.
func (c *column) response(g *gen, id, payload string) sent {
	s := sent{id: id}
	vendor, more, top := g.extra(), g.extra(), g.extra()
	members := []string{`"content":[` + g.ws() + `{"type":"text","text":` + g.text(6) + `,` + g.extra() + `}]`, `"structuredContent":` + payload, more,
		`"_meta":` + g.join(vendor, g.extra())}
	if c.back == "modern" {
		members = append(members, `"resultType"`+g.ws()+`:"complete"`)
	}
	s.text = g.join(`"jsonrpc":"2.0"`, `"id":`+g.ws()+id, `"result":`+g.join(members...), top)
	s.pieces = []string{payload, vendor, more, top}
	return s
}

// exchange sends a call, checks what the server gets, has it answer, and checks what the client gets.
func (c *column) exchange(seed uint64, down, up string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	req := c.request(newGen(seed, true), down)
	type result struct {
		r   *e2e.Reply
		err error
	}
	done := make(chan result, 1)
	go func() {
		h := e2e.ModernHeader("tools/call", "never")
		if !c.modernFront {
			h = c.session.Header()
		}
		r, err := c.bridge.Try("POST", h, []byte(req.text))
		done <- result{r, err}
	}()
	line, next, err := c.child.Find(c.lines, fmt.Sprintf(`"tag":"tag-%d-"`, c.tag))
	if err != nil {
		select {
		case r := <-done:
			return fmt.Errorf("the request did not arrive: answered with %d %.300q (%v)", r.r.Status, r.r.Body, r.err)
		default:
			return err
		}
	}
	c.lines = next
	if err := c.checkDown(req, strings.TrimSuffix(string(line), "\n")); err != nil {
		return fmt.Errorf("client to server: %w", err)
	}
	id := string(jscan.Get(line, "id"))
	g := newGen(seed+1, false)
	step, res := c.progress(g, id), c.response(g, id, up)
	want, text := 1, res.text+"\n"
	if seed%2 == 0 { // a notification makes the answer an event stream
		want, text = 2, step.text+"\n"+text
	}
	if err := c.child.Say(text); err != nil {
		return err
	}
	r := <-done
	if r.err != nil || r.r.Status != 200 || len(r.r.Messages) != want {
		return fmt.Errorf("answered with %v, %+v", r.err, r.r)
	}
	if want == 2 {
		expected := flat(replaceAt(step.text, req.token, "params", "progressToken"))
		if got := flat(string(r.r.Messages[0])); got != expected {
			return fmt.Errorf("progress differs %s", difference(expected, got))
		}
	}
	if err := c.checkUp(req, res, string(r.r.Messages[want-1])); err != nil {
		return fmt.Errorf("server to client: %w", err)
	}
	return nil
}

// progress builds a progress notification for a request of that id.
func (c *column) progress(g *gen, id string) sent {
	params := g.join(`"progressToken"`+g.ws()+":"+id, `"progress":`+g.ws()+g.pick("1.50", "3", "1E1", "0.25"), `"message":`+g.text(5), g.extra(), `"_meta":`+g.join(g.extra()))
	return sent{text: g.join(`"jsonrpc":"2.0"`, `"method":"notifications/progress"`, `"params":`+params, g.extra())}
}

// checkDown compares what the server got with what the client sent.
func (c *column) checkDown(s sent, got string) error {
	id := string(jscan.Get([]byte(got), "id"))
	if token := string(jscan.Get([]byte(got), "params", "_meta", "progressToken")); token != id {
		return fmt.Errorf("progress token %s, want the id %s (PRG-01)", token, id)
	}
	want := replaceAt(s.text, id, "id")
	want = replaceAt(want, id, "params", "_meta", "progressToken")
	if c.sameEra {
		if want = flat(want); got != want {
			return fmt.Errorf("differs %s", difference(want, got))
		}
		return nil
	}
	a, b := parseNode(want), parseNode(got)
	strip := a // of the side that has the envelope
	if !c.modernFront {
		strip = b
	}
	strip.member("params").member("_meta").drop(metaVersion, metaInfo, metaCaps)
	return sameNode(a, b, s.pieces, got)
}

// checkUp compares what the client got with what the server sent.
func (c *column) checkUp(req, s sent, got string) error {
	want := replaceAt(s.text, req.id, "id")
	if c.sameEra {
		if want, got = flat(want), flat(got); got != want {
			return fmt.Errorf("differs %s", difference(want, got))
		}
		return nil
	}
	a, b := parseNode(want), parseNode(got)
	strip := b
	if !c.modernFront {
		strip = a
	}
	strip.member("result").drop("resultType")
	strip.member("result").member("_meta").drop(metaServer)
	return sameNode(a, b, s.pieces, flat(got))
}

func sameNode(want, got *node, pieces []string, text string) error {
	if a, b := want.String(), got.String(); a != b {
		return fmt.Errorf("differs %s", difference(a, b))
	}
	for _, p := range pieces {
		if p = flat(p); !strings.Contains(text, p) {
			return fmt.Errorf("the bytes of %.200q are not in it", p)
		}
	}
	return nil
}

// replaceAt puts another value in the place of the one at path.
func replaceAt(text, value string, path ...string) string {
	b := []byte(text)
	old := jscan.Get(b, path...) // a piece of b, so its place shows in its capacity
	at := cap(b) - cap(old)
	return text[:at] + value + text[at+len(old):]
}

// Whatever a message holds, all but the spans the bridge owns arrives as it was sent, both ways, in all four pairs of eras
// (issue acceptance 5; design rules 1 and 8; FRM-04, FRM-08, FRM-28 to FRM-31).
func TestFidelity(t *testing.T) {
	t.Parallel()
	list := columns(t)
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			large := 0
			rapid.Check(t, func(t *rapid.T) {
				seed := rapid.Uint64().Draw(t, "seed")
				size := rapid.OneOf(rapid.IntRange(2, 400), rapid.IntRange(2, 20_000), rapid.IntRange(60_000, 70_000)).Draw(t, "size")
				depth := rapid.OneOf(rapid.IntRange(1, 60), rapid.IntRange(1, 3000)).Draw(t, "depth")
				if large < 3 && rapid.IntRange(0, 9).Draw(t, "large") == 0 {
					large++
					size = 1 << 20
				}
				down, up := newGen(seed, true), newGen(seed+7, false)
				downText := `{"deep":` + down.deep(depth) + `,"wide":` + down.sized(size) + `}`
				upText := `{"deep":` + up.deep(depth) + `,"wide":` + up.sized(size) + `}`
				if err := c.exchange(seed, downText, upText); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
			})
		})
	}
}

// One message of a full MiB each way, in every column, whatever the property happened to draw.
func TestFidelityMiB(t *testing.T) {
	t.Parallel()
	for _, c := range columns(t) {
		for seed := range uint64(2) {
			down, up := newGen(seed, true).sized(1<<20), newGen(seed+99, false).sized(1<<20)
			if err := c.exchange(seed, down, up); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// FuzzFidelity sends any valid JSON value down and up again.
func FuzzFidelity(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1.10,"a":-0,"A":1e400}`, `{"s":"\ud83d\ude00\u0000\/"}`, "{\n\t\"k\" :\r\n[ 1 , 2 ] }", `{"":{"":[[],{}]}}`,
		`{"n":12345678901234567890,"u":"读🎉` + "\u2028" + `"}`, `{"jsonrpc":"1.0","id":null,"method":5,"_meta":{"progressToken":[]}}`} {
		f.Add([]byte(s), uint64(len(s)))
	}
	list := columns(f)
	f.Fuzz(func(t *testing.T, payload []byte, seed uint64) {
		if !json.Valid(payload) || !utf8.Valid(payload) || len(payload) == 0 || payload[0] != '{' || payload[len(payload)-1] != '}' || loneSurrogate(payload) {
			t.Skip("fuzzed input is no JSON object of valid Unicode: the bridge refuses it (FRM-02, see TestHostile), so there are no bytes to compare")
		}
		for _, c := range list {
			if err := c.exchange(seed, string(payload), flat(string(payload))); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
	})
}

// loneSurrogate tells a string that is no Unicode text, which is refused (FRM-02).
func loneSurrogate(payload []byte) bool {
	high := false // the last thing read was the first half of a pair
	for i := 0; i < len(payload); i++ {
		code := 0
		if payload[i] == '\\' {
			i++
			if payload[i] == 'u' {
				n, _ := strconv.ParseUint(string(payload[i+1:i+5]), 16, 16)
				code = int(n)
				i += 4
			}
		}
		if low := code >= 0xdc00 && code < 0xe000; low != high {
			return true
		}
		high = code >= 0xd800 && code < 0xdc00
	}
	return false
}
