package front

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpbridge/bridge"
)

// A sender that announces a body and does not send it is cut off, and does not hold a request for ever (SEC-07).
func TestSlowBodyIsCut(t *testing.T) {
	h := NewHandler(Config{Guard: &Guard{LoopbackOnly: true}, BodyTimeout: 50 * time.Millisecond, Endpoint: nowhere{},
		Principal: func(*http.Request) (bridge.Principal, *bridge.Error) { return bridge.Local, nil }})
	srv := httptest.NewServer(h)
	defer srv.Close()
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\""); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("the connection was not closed: %v", err)
	}
	if !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
		t.Errorf("answer %q, want 400", answer)
	}
}

// nowhere is an endpoint no request of these tests gets to.
type nowhere struct{ Endpoint }

func (nowhere) Name() string { return "nowhere" }
