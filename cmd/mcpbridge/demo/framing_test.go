package demo

import (
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

func ping(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }
func pong(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }
func fails(id string, code int) string {
	member := ""
	if id != "" {
		member = `"id":` + id + `,`
	}
	return `{"jsonrpc":"2.0",` + member + `"error":{"code":` + strconv.Itoa(code) + `}}`
}

func TestFraming(t *testing.T) {
	runScripts(t, []script{
		{name: "FRM-03 two messages in one write", in: []string{ping("1") + "\n" + ping("2")}, out: []string{pong("1"), pong("2")}},
		{name: "FRM-07 CRLF and blank lines", in: []string{"", "\r", ping("1") + "\r", ""}, out: []string{pong("1")}},
		{name: "white space around", in: []string{"  \t" + ping("1") + "  "}, out: []string{pong("1")}},
		{name: "FRM-04 pretty printed", in: []string{"{", ping("1")[1:], ping("2")},
			out: []string{fails("", -32700), fails("", -32700), pong("2")}},
		{name: "FRM-02 invalid UTF-8", in: []string{"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", ping("2")},
			out: []string{fails("", -32700), pong("2")}},
		{name: "trailing data", in: []string{ping("1") + " 1"}, out: []string{fails("", -32700)}},
		{name: "scalar", in: []string{"5", `"x"`, "null"}, out: []string{fails("", -32600), fails("", -32600), fails("", -32600)}},
		{name: "FRM-01 wrong jsonrpc keeps the id", in: []string{`{"jsonrpc":"1.0","id":3,"method":"ping"}`}, out: []string{fails("3", -32600)}},
		{name: "FRM-01 no jsonrpc", in: []string{`{"id":3,"method":"ping"}`}, out: []string{fails("3", -32600)}},
		{name: "FRM-08 ids kept", in: []string{ping("0"), ping(`""`), ping(`"7"`), ping("-1"), ping("9007199254740991")},
			out: []string{pong("0"), pong(`""`), pong(`"7"`), pong("-1"), pong("9007199254740991")}},
		{name: "FRM-08 ids refused", in: []string{ping("null"), ping("1.5"), ping("1e3"), ping("true"), ping("{}"), ping("[]")},
			out: []string{fails("", -32600), fails("", -32600), fails("", -32600), fails("", -32600), fails("", -32600), fails("", -32600)}},
		{name: "FRM-34 duplicate member", in: []string{`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`}, out: []string{fails("1", -32600)}},
		{name: "FRM-34 names have case", in: []string{`{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call"}`}, out: []string{pong("1")}},
		{name: "method is no string", in: []string{`{"jsonrpc":"2.0","id":1,"method":5}`}, out: []string{fails("1", -32600)}},
		{name: "params array", in: []string{`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`}, out: []string{fails("1", -32602)}},
		{name: "params scalar", in: []string{`{"jsonrpc":"2.0","id":1,"method":"ping","params":5}`}, out: []string{fails("1", -32600)}},
		{name: "FRM-14 notifications are never answered", in: []string{`{"jsonrpc":"2.0","method":"notifications/nope"}`,
			`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"touch"}}`, `{"jsonrpc":"2.0","method":"notifications/nope","params":[]}`}},
		{name: "answers to nothing are dropped", in: []string{`{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}`}},
		{name: "neither", in: []string{`{"jsonrpc":"2.0","id":4}`}, out: []string{fails("4", -32600)}},
		{name: "CAN-04 cancels of nothing", in: []string{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}`}},
	})
}

func TestBatches(t *testing.T) {
	two := "[" + ping("1") + "," + ping("2") + "]"
	start := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	runScripts(t, []script{
		{name: "FRM-24 array of a 2025-03-26 session", session: "2025-03-26", in: []string{two}, out: []string{"[" + pong("1") + "," + pong("2") + "]"}},
		{name: "notification inside", session: "2025-03-26", in: []string{"[" + ping("1") + `,{"jsonrpc":"2.0","method":"notifications/nope"}]`},
			out: []string{"[" + pong("1") + "]"}},
		{name: "only notifications", session: "2025-03-26", in: []string{`[{"jsonrpc":"2.0","method":"notifications/nope"}]`}},
		{name: "broken member", session: "2025-03-26", in: []string{"[5," + ping("2") + "]"},
			out: []string{`[{"jsonrpc":"2.0","error":{"code":-32600,"message":"not a JSON-RPC message: an object is needed"}},` + pong("2") + "]"}},
		{name: "empty", session: "2025-03-26", in: []string{"[]"}, out: []string{fails("", -32600)}},
		{name: "broken array", session: "2025-03-26", in: []string{"[" + ping("1")}, out: []string{fails("", -32700)}},
		{name: "FRM-25 initialize inside", in: []string{"[" + start + "]"}, out: []string{fails("", -32600)}},
		{name: "FRM-23 2024-11-05", session: "2024-11-05", in: []string{two}, out: []string{fails("", -32600)}},
		{name: "FRM-23 2025-06-18", session: "2025-06-18", in: []string{two}, out: []string{fails("", -32600)}},
		{name: "FRM-23 2025-11-25", session: "2025-11-25", in: []string{" " + two}, out: []string{fails("", -32600)}},
		{name: "FRM-23 modern", in: []string{`[{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + envelope + `}}]`}, out: []string{fails("", -32600)}},
	})
}

// A batch whose slow member is cancelled is answered without it.
func TestBatchWithSlowMember(t *testing.T) {
	call := `{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":{"name":"countdown","arguments":{"from":1,"delayMs":1000}}}`
	counted := `{"jsonrpc":"2.0","id":"slow","result":{"content":[{"type":"text","text":"counted down from 1"}]}}`
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Options{})
		p.handshake("2025-03-26", "{}")
		p.send("[" + call + "," + ping("1") + "]")
		p.silent()
		p.expect("[" + pong("1") + "," + counted + "]")
		p.send("[" + call + "," + ping("1") + "]")
		p.silent()
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow"}}`)
		p.expect("[" + pong("1") + "]")
		p.close()
	})
}

