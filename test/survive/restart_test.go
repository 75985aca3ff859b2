package survive

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"mcpbridge/test/internal/e2e"
	"mcpbridge/test/internal/rig"
)

const (
	uri     = "counter://a"
	updated = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`
	// kept is when what a session has set must be safe from a crash of the bridge: within a second of the change.
	kept = 1500 * time.Millisecond
)

// furnished opens a session, and sets what a session can set.
func furnished(t testing.TB, b *e2e.Bridge) *e2e.Session {
	t.Helper()
	s := b.NewSession(t, legacy, `{"roots":{}}`)
	accepted(t, s, `{"jsonrpc":"2.0","id":"level","method":"logging/setLevel","params":{"level":"warning"}}`)
	accepted(t, s, `{"jsonrpc":"2.0","id":"sub","method":"resources/subscribe","params":{"uri":"`+uri+`"}}`)
	return s
}

func accepted(t testing.TB, s *e2e.Session, request string) {
	t.Helper()
	if r := s.Post(t, request); r.Status != 200 || r.Get(t, "result") != "{}" {
		t.Fatalf("%s was answered with %d %s", request, r.Status, r.Body)
	}
}

// next counts.
func next(t testing.TB, s *e2e.Session) state {
	t.Helper()
	return told(t, s.Call(t, "1", "next", "{}"))
}

// announce has the server tell of an update of the resource that is subscribed to.
func announce(t testing.TB, s *e2e.Session) {
	t.Helper()
	told(t, s.Call(t, "2", "announce", `{"method":"notifications/resources/updated","params":{"uri":"`+uri+`"}}`))
}

// awaitMessage reads a stream up to a message.
func awaitMessage(t testing.TB, st *e2e.Stream, want string) {
	t.Helper()
	for range 100 { // what may have changed meanwhile comes first, once for each kind
		if string(st.Message(t).Data) == want {
			return
		}
	}
	t.Fatalf("the stream does not bring %s", want)
}

// established checks that a process was told by the bridge what the session had set.
func (h *home) established(t testing.TB, pid int) {
	t.Helper()
	for _, want := range [][]string{
		{`"method":"initialize"`, `"clientInfo":{"name":"e2e","version":"1"}`, `"roots":{}`, legacy},
		{`"method":"logging/setLevel"`, `"level":"warning"`},
		{`"method":"resources/subscribe"`, `"uri":"` + uri + `"`},
	} {
		if n := len(h.find(t, pid, want...)); n != 1 {
			t.Errorf("process %d was sent %d messages with %q, want 1", pid, n, want)
		}
	}
}

// ending is a way a bridge ends.
type ending struct {
	name string
	end  func(testing.TB, *rig.Tenant)
	wait time.Duration // what a session has set is safe after that
}

var endings = []ending{
	{"killed", func(t testing.TB, r *rig.Tenant) { r.Kill(t) }, kept},
	{"stopped", func(t testing.TB, r *rig.Tenant) {
		if code := r.Stop(t); code != 0 {
			t.Errorf("exit code %d after SIGTERM, want 0", code)
		}
	}, 0},
}

// Acceptance 2: the bridge ends and starts again; the next request of an old session is served by a new process,
// which has been given the client's own handshake, log level and subscriptions. A new GET stream tells that lists may have
// changed, and brings what the server announces. The time a session was opened does not matter: a second end is as good.
func TestSessionOutlivesBridge(t *testing.T) {
	for _, how := range endings {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			h := settle(t, "", entry{name: "a"})
			tenant := h.Start(t)
			s := furnished(t, h.at("a"))
			stream := s.Listen(t, "")
			first := next(t, s)
			announce(t, s)
			awaitMessage(t, stream, updated)
			last := first
			for round := range 2 {
				<-time.After(how.wait)
				how.end(t, tenant)
				stream.Rest(t)
				eventually(t, "the server's process ends with the bridge", func() bool { return !alive(last.Pid) })
				tenant = h.Start(t)
				now := next(t, s)
				if now.N != 1 || now.Pid == last.Pid {
					t.Errorf("round %d: a call was answered by process %d with %d, want a new process and 1", round, now.Pid, now.N)
				}
				h.established(t, now.Pid)
				stream = s.Listen(t, "")
				if stream.Status != 200 {
					t.Fatalf("GET: %d", stream.Status)
				}
				awaitMessage(t, stream, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				announce(t, s)
				awaitMessage(t, stream, updated)
				last = now
			}
			if n := h.starts(t); n != 3 {
				t.Errorf("%d processes were started for one session in 3 runs", n)
			}
		})
	}
}

// A GET stream is as good a first request as a call: it comes back, with Last-Event-ID of the earlier run, as a fresh stream
// (design section 8), and brings what the server says.
func TestStreamComesBackFirst(t *testing.T) {
	t.Parallel()
	h := settle(t, "", entry{name: "a"})
	tenant := h.Start(t)
	s := furnished(t, h.at("a"))
	stream := s.Listen(t, "")
	announce(t, s)
	var event e2e.Event
	for string(event.Data) != updated {
		event = stream.Message(t)
	}
	if event.ID == "" {
		t.Fatal("an event of a session's stream has no id")
	}
	<-time.After(kept)
	tenant.Kill(t)
	h.Start(t)
	stream = s.Listen(t, event.ID)
	if stream.Status != 200 {
		t.Fatalf("GET: %d", stream.Status)
	}
	awaitMessage(t, stream, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	announce(t, s)
	awaitMessage(t, stream, updated)
	h.established(t, next(t, s).Pid)
}

// Many callers come back at once: one process is started for each session, and nobody is refused.
func TestManyComeBackAtOnce(t *testing.T) {
	t.Parallel()
	const callers = 8
	h := settle(t, "", entry{name: "a"})
	tenant := h.Start(t)
	b := h.at("a")
	s := b.NewSession(t, legacy, "{}")
	next(t, s)
	tenant.Kill(t)
	h.Start(t)
	pending := make([]*e2e.Pending, callers)
	for i := range pending {
		pending[i] = s.Launch(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"next","arguments":{}}}`, i))
	}
	counts := map[int]bool{}
	for i, p := range pending {
		r := p.Wait(t)
		if got := r.Get(t, "id"); got != fmt.Sprint(i) {
			t.Errorf("caller %d got the answer of %s", i, got)
		}
		counts[told(t, r).N] = true
	}
	if len(counts) != callers || h.starts(t) != 2 {
		t.Errorf("%d callers got counts %v, and there were %d processes, want 2", callers, counts, h.starts(t))
	}
}

