package exchange

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpbridge/test/internal/e2e"
	"mcpbridge/test/internal/jscan"
)

// raw returns the arguments of the fixture's tool raw, which writes a text of ours in place of an answer.
func raw(text, more string) string { return `{"text":` + e2e.Quote(text) + more + `}` }

// okLine is an answer for the tool raw; the server puts its id in.
const okLine = `{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"ok"}]}}`

// both runs a test for a client of each era on a bridge of its own.
func both(t *testing.T, args []string, f func(t *testing.T, b *e2e.Bridge, call func(id, tool, arguments string) *e2e.Reply)) {
	t.Helper()
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			b := start(t, args...)
			if era == "modern" {
				f(t, b, func(id, tool, arguments string) *e2e.Reply { return b.Modern(t, id, tool, arguments) })
				return
			}
			s := b.NewSession(t, "2025-11-25", "{}")
			f(t, b, func(id, tool, arguments string) *e2e.Reply { return s.Call(t, id, tool, arguments) })
		})
	}
}

func wantOK(t *testing.T, r *e2e.Reply) {
	t.Helper()
	if r.Status != 200 || r.Get(t, "result", "content") == "" {
		t.Errorf("answered with %d %q", r.Status, r.Body)
	}
}

// UTF-8 cut at a chunk border (FRM-02).
func TestCase1BytewiseOutput(t *testing.T) {
	t.Parallel()
	both(t, nil, func(t *testing.T, _ *e2e.Bridge, call func(id, tool, arguments string) *e2e.Reply) {
		const text = "— 读 🎉"
		r := call("1", "raw", raw(strings.Replace(okLine, `"ok"`, `"`+text+`"`, 1)+"\n", `,"bytewise":true`))
		if got := r.Get(t, "result", "content", "0", "text"); got != `"`+text+`"` {
			t.Errorf("text %s", got)
		}
	})
}

// Log lines on stdout (FRM-06).
func TestCase3JunkOnStdout(t *testing.T) {
	t.Parallel()
	junk := []string{"Server started", "{", "  message: 'x'", "}", "", `"str"`, "{}", "[1]", "42", "null", "\x1b[31mred\x1b[0m", `{"level":"info","id":1}`, `{"jsonrpc":"2.0"}`,
		"\ufeff", strings.Repeat("=", 100_000)}
	both(t, []string{"-banner", strings.Join(junk, "\n") + "\n"}, func(t *testing.T, b *e2e.Bridge, call func(id, tool, arguments string) *e2e.Reply) {
		wantOK(t, call("1", "plain", "{}"))
		wantOK(t, call("2", "raw", raw(strings.Join(junk, "\n")+"\n"+okLine+"\n"+strings.Join(junk, "\n")+"\n", "")))
		wantOK(t, call("3", "plain", "{}"))
		b.AwaitLog(t, "Server started")
		if n := b.Hub.Started(); n != 1 {
			t.Errorf("%d processes were started", n)
		}
	})
}

// CRLF from Windows servers (FRM-07).
func TestCase5CRLF(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\r\n", "\r\n\r\n"} {
		both(t, []string{"-end", end}, func(t *testing.T, b *e2e.Bridge, call func(id, tool, arguments string) *e2e.Reply) {
			for i := range 3 {
				r := call(fmt.Sprint(i), "echo", `{"a":1}`)
				wantOK(t, r)
				if bytes.HasSuffix(r.Messages[0], []byte("\r")) {
					t.Errorf("answered with %q", r.Messages[0])
				}
			}
			for _, line := range b.Hub.Child(t, 0).Seen(t) {
				if bytes.IndexByte(line, '\r') >= 0 || !bytes.HasSuffix(line, []byte("}\n")) {
					t.Errorf("the server was sent %q", line)
				}
			}
		})
	}
}

// Integers above 2^53 (FRM-30).
func TestCase6BigIntegers(t *testing.T) {
	t.Parallel()
	both(t, nil, func(t *testing.T, b *e2e.Bridge, call func(id, tool, arguments string) *e2e.Reply) {
		r := call("9223372036854775807", "echo", `{"id":9223372036854775807,"n":9007199254740993}`)
		if got := r.Get(t, "result", "structuredContent"); got != `{"id":9223372036854775807,"n":9007199254740993}` {
			t.Errorf("content %s", got)
		}
		if got := r.Get(t, "id"); got != "9223372036854775807" {
			t.Errorf("id %s", got)
		}
		b.Hub.Child(t, 0).Await(t, 0, `"arguments":{"id":9223372036854775807,"n":9007199254740993}`)
	})
}

// Case 9, ids that are none, and case 10, arrays from clients, are rows of TestHostile (FRM-08, FRM-23). Here: arrays
// from a server are unpacked.
func TestCase10ArrayFromServer(t *testing.T) {
	t.Parallel()
	both(t, nil, func(t *testing.T, _ *e2e.Bridge, call func(id, tool, arguments string) *e2e.Reply) {
		wantOK(t, call("1", "raw", raw("["+okLine+"]\n", "")))
		wantOK(t, call("2", "raw", raw(` [ 5, {"jsonrpc":"2.0","method":"notifications/x"}, `+okLine+" , []]\n", "")))
		wantOK(t, call("3", "raw", raw("[]\n[[]]\n"+okLine+"\n", "")))
	})
}

