package demo

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// envelope is what a modern request carries, without capabilities; envelopeWith adds some.
const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func envelopeWith(caps string, extra ...string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` +
		caps + strings.Join(append([]string{""}, extra...), ",") + `}`
}

// identity is how results of the modern era are signed by a server without version.
const signature = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mcpbridge-demo","title":"mcpbridge demo server","version":"0"}}`

// peer is the client at the other end of the pipes. It lives in a synctest bubble.
type peer struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *io.PipeReader
	lines chan string
	done  chan error
	stop  context.CancelFunc
}

func connect(t *testing.T, opts Options) *peer {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	p := &peer{t: t, in: inW, out: outR, lines: make(chan string, 20_000), done: make(chan error, 1), stop: stop}
	go func() {
		err := Serve(ctx, inR, outW, opts)
		inR.Close()
		outW.Close()
		p.done <- err
	}()
	go func() {
		defer close(p.lines)
		r := bufio.NewReader(outR)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) || line != "" {
					t.Errorf("output ends with %q, %v", line, err)
				}
				return
			}
			p.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	return p
}

// send writes lines; the newline is added.
func (p *peer) send(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(p.in, line+"\n"); err != nil {
			p.t.Fatalf("cannot send: %v", err)
		}
	}
}

// next waits for a line. Time passes as needed.
func (p *peer) next() string {
	p.t.Helper()
	line, ok := <-p.lines
	if !ok {
		p.t.Fatal("output has ended")
	}
	return line
}

// expect wants exactly these messages next, compared as JSON.
func (p *peer) expect(want ...string) {
	p.t.Helper()
	for _, w := range want {
		same(p.t, p.next(), w)
	}
}

// silent wants nothing more to come without a further stimulus or passing time.
func (p *peer) silent() {
	p.t.Helper()
	synctest.Wait()
	select {
	case line, ok := <-p.lines:
		if ok {
			p.t.Fatalf("unexpected message %s", line)
		}
	default:
	}
}

// close ends the input and waits for the server.
func (p *peer) close() {
	p.t.Helper()
	p.in.Close()
	if err := <-p.done; err != nil {
		p.t.Errorf("Serve: %v", err)
	}
	p.stop()
	if line, ok := <-p.lines; ok {
		p.t.Errorf("left over: %s", line)
	}
}

// handshake opens a legacy session of that revision and capabilities.
func (p *peer) handshake(version, caps string) {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":"hs","method":"initialize","params":{"protocolVersion":"` + version +
		`","capabilities":` + caps + `,"clientInfo":{"name":"c","version":"1"}}}`)
	if line := p.next(); !strings.Contains(line, `"protocolVersion":"`+version+`"`) {
		p.t.Fatalf("handshake: %s", line)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func same(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("bad expectation %s: %v", want, err)
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("not JSON: %s", got)
	}
	if isError(w) && isError(g) {
		dropText(w)
		dropText(g)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("message (-want +got):\n%s\ngot %s", diff, got)
	}
}

func isError(v any) bool {
	m, ok := v.(map[string]any)
	return ok && m["error"] != nil
}

// dropText removes the text of an error: its words are free, but it must have some (FRM-13).
func dropText(v any) {
	e, ok := v.(map[string]any)["error"].(map[string]any)
	if ok && e["message"] != "" && e["message"] != nil {
		delete(e, "message")
	}
}

// script sends every line of in and expects exactly out.
type script struct {
	name    string
	opts    Options
	session string // revision of a handshake done before, "" for none
	caps    string // capabilities declared in it, "" for {}
	in, out []string
}

func (c script) run(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, c.opts)
		if c.session != "" {
			if c.caps == "" {
				c.caps = "{}"
			}
			p.handshake(c.session, c.caps)
		}
		p.send(c.in...)
		p.expect(c.out...)
		p.silent()
		p.close()
	})
}

func runScripts(t *testing.T, scripts []script) {
	for _, c := range scripts {
		t.Run(c.name, c.run)
	}
}
