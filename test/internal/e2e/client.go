package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// ModernVersion is the revision of the modern era.
const ModernVersion = "2026-07-28"

// Envelope returns the _meta member of a modern request with these raw client capabilities; more are further raw members
// that begin with a comma, or nothing.
func Envelope(capabilities, more string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + ModernVersion +
		`","io.modelcontextprotocol/clientInfo":{"name":"e2e","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + capabilities + more + `}`
}

// ModernHeader returns the headers of a modern request; name may be "".
func ModernHeader(method, name string) Header {
	h := Header{"Mcp-Protocol-Version": ModernVersion, "Mcp-Method": method}
	if name != "" {
		h["Mcp-Name"] = name
	}
	return h
}

// ModernCall returns headers and body of a modern tools/call with raw arguments; more are further raw members of _meta
// that begin with a comma, or nothing.
func ModernCall(id, tool, arguments, more string) (Header, []byte) {
	return ModernHeader("tools/call", tool), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%s,"arguments":%s,%s}}`,
		id, Quote(tool), arguments, Envelope("{}", more))
}

// Quote returns a JSON string.
func Quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// LegacyCall returns a legacy tools/call with raw arguments; more are further raw members of params that begin with a
// comma, or nothing.
func LegacyCall(id, tool, arguments, more string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%s,"arguments":%s%s}}`, id, Quote(tool), arguments, more)
}

// Modern sends a modern tools/call and returns the whole answer.
func (b *Bridge) Modern(t testing.TB, id, tool, arguments string) *Reply {
	t.Helper()
	h, body := ModernCall(id, tool, arguments, "")
	return b.Do(t, "POST", h, body)
}

// Session is a client of the legacy era.
type Session struct {
	b       *Bridge
	ID      string
	Version string
	Hello   *Reply
}

// NewSession opens a session with these raw client capabilities and completes the handshake.
func (b *Bridge) NewSession(t testing.TB, version, capabilities string) *Session {
	t.Helper()
	r := b.Do(t, "POST", nil, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":%s,"capabilities":%s,"clientInfo":{"name":"e2e","version":"1"}}}`,
		Quote(version), capabilities))
	s := &Session{b: b, ID: r.Header.Get("Mcp-Session-Id"), Version: strings.Trim(r.Get(t, "result", "protocolVersion"), `"`), Hello: r}
	if r.Status != 200 || s.ID == "" {
		t.Fatalf("cannot open a session: status %d, %s", r.Status, r.Body)
	}
	if n := s.Post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); n.Status != 202 || len(n.Body) != 0 {
		t.Fatalf("initialized was answered with %d %q", n.Status, n.Body)
	}
	return s
}

// Header returns the headers of a message of the session.
func (s *Session) Header() Header {
	return Header{"Mcp-Session-Id": s.ID, "Mcp-Protocol-Version": s.Version}
}

// Post sends one message and reads the whole answer.
func (s *Session) Post(t testing.TB, body string) *Reply {
	t.Helper()
	return s.b.Do(t, "POST", s.Header(), []byte(body))
}

// Try is Post for goroutines that may not end the test.
func (s *Session) Try(body string) (*Reply, error) {
	return s.b.Try("POST", s.Header(), []byte(body))
}

// Call sends a tools/call and reads the whole answer.
func (s *Session) Call(t testing.TB, id, tool, arguments string) *Reply {
	t.Helper()
	return s.Post(t, string(LegacyCall(id, tool, arguments, "")))
}

// Open sends one message whose answer is read event by event.
func (s *Session) Open(t testing.TB, body string) *Stream {
	t.Helper()
	return s.b.Open(t, "POST", s.Header(), []byte(body))
}

// Listen opens a GET stream; lastEventID may be "".
func (s *Session) Listen(t testing.TB, lastEventID string) *Stream {
	t.Helper()
	h := s.Header()
	h["Accept"] = "text/event-stream"
	h["Last-Event-Id"] = lastEventID
	return s.b.Open(t, "GET", h, nil)
}

// Delete ends the session.
func (s *Session) Delete(t testing.TB) *Reply {
	t.Helper()
	return s.b.Do(t, "DELETE", s.Header(), nil)
}

// Pending is a request under way.
type Pending struct {
	cancel context.CancelFunc
	done   chan struct{}
	reply  *Reply
	err    error
}

// Launch sends a request and does not wait for its answer.
func (b *Bridge) Launch(t testing.TB, verb string, h Header, body []byte) *Pending {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := b.request(ctx, verb, h, body)
	if err != nil {
		t.Fatal(err)
	}
	p := &Pending{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		resp, err := b.Client.Do(req)
		if err != nil {
			p.err = err
			return
		}
		p.reply, p.err = ReadReply(resp)
	}()
	t.Cleanup(p.Drop)
	return p
}

// Launch sends a message of the session and does not wait for its answer.
func (s *Session) Launch(t testing.TB, body string) *Pending {
	t.Helper()
	return s.b.Launch(t, "POST", s.Header(), []byte(body))
}

// Drop closes the connection, as a client does that dies.
func (p *Pending) Drop() {
	p.cancel()
	<-p.done
}

// Wait returns the answer.
func (p *Pending) Wait(t testing.TB) *Reply {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(Patience):
		t.Fatal("no answer comes")
	}
	if p.err != nil {
		t.Fatalf("the exchange failed: %v", p.err)
	}
	return p.reply
}
