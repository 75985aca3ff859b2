package fault

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpbridge/test/internal/jscan"
)

// client is a program that talks to one endpoint.
type client struct {
	url  string
	http *http.Client
}

func newClient(t testing.TB, url string) *client {
	t.Helper()
	c := &client{url, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// caller is a client of one era that is ready to call tools.
type caller interface {
	call(ctx context.Context, id, tool, arguments string) answer
}

// modern calls without a session.
type modern struct{ *client }

// session is an open legacy session.
type session struct {
	*client
	id string
}

// answer is what became of one call.
type answer struct {
	kind   kind
	text   string // the text of the result, the message of the error, or what is wrong
	reason string // data.reason of an error
	status int
	began  time.Time
	took   time.Duration
	header http.Header
}

type kind int

const (
	result  kind = iota // exactly one result
	failure             // exactly one JSON-RPC error
	wrong               // none of them, several, or one of somebody else
	left                // the caller went away
)

func (a answer) String() string {
	return fmt.Sprintf("%s %d %q %s after %v", [...]string{"result", "failure", "wrong", "left"}[a.kind], a.status, a.text, a.reason, a.took.Round(time.Millisecond))
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"fault","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{}}`

func (m modern) call(ctx context.Context, id, tool, arguments string) answer {
	return m.ask(ctx, id, modernHeader(tool), modernCall(id, tool, arguments))
}

func modernHeader(tool string) http.Header {
	return http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool}}
}

func modernCall(id, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`, id, tool, arguments, meta)
}

func (s *session) call(ctx context.Context, id, tool, arguments string) answer {
	return s.ask(ctx, id, s.header(), fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments))
}

func (s *session) header() http.Header {
	return http.Header{"Mcp-Protocol-Version": {"2025-11-25"}, "Mcp-Session-Id": {s.id}}
}

const hello = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
	`"clientInfo":{"name":"fault","version":"1"}}}`

// initialize opens a session; it is nil if the answer is not a result.
func (c *client) initialize(ctx context.Context) (*session, answer) {
	a := c.ask(ctx, `"init"`, nil, hello)
	if a.kind != result {
		return nil, a
	}
	s := &session{c, a.header.Get("Mcp-Session-Id")}
	if s.id == "" {
		a.kind, a.text = wrong, "no session id"
		return nil, a
	}
	resp, err := c.post(ctx, s.header(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if err == nil {
		resp.Body.Close()
	}
	if err != nil && ctx.Err() == nil {
		a.kind, a.text = wrong, err.Error()
		return nil, a
	}
	return s, a
}

// open opens a session or ends the test.
func (c *client) open(t testing.TB) *session {
	t.Helper()
	s, a := c.initialize(t.Context())
	if s == nil {
		t.Fatalf("cannot open a session: %v", a)
	}
	return s
}

// listen opens a GET stream. The channel is closed when it has ended.
func (s *session) listen(t testing.TB) <-chan struct{} {
	t.Helper()
	resp, err := s.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("a stream is refused with %d", resp.StatusCode)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body) // how it ends is all the same
	}()
	return ended
}

// get asks for a GET stream.
func (s *session) get(ctx context.Context) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", s.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header = s.header()
	req.Header.Set("Accept", "text/event-stream")
	return s.http.Do(req)
}

func (c *client) post(ctx context.Context, h http.Header, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for k, v := range h {
		req.Header[k] = v
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	return c.http.Do(req)
}

// ask sends a request and judges all that comes back. It does not wait longer than patience: that is a call that hangs.
func (c *client) ask(ctx context.Context, id string, h http.Header, body string) answer {
	return c.askWithin(ctx, patience, id, h, body)
}

func (c *client) askWithin(ctx context.Context, limit time.Duration, id string, h http.Header, body string) answer {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a := answer{began: time.Now()}
	messages, err := c.exchange(limited, h, body, &a)
	a.took = time.Since(a.began)
	switch {
	case ctx.Err() != nil:
		a.kind, a.text = left, "the caller left"
	case err != nil:
		a.kind, a.text = wrong, err.Error()
	default:
		a.judge(id, messages)
	}
	return a
}

func (c *client) exchange(ctx context.Context, h http.Header, body string, a *answer) ([][]byte, error) {
	resp, err := c.post(ctx, h, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	a.status, a.header = resp.StatusCode, resp.Header
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return events(data)
	}
	return [][]byte{data}, nil
}

// events returns the messages of an event stream as the bridge writes them: one line of data each.
func events(data []byte) ([][]byte, error) {
	var list [][]byte
	in := bufio.NewReader(bytes.NewReader(data))
	for {
		line, err := in.ReadBytes('\n')
		if message, ok := bytes.CutPrefix(line, []byte("data: ")); ok && len(bytes.TrimSpace(message)) > 0 {
			list = append(list, bytes.TrimSpace(message))
		}
		if errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// judge wants exactly one response, to the request with this raw id.
func (a *answer) judge(id string, messages [][]byte) {
	var final []byte
	for _, m := range messages {
		if jscan.Get(m, "method") != nil {
			continue
		}
		if final != nil {
			a.kind, a.text = wrong, fmt.Sprintf("two responses: %s and %s", final, m)
			return
		}
		final = m
	}
	problem := jscan.Get(final, "error")
	switch got := string(jscan.Get(final, "id")); {
	case final == nil:
		a.kind, a.text = wrong, "no response"
	case got != id && (problem == nil || a.status == http.StatusOK || got != "null" && got != ""):
		a.kind, a.text = wrong, fmt.Sprintf("a response to %s: %.300s", got, final)
	case problem != nil:
		a.kind, a.text = failure, jscan.Text(jscan.Get(problem, "message"))
		a.reason = jscan.Text(jscan.Get(problem, "data", "reason"))
	case jscan.Get(final, "result") == nil:
		a.kind, a.text = wrong, fmt.Sprintf("neither result nor error: %.300s", final)
	default:
		a.kind, a.text = result, string(jscan.Get(final, "result", "content", "0", "text"))
	}
}

// echo calls the tool echo with a text that nobody else uses, and takes any other text for wrong.
func echo(ctx context.Context, c caller, id, text string) answer {
	a := c.call(ctx, id, "echo", fmt.Sprintf(`{"text":%q}`, text))
	if a.kind == result && a.text != `"`+text+`"` {
		a.kind, a.text = wrong, fmt.Sprintf("%s instead of %q", a.text, text)
	}
	return a
}

// wantResult ends the test if a is none.
func wantResult(t testing.TB, a answer) {
	t.Helper()
	if a.kind != result {
		t.Fatalf("got %v, want a result", a)
	}
}