// Design section 8: if the new process negotiates another revision than the session began with, the session is over: 404, and
// the client starts over.
func TestOtherRevisionAfterRestart(t *testing.T) {
	t.Parallel()
	h := settle(t, "")
	version := h.Dir + "/version"
	write(t, version, "2025-06-18")
	h.furnish(t, "", entry{name: "a", flags: []string{"-version", "@" + version}})
	tenant := h.Start(t)
	b := h.at("a")
	s := b.NewSession(t, legacy, "{}")
	if s.Version != "2025-06-18" {
		t.Fatalf("negotiated %s", s.Version)
	}
	next(t, s)
	tenant.Kill(t)
	tenant = h.Start(t)
	next(t, s) // the same revision: goes on
	tenant.Kill(t)
	write(t, version, "2025-03-26")
	h.Start(t)
	if r := s.Call(t, "1", "next", "{}"); r.Status != 404 {
		t.Errorf("a server that speaks another revision now: %d %s, want 404", r.Status, r.Body)
	}
	if again := b.NewSession(t, legacy, "{}"); again.Version != "2025-03-26" {
		t.Errorf("a new session has %s", again.Version)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Design decision 7: the server's process dies under a session, and the session goes on: log level, subscriptions, and the
// GET stream that is open. The call that the process took along has its error at once.
func TestSessionOutlivesProcess(t *testing.T) {
	t.Parallel()
	h := settle(t, "", entry{name: "a", more: `, "restart": {"initial": "20ms"}`})
	h.Start(t)
	s := furnished(t, h.at("a"))
	stream := s.Listen(t, "")
	first := next(t, s)
	waiting := s.Launch(t, `{"jsonrpc":"2.0","id":"lost","method":"tools/call","params":{"name":"sleep","arguments":{"ms":600000}}}`)
	eventually(t, "the call reaches the server", func() bool { return len(h.find(t, first.Pid, `"name":"sleep"`)) == 1 })
	p, err := os.FindProcess(first.Pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	if r := waiting.Wait(t); r.Get(t, "error", "data", "reason") != `"back_terminated"` || r.Get(t, "id") != `"lost"` {
		t.Errorf("the call that was under way got %d %s", r.Status, r.Body)
	}
	now := next(t, s)
	if now.N != 1 || now.Pid == first.Pid {
		t.Errorf("the next call was answered by process %d with %d", now.Pid, now.N)
	}
	h.established(t, now.Pid)
	announce(t, s)
	awaitMessage(t, stream, updated)
	if n := len(h.find(t, 0, `"method":"initialize"`)); n != 2 {
		t.Errorf("%d handshakes for 2 processes", n)
	}
}

// `mcpbridge restart NAME` is such an end too, and fails no session.
func TestSessionOutlivesRestartCommand(t *testing.T) {
	t.Parallel()
	h := settle(t, "", entry{name: "a"}, entry{name: "b"})
	h.Start(t)
	s, other := furnished(t, h.at("a")), h.at("b").NewSession(t, legacy, "{}")
	stream := s.Listen(t, "")
	first, still := next(t, s), next(t, other)
	if out, complaint, code := h.Run(t, "restart", "a"); code != 0 {
		t.Fatalf("restart: exit %d\n%s%s", code, out, complaint)
	}
	if alive(first.Pid) {
		t.Errorf("process %d lives on", first.Pid)
	}
	now := next(t, s)
	if now.N != 1 {
		t.Errorf("the next call was counted as %d", now.N)
	}
	h.established(t, now.Pid)
	announce(t, s)
	awaitMessage(t, stream, updated)
	if same := next(t, other); same.Pid != still.Pid || same.N != 2 {
		t.Errorf("the other server's session is at process %d, count %d; it was at %d", same.Pid, same.N, still.Pid)
	}
	_, complaint, code := h.Run(t, "restart", "nobody")
	if code != 1 || !strings.Contains(complaint, "nobody") {
		t.Errorf("restart of a server that is not there: exit %d, %q", code, complaint)
	}
}
