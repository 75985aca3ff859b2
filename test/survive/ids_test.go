package survive

import (
	"strings"
	"testing"
	"time"

	"mcpbridge/test/internal/e2e"
)

// refused checks that a session id gets 404 with every verb (HTTP-L-21).
func refused(t testing.TB, b *e2e.Bridge, id, what string) {
	t.Helper()
	h := e2e.Header{"Mcp-Session-Id": id, "Mcp-Protocol-Version": legacy}
	for _, verb := range []string{"POST", "GET", "DELETE"} {
		var body []byte
		if verb == "POST" {
			body = e2e.LegacyCall("1", "next", "{}", "")
		}
		r, err := b.Try(verb, h, body)
		if err != nil {
			t.Fatalf("%s with %s: %v", verb, what, err)
		}
		if r.Status != 404 {
			t.Errorf("%s with %s: %d %.200s, want 404", verb, what, r.Status, r.Body)
		}
	}
}

// costless checks that a bridge has neither started a process nor opened a session for what it refused.
func (h *home) costless(t testing.TB, starts int) {
	t.Helper()
	if n := h.starts(t); n != starts {
		t.Errorf("%d processes were started for what was refused", n-starts)
	}
	if s := h.status(t); s.Bridge.Sessions != 0 || s.Bridge.Processes != 0 {
		t.Errorf("the bridge has %d sessions and %d processes, want none", s.Bridge.Sessions, s.Bridge.Processes)
	}
}

// Acceptance 2, SEC-02: an id that is not exactly one the bridge has made is 404 and costs no process: each byte changed, cut
// off at each place, made longer, made for another endpoint, made with another key. The bridge has been started anew, so that
// nothing but the id can tell.
func TestForgedIDs(t *testing.T) {
	t.Parallel()
	other := settle(t, "", entry{name: "a"})
	other.Start(t)
	h := settle(t, "", entry{name: "a"}, entry{name: "b"})
	tenant := h.Start(t)
	foreign := other.at("a").NewSession(t, legacy, "{}").ID
	s, elsewhere := h.at("a").NewSession(t, legacy, "{}"), h.at("b").NewSession(t, legacy, "{}")
	tenant.Kill(t)
	h.Start(t)

	forged := map[string]string{
		"an id of another bridge":           foreign,
		"an id of another endpoint":         elsewhere.ID,
		"an id with a byte more":            s.ID + "A",
		"an id with a byte before":          "A" + s.ID,
		"an id with padding":                s.ID + "=",
		"an id twice":                       s.ID + s.ID,
		"an id in upper case":               strings.ToUpper(s.ID),
		"the beginning of one, end of one":  s.ID[:len(s.ID)/2] + elsewhere.ID[len(elsewhere.ID)/2:],
		"no id of any bridge":               "nope",
		"an id longer than there are":       strings.Repeat("A", 4097),
		"an id of the length of one, zeros": strings.Repeat("A", len(s.ID)),
	}
	h1 := h.starts(t)
	for what, id := range forged {
		refused(t, h.at("a"), id, what)
	}
	h.changed(t, s.ID)
	h.costless(t, h1)
	if got := next(t, s); got.N != 1 { // the id itself is as good as ever, and costs what the others did not
		t.Errorf("the true id's call was counted as %d", got.N)
	}
	if n := h.starts(t); n != h1+1 {
		t.Errorf("%d processes for the true id", n-h1)
	}
	refused(t, h.at("b"), s.ID, "an id that lives at another endpoint")
	h.changedLive(t, s.ID)
}

// changed tries an id with each byte changed in turn, and each of its beginnings.
func (h *home) changed(t testing.TB, id string) {
	t.Helper()
	b := h.at("a")
	for i := range id {
		r := []byte(id)
		r[i] = other(r[i])
		post404(t, b, string(r), "changed at", i)
		if i > 0 {
			post404(t, b, id[:i], "cut off at", i)
		}
	}
}

// changedLive does the same while the session is open, sparsely.
func (h *home) changedLive(t testing.TB, id string) {
	t.Helper()
	for i := 0; i < len(id); i += 7 {
		r := []byte(id)
		r[i] = other(r[i])
		post404(t, h.at("a"), string(r), "of a live session changed at", i)
	}
	r := []byte(id)
	r[len(r)-1] = other(r[len(r)-1])
	post404(t, h.at("a"), string(r), "of a live session changed at", len(id)-1)
}

// other is another letter of base64url: the one whose value differs in the lowest bit, where there is one beside it.
func other(c byte) byte {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	if i := strings.IndexByte(letters, c); i >= 0 {
		return letters[i^1]
	}
	return 'A'
}

func post404(t testing.TB, b *e2e.Bridge, id, what string, at int) {
	t.Helper()
	r, err := b.Try("POST", e2e.Header{"Mcp-Session-Id": id, "Mcp-Protocol-Version": legacy}, e2e.LegacyCall("1", "next", "{}", ""))
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != 404 {
		t.Errorf("an id %s %d: %d %.200s, want 404", what, at, r.Status, r.Body)
	}
}

