package back_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
	"mcpbridge/procman"
)

// machine is a procman.Spawner whose processes are scripts: a function that reads and writes pipes in memory.
type machine struct {
	script func(*child) procman.Exit
	direct bool // a write returns when the process has dealt with it

	mu   sync.Mutex
	kids []*child
}

func (m *machine) Spawn(procman.Spec) (procman.Process, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &child{n: len(m.kids) + 1, direct: m.direct, began: time.Now(), killed: make(chan struct{}), done: make(chan struct{})}
	c.in, c.stdin = io.Pipe()
	c.stdout, c.out = io.Pipe()
	c.lines = bufio.NewReader(c.in)
	m.kids = append(m.kids, c)
	go c.run(m.script)
	return c, nil
}

// starts is how many processes there have been.
func (m *machine) starts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.kids)
}

func (m *machine) child(n int) *child {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kids[n-1]
}

// methods is what all processes were sent, start by start.
func (m *machine) methods() []string {
	var all []string
	for n := range m.starts() {
		all = append(all, m.child(n+1).methods()...)
	}
	return all
}

// child is one scripted process. It implements procman.Process.
type child struct {
	n            int // the how manieth start
	began        time.Time
	in, stdout   *io.PipeReader
	out, stdin   *io.PipeWriter
	lines        *bufio.Reader
	direct       bool
	killed, done chan struct{}
	exit         procman.Exit

	mu    sync.Mutex
	got   []request
	tail  string
	steps []string
	hardy bool // ends on kill only
}

// request is a line the process has read.
type request struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Line   string `json:"-"`
}

func (c *child) run(script func(*child) procman.Exit) {
	exit := script(c)
	_ = c.out.Close()
	_ = c.in.CloseWithError(syscall.EPIPE)
	c.mu.Lock()
	exit.Requested = len(c.steps) > 0
	exit.Runtime = time.Since(c.began)
	if exit.Stderr == nil && c.tail != "" {
		exit.Stderr = strings.Split(strings.TrimSpace(c.tail), "\n")
	}
	c.exit = exit
	c.mu.Unlock()
	close(c.done)
}

// read returns the next line; false at the end of the input or of the process.
func (c *child) read() (request, bool) {
	line, err := c.lines.ReadString('\n')
	if err != nil {
		return request{}, false
	}
	r := request{Line: strings.TrimSuffix(line, "\n")}
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		r.Method = "not JSON: " + line
	}
	c.mu.Lock()
	c.got = append(c.got, r)
	c.mu.Unlock()
	return r, true
}

// send writes one message.
func (c *child) send(format string, args ...any) { c.write(fmt.Sprintf(format, args...) + "\n") }

func (c *child) write(text string) { _, _ = io.WriteString(c.out, text) }

// result and fail answer a request.
func (c *child) result(r request, result string) {
	c.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)
}

func (c *child) fail(r request, code int) {
	c.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"}}`, r.ID, code)
}

// harden makes the process ignore requests to end but the last.
func (c *child) harden() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hardy = true
}

// say writes to stderr.
func (c *child) say(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tail += text + "\n"
}

// sleep waits that long, or for the process to be killed.
func (c *child) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.killed:
	}
}

func (c *child) methods() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, r := range c.got {
		out = append(out, r.Method)
	}
	return out
}

func (c *child) requests() []request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// ladder is what was done to end the process.
func (c *child) ladder() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.steps)
}

func (c *child) step(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, name)
}

func (c *child) Pid() int { return 1000 + c.n }

func (c *child) Stdin() io.WriteCloser {
	if c.direct {
		return directStdin{childStdin{c}}
	}
	return childStdin{c}
}

func (c *child) Stdout() io.Reader     { return c.stdout }
func (c *child) Done() <-chan struct{} { return c.done }

func (c *child) Tail() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return []byte(c.tail)
}

func (c *child) Exit() procman.Exit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit
}

func (c *child) Signal(l procman.Level) error {
	c.step(l.String())
	c.mu.Lock()
	defer c.mu.Unlock()
	if l == procman.Terminate && c.hardy {
		return nil
	}
	select {
	case <-c.killed:
	default:
		close(c.killed)
		_ = c.in.CloseWithError(io.EOF)
		_ = c.out.CloseWithError(io.EOF)
	}
	return nil
}

type childStdin struct{ c *child }

func (s childStdin) Write(p []byte) (int, error) { return s.c.stdin.Write(p) }

func (s childStdin) Close() error {
	select {
	case <-s.c.done:
	default:
		s.c.step("eof")
	}
	return s.c.stdin.Close()
}

// directStdin is a stdin into which the goroutine that has something to say writes itself.
type directStdin struct{ childStdin }

func (s directStdin) TryWrite(p []byte) (int, error) {
	n, err := s.Write(p)
	time.Sleep(time.Millisecond) // in a bubble: until nothing else can happen
	return n, err
}

