//go:build unix

package exchange

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpbridge/test/internal/e2e"
)

// ended is how a call ended that was sent in the background.
type ended struct {
	id    string
	reply *e2e.Reply
	err   error
}

// sendLarge sends a call of the tool never with 40 MiB of arguments; two are more than a queue holds.
func sendLarge(b *e2e.Bridge, id string, done chan<- ended) {
	h, body := e2e.ModernCall(id, "never", `{"text":"`+strings.Repeat("x", 40<<20)+`"}`, "")
	req, err := http.NewRequest("POST", b.URL, bytes.NewReader(body))
	if err != nil {
		done <- ended{id, nil, err}
		return
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range h {
		req.Header.Set(k, v)
	}
	resp, err := b.Client.Do(req)
	if err != nil {
		done <- ended{id, nil, err}
		return
	}
	r, err := e2e.ReadReply(resp)
	done <- ended{id, r, err}
}

// within returns the next call that ends.
func within(t *testing.T, wait time.Duration, done <-chan ended) ended {
	t.Helper()
	select {
	case e := <-done:
		if e.err != nil {
			t.Fatalf("call %s failed: %v", e.id, e.err)
		}
		return e
	case <-time.After(wait):
		t.Fatalf("no call ends within %v", wait)
		return ended{}
	}
}

func signal(t *testing.T, child *e2e.Child, sig os.Signal) {
	t.Helper()
	p, err := os.FindProcess(child.Pid())
	if err == nil {
		err = p.Signal(sig)
	}
	if err != nil {
		t.Fatalf("cannot signal the server: %v", err)
	}
}

// A server that does not read: a call that waits for room is refused in time, with what a client needs to try again, one
// that comes later at once; a cancellation holds nobody up; and when the server reads again everything goes on (rule 3, rule
// 4, CAN-01, translation 11.4).
func TestServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.Modern(t, "0", "plain", "{}")
	child := b.Hub.Child(t, 0)
	signal(t, child, syscall.SIGSTOP)
	done := make(chan ended, 2)
	go sendLarge(b, "1", done)
	go sendLarge(b, "2", done)
	refused := within(t, 2*e2e.Patience, done)
	isBusy(t, refused.reply, refused.id)

	begun := time.Now()
	isBusy(t, b.Modern(t, "3", "never", `{"text":"`+strings.Repeat("x", 30<<20)+`"}`), "3")
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("a call that came later waited for %v", took)
	}
	queued := "1"
	if refused.id == "1" {
		queued = "2"
	}
	begun = time.Now()
	note := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + queued + `,` + env + `}}`
	if r := b.Do(t, "POST", e2e.Header{"Mcp-Protocol-Version": e2e.ModernVersion}, []byte(note)); r.Status != 202 {
		t.Errorf("the cancellation was answered with %d %s", r.Status, r.Body)
	}
	if e := within(t, e2e.Patience, done); e.id != queued || len(e.reply.Messages) != 0 {
		t.Errorf("call %s was answered with %s", e.id, e.reply.Body)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the cancellation took %v", took)
	}

	signal(t, child, syscall.SIGCONT)
	_, next := child.Await(t, 0, `"name":"never"`)
	child.Await(t, next, `"notifications/cancelled"`)
	if r := b.Modern(t, "4", "plain", "{}"); r.Status != 200 {
		t.Errorf("the next call fails: %d %s", r.Status, r.Body)
	}
}

func isBusy(t *testing.T, r *e2e.Reply, id string) {
	t.Helper()
	isError(t, r, id, "back_busy")
	if r.Status != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q", r.Status, r.Header.Get("Retry-After"))
	}
}