// Acceptance 2: an id that was ended with DELETE is 404 before and after a restart, even if the bridge is killed at once after
// its 204. It costs no process.
func TestDeletedID(t *testing.T) {
	for _, how := range endings {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			h := settle(t, "", entry{name: "a"})
			tenant := h.Start(t)
			b := h.at("a")
			s, before := b.NewSession(t, legacy, "{}"), b.NewSession(t, legacy, "{}")
			pid := next(t, before).Pid
			if r := before.Delete(t); r.Status != 204 {
				t.Fatalf("DELETE: %d %s", r.Status, r.Body)
			}
			refused(t, b, before.ID, "a deleted id")
			eventually(t, "the process of a deleted session ends", func() bool { return !alive(pid) })
			next(t, s)
			if r := s.Delete(t); r.Status != 204 {
				t.Fatalf("DELETE: %d %s", r.Status, r.Body)
			}
			how.end(t, tenant)
			starts := h.starts(t)
			tenant = h.Start(t)
			for _, id := range []string{s.ID, before.ID} {
				refused(t, b, id, "a deleted id after a restart")
			}
			h.costless(t, starts)
			tenant.Kill(t)
			h.Start(t)
			refused(t, b, s.ID, "a deleted id after another restart")
		})
	}
}

// A session that nobody has open, because the bridge was started anew, can be ended all the same.
func TestDeleteAfterRestart(t *testing.T) {
	t.Parallel()
	h := settle(t, "", entry{name: "a"})
	tenant := h.Start(t)
	b := h.at("a")
	s := b.NewSession(t, legacy, "{}")
	tenant.Kill(t)
	starts := h.starts(t)
	tenant = h.Start(t)
	if r := s.Delete(t); r.Status != 204 {
		t.Errorf("DELETE: %d %s", r.Status, r.Body)
	}
	refused(t, b, s.ID, "a deleted id")
	tenant.Kill(t)
	h.Start(t)
	refused(t, b, s.ID, "a deleted id after a restart")
	h.costless(t, starts)
}

// Case 54, acceptance 2: the idle clock spares a session with a call under way or a stream open; one that is idle ends with its
// process, and its id is 404 then, also after a restart.
func TestIdleSession(t *testing.T) {
	t.Parallel()
	h := settle(t, `"limits": {"sessionIdle": "1s"},`, entry{name: "a"})
	tenant := h.Start(t)
	b := h.at("a")
	idle, busy, listening := b.NewSession(t, legacy, "{}"), b.NewSession(t, legacy, "{}"), b.NewSession(t, legacy, "{}")
	pid, heard := next(t, idle).Pid, next(t, listening).Pid
	stream := listening.Listen(t, "")
	working := busy.Launch(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":4000}}}`)
	eventually(t, "the process of an idle session ends", func() bool { return !alive(pid) })
	refused(t, b, idle.ID, "an id that was idle for too long")
	if !alive(heard) {
		t.Error("the process of a session with an open stream was ended")
	}
	if got := told(t, working.Wait(t)); len(h.find(t, 0, "start ")) != 3 || !alive(got.Pid) {
		t.Errorf("a call longer than the idle time was answered by %+v; starts: %d", got, h.starts(t))
	}
	next(t, busy) // it has been used until a moment ago
	if got := next(t, listening); got.Pid != heard || got.N != 2 {
		t.Errorf("the session with a stream was answered by %+v, want process %d", got, heard)
	}
	stream.Drop()
	eventually(t, "both idle sessions end", func() bool { return h.status(t).Bridge.Processes == 0 })
	tenant.Kill(t)
	starts := h.starts(t)
	h.Start(t)
	for _, s := range []*e2e.Session{idle, busy, listening} {
		refused(t, b, s.ID, "an id that was idle for too long, after a restart")
	}
	h.costless(t, starts)
}

// Acceptance 2: no id is good for longer than sessionLife, whether its session is open, in use, or only known from its id.
func TestExpiredID(t *testing.T) {
	t.Parallel()
	const life = 3 * time.Second
	h := settle(t, `"limits": {"sessionLife": "`+life.String()+`"},`, entry{name: "a"})
	tenant := h.Start(t)
	b := h.at("a")
	began := time.Now()
	s := b.NewSession(t, legacy, "{}")
	next(t, s)
	tenant.Kill(t)
	tenant = h.Start(t)
	if r := s.Call(t, "1", "next", "{}"); r.Status != 200 && time.Since(began) < life {
		t.Errorf("before its time is over a session is refused: %d %s", r.Status, r.Body)
	}
	used := 0
	eventually(t, "a session in use ends when its time is over", func() bool {
		used++
		return s.Call(t, "1", "next", "{}").Status == 404
	})
	if lived := time.Since(began); lived < life || lived > 2*life || used < 2 {
		t.Errorf("the session lived %v and was used %d times, want about %v", lived, used, life)
	}
	refused(t, b, s.ID, "an expired id")
	eventually(t, "its process ends", func() bool { return h.status(t).Bridge.Processes == 0 })
	tenant.Kill(t)
	starts := h.starts(t)
	h.Start(t)
	refused(t, b, s.ID, "an expired id after a restart")
	h.costless(t, starts)
}