func TestBatchLimit(t *testing.T) {
	many := func(n int) string { return "[" + strings.Repeat(ping("1")+",", n-1) + ping("1") + "]" }
	answers := "[" + strings.Repeat(pong("1")+",", MaxBatch-1) + pong("1") + "]"
	runScripts(t, []script{
		{name: "n", session: "2025-03-26", in: []string{many(MaxBatch)}, out: []string{answers}},
		{name: "n+1", session: "2025-03-26", in: []string{many(MaxBatch + 1)}, out: []string{fails("", -32600)}},
	})
}

func TestLineLimit(t *testing.T) {
	line := func(n int) string {
		frame := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":""}}`
		return strings.Replace(frame, `""`, `"`+strings.Repeat("x", n-len(frame))+`"`, 1)
	}
	for _, limit := range []int{100, 64 << 10, 200_000} {
		runScripts(t, []script{
			{name: strconv.Itoa(limit) + " n", opts: Options{MaxLine: limit}, in: []string{line(limit)}, out: []string{pong("1")}},
			{name: strconv.Itoa(limit) + " n+1", opts: Options{MaxLine: limit}, in: []string{line(limit + 1), ping("2")},
				out: []string{fails("", -32600), pong("2")}},
		})
	}
}

// TestLargeEcho sends 16 MiB there and back.
func TestLargeEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Options{})
		text := `"` + strings.Repeat("a", 16<<20) + `"`
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":` + text + `},` + envelope + `}}`)
		if line := p.next(); !strings.Contains(line, text) {
			t.Errorf("answer of %d bytes lacks the text", len(line))
		}
		p.close()
	})
}

// The spelling of ids and echoed text is kept byte for byte (FRM-30).
func TestExactBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Options{})
		p.send(ping("9007199254740993"), ping(`"a\u0041é/\/"`))
		for _, want := range []string{`{"id":9007199254740993,"jsonrpc":"2.0","result":{}}`, `{"id":"a\u0041é/\/","jsonrpc":"2.0","result":{}}`} {
			if got := p.next(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"<\u00e9>\ud83c\udf89&"},` + envelope + `}}`)
		if got, want := p.next(), `"text":"<\u00e9>\ud83c\udf89&"`; !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
		p.close()
	})
}

// An unterminated last line is no message, and the end of input ends the server with calls open (STD-02).
func TestEndOfInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Options{})
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"countdown","arguments":{"from":1,"delayMs":60000},` + envelope + `}}`)
		io.WriteString(p.in, ping("2"))
		p.silent()
		p.close()
	})
}

// stuckWriter is the pipe of a peer that reads no more.
type stuckWriter struct{ entered, release chan struct{} }

func (w stuckWriter) Write(p []byte) (int, error) {
	close(w.entered)
	<-w.release
	return len(p), nil
}

// A peer that reads no more must not keep the server alive after the end of input.
func TestEndOfInputWithStuckOutput(t *testing.T) {
	inR, inW := io.Pipe()
	out := stuckWriter{make(chan struct{}), make(chan struct{})}
	defer close(out.release)
	done := make(chan error, 1)
	go func() { done <- Serve(t.Context(), inR, out, Options{}) }()
	io.WriteString(inW, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"countdown","arguments":{"from":1},`+envelope+`}}`+"\n")
	<-out.entered
	inW.Close()
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestWriteFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		outR.Close()
		done := make(chan error, 1)
		go func() { done <- Serve(t.Context(), inR, outW, Options{}) }()
		io.WriteString(inW, ping("1")+"\n")
		if err := <-done; err == nil || !strings.Contains(err.Error(), "cannot write message") {
			t.Errorf("Serve: %v", err)
		}
		inW.Close()
	})
}

func TestOptionsThatContradict(t *testing.T) {
	for _, opts := range []Options{{LegacyOnly: true, ModernOnly: true}, {Newest: "2026-07-28"}, {Newest: "x"}} {
		if err := Serve(t.Context(), strings.NewReader(""), io.Discard, opts); err == nil {
			t.Errorf("%+v: no error", opts)
		}
	}
}
