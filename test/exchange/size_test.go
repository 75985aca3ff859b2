package exchange

import (
	"strings"
	"testing"

	"mcpbridge/config"
	"mcpbridge/test/internal/e2e"
)

// Large answers pass, as one object and as an event stream, in both eras.
func TestHugeAnswers(t *testing.T) {
	t.Parallel()
	both(t, nil, func(t *testing.T, _ *e2e.Bridge, call func(id, tool, arguments string) *e2e.Reply) {
		const size = 16 << 20
		if r := call("1", "huge", `{"bytes":16777216}`); r.Get(t, "result", "content", "0", "text") != `"`+strings.Repeat("x", size)+`"` {
			t.Errorf("the answer has %d bytes, status %d", len(r.Body), r.Status)
		}
	})
	b := start(t)
	h, body := e2e.ModernCall("1", "huge", `{"bytes":4194304}`, "")
	h["Accept"] = "text/event-stream"
	if r := b.Do(t, "POST", h, body); len(r.Messages) != 1 || r.Get(t, "result", "content", "0", "text") != `"`+strings.Repeat("x", 4<<20)+`"` {
		t.Errorf("the stream has %d bytes, status %d", len(r.Body), r.Status)
	}
}

// The longest line taken of a server, at n and n+1: the call whose answer is longer is told so, the others and the process
// live on (rules 3 and 4, FRM-07).
func TestLineLimit(t *testing.T) {
	t.Parallel()
	const limit = 10_000
	b := startWith(t, func(c *config.Config, _ *config.Server) { c.Limits.LineBytes = limit })
	s := b.NewSession(t, "2025-11-25", "{}")
	answer := func(n int) string { // a whole line of n bytes for a back id of one digit
		line := strings.Replace(okLine, "$id", "N", 1)
		return strings.Replace(okLine, `"ok"`, `"`+strings.Repeat("x", n-len(line)+2)+`"`, 1) + "\n"
	}
	wantOK(t, s.Call(t, "1", "raw", raw(answer(limit), "")))
	if r := s.Call(t, "2", "raw", raw(answer(limit+1), "")); r.Status != 200 || r.Get(t, "error", "code") != "-32603" || r.Get(t, "id") != "2" {
		t.Errorf("answered with %d %.300s", r.Status, r.Body)
	}
	wantOK(t, s.Call(t, "3", "plain", "{}"))
	if n := b.Hub.Started(); n != 1 {
		t.Errorf("%d processes were started", n)
	}
}