// note takes what a connection hands to its owner.
type note struct {
	mu       sync.Mutex
	requests []string
	notes    []string
	closed   []error
	answer   bool // answer requests of the server with {}
}

func (n *note) ServerRequest(c *bridge.Conn, m *framing.Message) {
	n.mu.Lock()
	n.requests = append(n.requests, m.MethodName())
	answer := n.answer
	n.mu.Unlock()
	if answer {
		_ = c.Forward(noWait{}, bridge.ResultFrame(m.Bytes(m.ID), []byte("{}")))
	}
}

func (n *note) InputRequired(bridge.Ticket, *framing.Message) bool { return false }

func (n *note) ServerNotification(_ *bridge.Conn, m *framing.Message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes = append(n.notes, m.MethodName())
}

func (n *note) Closed(_ *bridge.Conn, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = append(n.closed, err)
}

func (n *note) heard() (requests, notes []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.requests), slices.Clone(n.notes)
}

// noWait is a context for replies from the reading goroutine.
type noWait struct{}

func (noWait) Deadline() (time.Time, bool) { return time.Time{}, false }
func (noWait) Done() <-chan struct{}       { return nil }
func (noWait) Err() error                  { return nil }
func (noWait) Value(any) any               { return nil }

// ownParams is a handshake of the bridge's own.
const ownParams = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bridge","version":"1"}}`

// rig is a back whose servers are scripts.
type rig struct {
	*back.Stdio
	machine *machine
	verdict *back.Verdict
	note    *note
	mu      sync.Mutex
	events  []procman.Event
	junk    []bridge.Event
}

// newRig is to be called in a bubble of testing/synctest; close it before the bubble ends.
func newRig(script func(*child) procman.Exit, change ...func(*back.StdioConfig)) *rig {
	r := &rig{machine: &machine{script: script}, verdict: &back.Verdict{}, note: &note{}}
	cfg := back.StdioConfig{Spec: procman.Spec{Name: "srv"}, Spawner: r.machine, Verdict: r.verdict,
		Policy: procman.Policy{Jitter: -1}, Events: r.event}
	for _, f := range change {
		f(&cfg)
	}
	r.Stdio = back.NewStdio(cfg)
	return r
}

func (r *rig) event(e procman.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *rig) core(e bridge.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.junk = append(r.junk, e)
}

// kinds counts the events of the core of one kind.
func (r *rig) kinds(k bridge.EventKind) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.junk {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// options are those of a front of that era.
func (r *rig) options(want mcp.Era) bridge.OpenOptions {
	return bridge.OpenOptions{Want: want, Params: []byte(ownParams),
		Conn: bridge.ConnConfig{Name: "srv", Handler: r.note, Events: r.core}}
}

func (r *rig) open(t *testing.T, want mcp.Era) (*bridge.Conn, error) {
	t.Helper()
	ctx, stop := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("start time is up"))
	defer stop()
	return r.Open(ctx, r.options(want))
}

// mustOpen fails the test when the server cannot be opened in that era.
func (r *rig) mustOpen(t *testing.T, want, got mcp.Era) *bridge.Conn {
	t.Helper()
	c, err := r.open(t, want)
	if err != nil {
		t.Fatalf("cannot open: %v", err)
	}
	if e := c.Facts().Era; e != got {
		t.Fatalf("opened in the %v era, want %v", e, got)
	}
	return c
}

// end closes the back and everything that runs in it.
func (r *rig) end(t *testing.T) {
	t.Helper()
	if err := r.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}

// Scripts.

const (
	discovery = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public"}`
	helloAt   = `{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
)

// modern, legacy and dual answer like ordinary servers; all else is refused with -32601.
func modern(c *child, r request) {
	if r.Method == mcp.Discover {
		c.result(r, discovery)
	} else if len(r.ID) > 0 {
		c.fail(r, mcp.CodeMethodNotFound)
	}
}

func legacy(c *child, r request) {
	if r.Method == mcp.Initialize {
		c.result(r, fmt.Sprintf(helloAt, offered(r)))
	} else if len(r.ID) > 0 {
		c.fail(r, mcp.CodeMethodNotFound)
	}
}

func dual(c *child, r request) {
	if r.Method == mcp.Discover {
		modern(c, r)
	} else {
		legacy(c, r)
	}
}

// offered is the version an initialize request asks for.
func offered(r request) string {
	var p struct{ ProtocolVersion string }
	_ = json.Unmarshal(r.Params, &p)
	return p.ProtocolVersion
}

// serve runs a server to the end of its input.
func serve(answer func(*child, request)) func(*child) procman.Exit {
	return func(c *child) procman.Exit {
		for {
			r, ok := c.read()
			if !ok {
				return procman.Exit{}
			}
			answer(c, r)
		}
	}
}

func exits(code int) procman.Exit { return procman.Exit{Code: code} }
