package exchange

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpbridge/config"
	"mcpbridge/test/internal/e2e"
)

const (
	crossSessions = 64
	crossCalls    = 50_000 // in all
)

// No answer and no progress ever crosses: many sessions with the same ids and the same progress tokens on one process
// (issue acceptance 7; rule 2, FRM-11, PRG-01, PRG-02). Every 16th call reports progress, which must bear the caller's
// own mark too.
func TestNothingCrosses(t *testing.T) {
	b := e2e.Start(t, e2e.Options{Fixture: fixture(t), Blind: true, Edit: func(c *config.Config, s *config.Server) {
		shared(c, s)
		s.MaxProcesses = 1 // one process, or nothing works
	}})
	started := time.Now()
	var wrong, calls atomic.Int64
	var wg sync.WaitGroup
	for n := range crossSessions {
		s := b.NewSession(t, "2025-11-25", "{}")
		wg.Go(func() {
			c := &crosser{session: s, n: n}
			if err := c.run(b.Addr, (crossCalls+crossSessions-1)/crossSessions, &calls); err != nil {
				wrong.Add(1)
				t.Errorf("session %d: %v", n, err)
			}
		})
	}
	wg.Wait()
	if calls.Load() < crossCalls || wrong.Load() > 0 {
		t.Errorf("%d calls right, %d sessions saw a wrong answer", calls.Load(), wrong.Load())
	}
	t.Logf("%d calls in %v", calls.Load(), time.Since(started).Round(time.Millisecond))
}

// crosser is one client with a connection of its own. It speaks HTTP by hand: under the race detector the standard
// client would cost more than the bridge.
type crosser struct {
	session *e2e.Session
	n       int
	conn    net.Conn
	in      *bufio.Reader
	buf     []byte
}

func (c *crosser) run(addr string, calls int, done *atomic.Int64) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	c.conn, c.in = conn, bufio.NewReader(conn)
	for i := range calls {
		_ = conn.SetDeadline(time.Now().Add(e2e.Patience))
		if err := c.call(addr, i); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		done.Add(1)
	}
	return nil
}

func (c *crosser) call(addr string, i int) error {
	mark := fmt.Sprintf(`"mark":"%d-%d-"`, c.n, i)
	tool, count := "echo", 0
	if i%16 == 0 {
		tool, count = "progress", 2
	}
	// All sessions count alike: ids and tokens are equal all the time.
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":{%s,"count":%d},"_meta":{"progressToken":"t%d"}}}`,
		i, tool, mark, count, i)
	c.buf = fmt.Appendf(c.buf[:0], "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"Mcp-Session-Id: %s\r\nMcp-Protocol-Version: 2025-11-25\r\nContent-Length: %d\r\n\r\n%s", addr, c.session.ID, len(body), body)
	if _, err := c.conn.Write(c.buf); err != nil {
		return err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	id := []byte(`"id":` + strconv.Itoa(i) + `,`)
	token := []byte(`"progressToken":"t` + strconv.Itoa(i) + `"`)
	switch {
	case resp.StatusCode != 200,
		bytes.Count(answer, []byte(`"mark":`)) != 1, !bytes.Contains(answer, []byte(mark)), !bytes.Contains(answer, id),
		bytes.Count(answer, []byte(`"progressToken":`)) != count, bytes.Count(answer, token) != count:
		return fmt.Errorf("status %d, answer %q", resp.StatusCode, answer)
	}
	return nil
}
