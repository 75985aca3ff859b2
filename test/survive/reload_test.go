package survive

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpbridge/test/internal/e2e"
	"mcpbridge/test/internal/rig"
)

// caller calls a counter again and again, and knows what the answers must be.
type caller struct {
	b      *e2e.Bridge
	header e2e.Header
	body   []byte
	alone  bool // nobody else counts at its process
	last   state
	calls  int
}

// once makes a call. The process must be the one of the call before, whose state only grows.
func (c *caller) once() error {
	r, err := c.b.Try("POST", c.header, c.body)
	if err != nil {
		return err
	}
	now, err := stateOf(r)
	if err != nil {
		return err
	}
	c.calls++
	grown := now.N > c.last.N
	if c.alone {
		grown = now.N == c.last.N+1
	}
	if c.last.Pid != 0 && now.Pid != c.last.Pid || !grown {
		return fmt.Errorf("process %d counts %d after process %d counted %d", now.Pid, now.N, c.last.Pid, c.last.N)
	}
	c.last = now
	return nil
}

// callers are four legacy sessions, each with a process of its own, and four modern clients that share one.
func callers(t testing.TB, b *e2e.Bridge) (all []*caller) {
	t.Helper()
	for i := range 8 {
		c := &caller{b: b, alone: i < 4}
		if c.alone {
			c.header, c.body = b.NewSession(t, legacy, "{}").Header(), e2e.LegacyCall("1", "next", "{}", "")
		} else {
			c.header, c.body = e2e.ModernCall(fmt.Sprint(i), "next", "{}", "")
		}
		all = append(all, c)
	}
	return all
}

// crowd lets callers call until the test says that is enough, and fails for each call that fails.
type crowd struct {
	all  []*caller
	stop atomic.Bool
	wg   sync.WaitGroup
	errs chan error
}

func gather(t testing.TB, all []*caller) *crowd {
	w := &crowd{all: all, errs: make(chan error, len(all))}
	for i, c := range all {
		w.wg.Go(func() {
			pause := time.NewTicker(20 * time.Millisecond) // the reloads need a processor too
			defer pause.Stop()
			for !w.stop.Load() {
				if err := c.once(); err != nil {
					w.errs <- fmt.Errorf("caller %d, call %d: %w", i, c.calls+1, err)
					return
				}
				<-pause.C
			}
		})
	}
	t.Cleanup(func() {
		w.stop.Store(true)
		w.wg.Wait()
	})
	return w
}

// dismiss ends the calls and returns how many there were.
func (w *crowd) dismiss(t testing.TB) (calls int) {
	t.Helper()
	w.stop.Store(true)
	w.wg.Wait()
	close(w.errs)
	for err := range w.errs {
		t.Error(err)
	}
	for i, c := range w.all {
		calls += c.calls
		if c.calls == 0 {
			t.Errorf("caller %d made no call", i)
		}
	}
	return calls
}

// A way in which a bridge is told of a change.
type telling struct {
	name   string
	atOnce bool // the change holds when this returns
	tell   func(testing.TB, *home, *rig.Tenant)
}

var tellings = []telling{
	{"reload", true, func(t testing.TB, h *home, _ *rig.Tenant) {
		if out, complaint, code := h.Run(t, "reload"); code != 0 {
			t.Fatalf("reload: exit %d\n%s%s", code, out, complaint)
		}
	}},
	{"SIGHUP", false, func(t testing.TB, _ *home, r *rig.Tenant) { r.Signal(t, hangup) }},
	{"file", false, func(testing.TB, *home, *rig.Tenant) {}},
}