// Last line without newline, then exit 0.
func TestCase12LastLineWithoutNewline(t *testing.T) {
	t.Parallel()
	both(t, nil, func(t *testing.T, b *e2e.Bridge, call func(id, tool, arguments string) *e2e.Reply) {
		wantOK(t, call("9", "plain", "{}"))
		long := strings.Replace(okLine, `"ok"`, `"`+strings.Repeat("x", 2<<20)+`"`, 1) // more than a pipe holds
		for i, text := range []string{okLine, long, okLine} {
			child := b.Hub.Child(t, b.Hub.Started()-1)
			wantOK(t, call(fmt.Sprint(i), "raw", raw(text, `,"exit":0`)))
			child.AwaitGone(t)
			// A call that was given to the process in its last moment may be lost with it; the one after that is not.
			if r := call("0", "plain", "{}"); r.Get(t, "result") == "" {
				isError(t, r, "0", "back_terminated")
				wantOK(t, call("0", "plain", "{}"))
			}
		}
	})
}

// Fields the bridge does not know (FRM-28, FRM-31).
func TestCase15UnknownFields(t *testing.T) {
	t.Parallel()
	const result = `{"content":[],"structuredContent":[1],"_meta":{"x.y/z":{"a":1}},"futureField":{"k":[null]}}`
	b := start(t)
	s := b.NewSession(t, "2025-11-25", "{}")
	r := s.Post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"result","arguments":{"result":`+result+`},"_meta":{"vendor/key":[1.0]},"p":null},"top":{"x":1}}`)
	if got := r.Get(t, "result"); got != result {
		t.Errorf("legacy result %s, want %s", got, result)
	}
	b.Hub.Child(t, 0).Await(t, 0, `"_meta":{"vendor/key":[1.0]},"p":null},"top":{"x":1}}`)
	tools := s.Post(t, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if !bytes.Contains(tools.Body, []byte(`"vendor.example/extra":{"n":1.10,"big":9007199254740993}`)) {
		t.Errorf("tools %s", tools.Body)
	}

	h, body := e2e.ModernCall("3", "result", `{"result":`+result+`}`, `,"vendor/key":[1.0]`)
	r = b.Do(t, "POST", h, bytes.Replace(body, []byte(`"jsonrpc"`), []byte(`"top":{"x":1},"jsonrpc"`), 1))
	got := parseNode(r.Get(t, "result"))
	if string(jscan.Get(r.Last(t), "result", "resultType")) != `"complete"` {
		t.Errorf("no resultType in %s", r.Body)
	}
	got.drop("resultType")
	got.member("_meta").drop(metaServer)
	if got.String() != result {
		t.Errorf("modern result %s, want %s", got, result)
	}
	b.Hub.Child(t, 1).Await(t, 0, `"vendor/key":[1.0]`, `"top":{"x":1}`)
	if bytes.Contains(r.Body, []byte("null}")) && !strings.Contains(result, "null}") {
		t.Errorf("a null was invented: %s", r.Body)
	}
}

// An answer with both a result and an error, or of an unknown type, fails its call and nothing else (FRM-13, FRM-22); one
// with a foreign id belongs to nobody (CAN-05).
func TestInvalidAnswers(t *testing.T) {
	t.Parallel()
	both(t, nil, func(t *testing.T, _ *e2e.Bridge, call func(id, tool, arguments string) *e2e.Reply) {
		isError(t, call("1", "raw", raw(`{"jsonrpc":"2.0","id":$id,"result":{},"error":{"code":1,"message":"x"}}`+"\n", "")), "1", "peer_protocol_error")
		isError(t, call("2", "raw", raw(`{"jsonrpc":"2.0","id":$id,"error":{"code":"1","message":"x"}}`+"\n", "")), "2", "peer_protocol_error")
		stray := `{"jsonrpc":"2.0","id":999999,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}` + "\n" + `{"jsonrpc":"2.0","id":"x","result":{}}` + "\n"
		wantOK(t, call("3", "raw", raw(stray+okLine+"\n"+okLine+"\n", "")))
		wantOK(t, call("4", "raw", raw(strings.Replace(okLine, "$id", `"$id"`, 1)+"\n", "")))
	})
	b := start(t, "-era", "modern")
	h, body := e2e.ModernCall("1", "result", `{"result":{"resultType":"strange","content":[]}}`, "")
	isError(t, b.Do(t, "POST", h, body), "1", "peer_protocol_error")
}

// Ids towards a server grow and are never used again, whatever clients call theirs (FRM-09, FRM-10); nothing but single
// lines of messages is written to it (FRM-03, FRM-04, FRM-05).
func TestServerInput(t *testing.T) {
	t.Parallel()
	b := startWith(t, shared)
	one, two := b.NewSession(t, "2025-11-25", "{}"), b.NewSession(t, "2025-03-26", "{}")
	for range 5 {
		for _, s := range []*e2e.Session{one, two} {
			s.Call(t, `"same"`, "plain", "{\n\t\"a\":\r\n1}\n")
			s.Post(t, " \r\n{\"jsonrpc\":\"2.0\",\n\"id\":1,\"method\":\"tools/list\"}\n\n")
		}
	}
	last := 0
	for _, line := range b.Hub.Child(t, 0).Seen(t) {
		var m struct {
			JSONRPC string
			ID      *int
		}
		if err := json.Unmarshal(line, &m); err != nil || m.JSONRPC != "2.0" || bytes.Count(line, []byte("\n")) != 1 || bytes.IndexByte(line, '\r') >= 0 {
			t.Errorf("the server was sent %q (%v)", line, err)
		}
		if m.ID != nil {
			if *m.ID <= last {
				t.Errorf("id %d after %d", *m.ID, last)
			}
			last = *m.ID
		}
	}
	if last < 20 {
		t.Errorf("the last id is %d", last)
	}
}
