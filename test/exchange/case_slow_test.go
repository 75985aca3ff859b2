package exchange

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"mcpbridge/test/internal/e2e"
)

const (
	floodMiB  = 64 // what the server sends while the client does not read
	heldMiB   = 16 // what the bridge may keep of it: a stream's room for notifications, as much again in hand, and change
	noteBytes = 64 << 10
	theEnd    = "the end"
)

// deaf is a client that sends a request and reads the answer when it likes.
type deaf struct {
	net.Conn
	req *http.Request
}

func newDeaf(t *testing.T, b *e2e.Bridge, verb string, h e2e.Header, body []byte) *deaf {
	t.Helper()
	req, err := http.NewRequest(verb, b.URL, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	for k, v := range h {
		req.Header.Set(k, v)
	}
	conn, err := net.Dial("tcp", b.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(256 << 10) // the network holds little on its own
	if err := req.Write(conn); err != nil {
		t.Fatal(err)
	}
	return &deaf{conn, req}
}

// hear reads on until the end of the answer, or until a message holds the text last, and returns the messages. each is called
// after each of them. whole reports that it did not just break off.
func (d *deaf) hear(t *testing.T, last string, each func()) (lines []string, whole bool) {
	t.Helper()
	_ = d.SetReadDeadline(time.Now().Add(2 * e2e.Patience))
	resp, err := http.ReadResponse(bufio.NewReader(d), d.req)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	in := bufio.NewReader(resp.Body)
	for {
		line, err := in.ReadString('\n')
		text, message := strings.CutPrefix(line, "data: ")
		switch {
		case errors.Is(err, io.EOF):
			return lines, true
		case errors.Is(err, os.ErrDeadlineExceeded):
			t.Fatalf("after %d messages nothing comes", len(lines))
		case err != nil:
			return lines, false
		case message:
			if lines = append(lines, text); strings.Contains(text, last) {
				return lines, true
			}
			each()
		}
	}
}

// heap is what lives in this process, the bridge included.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// flood has the server send notifications of 64 KiB each while serve is called now and then.
func flood(t *testing.T, child *e2e.Child, mib int, note func(n int, text string) string, serve func(id int)) {
	t.Helper()
	const batch = 1 << 20 / noteBytes
	text := strings.Repeat("x", noteBytes)
	for n := range mib {
		var lines strings.Builder
		for i := range batch {
			lines.WriteString(note(n*batch+i+1, text) + "\n")
		}
		child.Write(t, lines.String())
		if n%16 == 15 {
			serve(n + 100)
		}
	}
}

func progressNote(token string) func(int, string) string {
	return func(n int, text string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":"%s"}}`, token, n, text)
	}
}

func logNote(n int, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":[%d,"%s"]}}`, n, text)
}

// deafRow is a client that stops reading some kind of stream.
type deafRow struct {
	*deaf
	child *e2e.Child
	note  func(int, string) string // what the server sends on that stream
	serve func(id int) *e2e.Reply  // a call of somebody else to the same server
	last  string                   // the answer; a GET stream has none
}

var deafRows = map[string]func(t *testing.T, b *e2e.Bridge) *deafRow{
	"modern call": func(t *testing.T, b *e2e.Bridge) *deafRow {
		h, body := e2e.ModernCall("1", "never", `{"mark":"deaf"}`, `,"progressToken":"t"`)
		d := newDeaf(t, b, "POST", h, body)
		w := await(t, nil, b.Hub.Child(t, 0), `deaf`)
		return &deafRow{d, w.child, progressNote(w.id), func(id int) *e2e.Reply { return b.Modern(t, fmt.Sprint(id), "plain", "{}") }, lastAnswer(w.id)}
	},
	"legacy call": func(t *testing.T, b *e2e.Bridge) *deafRow {
		s := b.NewSession(t, "2025-11-25", "{}")
		d := newDeaf(t, b, "POST", s.Header(), []byte(legacyNever("1", "deaf")))
		w := await(t, nil, b.Hub.Child(t, 0), `deaf`)
		return &deafRow{d, w.child, progressNote(w.id), func(id int) *e2e.Reply { return s.Call(t, fmt.Sprint(id), "plain", "{}") }, lastAnswer(w.id)}
	},
	"GET stream": func(t *testing.T, b *e2e.Bridge) *deafRow {
		s := b.NewSession(t, "2025-11-25", "{}")
		d := newDeaf(t, b, "GET", s.Header(), nil)
		return &deafRow{d, b.Hub.Child(t, 0), logNote, func(id int) *e2e.Reply { return s.Call(t, fmt.Sprint(id), "plain", "{}") }, ""}
	},
}

func lastAnswer(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + theEnd + `"}]}}`
}

// A client stops reading while its server sends much more than a stream may hold (case 86, rule 4): the bridge keeps a bounded
// part of it, others are served by the same server all the while, and the slow one still gets its answer, or later messages,
// when it reads again. Not parallel: it measures memory.
func TestCase86SlowReader(t *testing.T) {
	for name, begin := range deafRows {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			row := begin(t, b)
			row.wantServed(t, 2)
			before, begun := heap(), time.Now()
			flood(t, row.child, floodMiB, row.note, func(id int) { row.wantServed(t, id) })
			row.wantServed(t, 3) // the bridge has read everything before that answer
			if held := heap() - before; held > heldMiB<<20 {
				t.Errorf("the bridge holds %d MiB of %d, want at most %d", held>>20, floodMiB, heldMiB)
			}
			each := func() {}
			if row.last == "" { // a GET stream takes more as soon as there is room
				each = func() { row.child.Write(t, logNote(0, theEnd)+"\n") }
			} else {
				row.child.Write(t, row.last+"\n")
			}
			lines, whole := row.hear(t, theEnd, each)
			if !whole && time.Since(begun) > 20*time.Second { // taken for gone, see the next test
				t.Logf("cut off after %v", time.Since(begun))
				return
			}
			if !whole || len(lines) < 2 || !strings.Contains(lines[len(lines)-1], theEnd) {
				t.Errorf("%d messages, ended in order: %v; want the last one", len(lines), whole)
			}
			if len(lines) > floodMiB<<20/noteBytes/2 {
				t.Errorf("%d messages were kept or taken by the network: the client was not slow", len(lines))
			}
		})
	}
}

func (r *deafRow) wantServed(t *testing.T, id int) {
	t.Helper()
	if got := r.serve(id); got.Status != 200 || got.Get(t, "result", "content") == "" {
		t.Errorf("somebody else's call fails: %d %s", got.Status, got.Body)
	}
}

// A client that does not read for the write timeout counts as gone: its call is cancelled at the server, which goes on (case 86,
// HTTP-M-17).
func TestCase86DeafClientIsDropped(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: a client is dropped after 30 s without reading; run go test -run TestCase86 ./test/exchange")
	}
	t.Parallel()
	b := start(t)
	row := deafRows["modern call"](t, b)
	flood(t, row.child, floodMiB/4, row.note, func(id int) { row.wantServed(t, id) })
	told := false
	for n := 0; n < 3 && !told; n++ { // each waits for e2e.Patience
		_, _, err := row.child.Find(0, `"notifications/cancelled"`)
		told = err == nil
	}
	if !told {
		t.Error("the server was not told that nobody waits any more")
	}
	if _, whole := row.hear(t, theEnd, func() {}); whole {
		t.Error("the client was not dropped")
	}
	row.wantServed(t, 3)
}