// Acceptance 7: eight callers of server A notice nothing while B is added, changed and removed, 100 times in all, told by
// command, by signal and by the file alone in turn. B's new state serves right after each change, and nothing is left of the
// processes of B's earlier states. A's processes are the same from the first call to the last (case 92), and so is the stream
// of a session that listens.
func TestReloadHundredTimes(t *testing.T) {
	t.Parallel()
	a := entry{name: "a"}
	h := settle(t, "", a)
	tenant := h.Start(t)
	w := gather(t, callers(t, h.at("a")))
	listener := furnished(t, h.at("a"))
	stream := listener.Listen(t, "")
	b := h.at("b")
	var pids []int
	for i := range 100 {
		way := tellings[(i+i/3)%len(tellings)] // each state with each of them
		mark := ""
		switch i % 3 {
		case 0, 1: // added, changed
			mark = fmt.Sprint("state-", i)
			h.furnish(t, "", a, entry{name: "b", flags: []string{"-mark", mark}})
		case 2: // removed
			h.furnish(t, "", a)
		}
		way.tell(t, h, tenant)
		var why string
		ok := func() bool {
			var pid int
			if pid, why = serves(b, mark); pid != 0 {
				pids = append(pids, pid)
			}
			return why == ""
		}
		if way.atOnce && !ok() {
			t.Errorf("change %d: right after `mcpbridge reload`: %s", i, why)
		}
		eventually(t, fmt.Sprintf("change %d, told by %s", i, way.name), ok)
	}
	calls := w.dismiss(t)
	announce(t, listener)
	if e := stream.Message(t); string(e.Data) != updated {
		t.Errorf("the stream of a session of A brought %s first", e.Data)
	}
	h.furnish(t, "", a)
	tellings[0].tell(t, h, tenant)
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("process %d of a removed state ends", pid), func() bool { return !alive(pid) })
	}
	eventually(t, "no process but A's is left", func() bool { return h.status(t).Bridge.Processes == 6 })
	if starts := h.starts(t); starts > 6+67 {
		t.Errorf("%d processes were started for 6 of A and 67 states of B", starts)
	}
	t.Logf("%d calls of A during 100 changes", calls)
}

// serves reports what is wrong with a server that should tell this mark, or not be there if it is "", and the process that
// answered.
func serves(b *e2e.Bridge, mark string) (pid int, why string) {
	header, body := e2e.ModernCall("1", "about", "{}", "")
	r, err := b.Try("POST", header, body)
	if err != nil {
		return 0, err.Error()
	}
	if mark == "" {
		if r.Status != 404 {
			return 0, fmt.Sprintf("it is there: %d %.200s", r.Status, r.Body)
		}
		return 0, ""
	}
	s, err := stateOf(r)
	if err != nil {
		return 0, err.Error()
	}
	if s.Mark != mark {
		return s.Pid, fmt.Sprintf("it is in state %q, want %q", s.Mark, mark)
	}
	return s.Pid, ""
}

// Issue 3, reload: drain only what changed. A call under way at a server that is changed, or removed, is finished by the process
// it was given to; the next call of the same session is answered by the new one. What the session has set is set there.
func TestCallDuringChange(t *testing.T) {
	t.Parallel()
	h := settle(t, "", entry{name: "b", flags: []string{"-mark", "old"}})
	h.Start(t)
	s := furnished(t, h.at("b"))
	old := next(t, s)
	long := s.Launch(t, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":1500}}}`)
	header, body := e2e.ModernCall("9", "sleep", `{"ms":1500}`, "")
	modern := h.at("b").Launch(t, "POST", header, body)
	eventually(t, "both calls reach the server", func() bool { return len(h.find(t, 0, `"name":"sleep"`)) == 2 })
	h.furnish(t, "", entry{name: "b", flags: []string{"-mark", "new"}})
	tellings[0].tell(t, h, nil)
	if now := next(t, s); now.Mark != "new" || now.N != 1 {
		t.Errorf("right after the change a call of the session is answered by %+v", now)
	} else {
		h.established(t, now.Pid)
	}
	for _, p := range []*e2e.Pending{long, modern} {
		if got := told(t, p.Wait(t)); got.Mark != "old" {
			t.Errorf("a call under way was answered by %+v", got)
		}
	}
	eventually(t, "the old process ends", func() bool { return !alive(old.Pid) })
	long = s.Launch(t, `{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":1000}}}`)
	eventually(t, "the call reaches the server", func() bool { return len(h.find(t, 0, `"name":"sleep"`)) == 3 })
	h.furnish(t, "", entry{name: "c"})
	tellings[0].tell(t, h, nil)
	if r := s.Call(t, "11", "next", "{}"); r.Status != 404 {
		t.Errorf("a call of a server that was removed: %d %s", r.Status, r.Body)
	}
	if got := told(t, long.Wait(t)); got.Mark != "new" {
		t.Errorf("a call under way when its server was removed was answered by %+v", got)
	}
}
