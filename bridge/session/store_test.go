package session_test

import (
	"context"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/session"
)

// Ids are visible ASCII, of 128 random bits or more, and never the same (HTTP-L-18, SEC-02).
func TestIDs(t *testing.T) {
	st := session.NewStore(session.Config{Sessions: session.NewCap(2000)})
	fit := regexp.MustCompile(`^[A-Za-z0-9_-]{22,}$`) // 22 of 64 letters are 132 bits
	seen := map[string]bool{}
	for range 1000 {
		id := add(t, st, bridge.Local).ID()
		if !fit.MatchString(id) || seen[id] {
			t.Fatalf("id %q", id)
		}
		seen[id] = true
	}
}

// A session exists for its principal alone, from Add to Delete (HTTP-L-21, HTTP-L-29).
func TestFind(t *testing.T) {
	st := session.NewStore(session.Config{})
	early := st.New("alice", nil, false)
	if early.ID() != "" || st.Find(early.ID(), "alice") != nil || st.Len() != 0 {
		t.Error("found before its handshake")
	}
	s := add(t, st, "alice")
	for _, tc := range []struct {
		id    string
		who   bridge.Principal
		found bool
	}{
		{s.ID(), "alice", true}, {s.ID(), "bob", false}, {s.ID(), bridge.Local, false}, {s.ID(), "", false},
		{s.ID() + "x", "alice", false}, {"", "alice", false}, {"nope", "alice", false},
	} {
		if got := st.Find(tc.id, tc.who); (got != nil) != tc.found {
			t.Errorf("find %q for %q: %v", tc.id, tc.who, got != nil)
		}
	}
	if st.Delete(s.ID(), "bob") || !st.Delete(s.ID(), "alice") {
		t.Error("deleted by another, or not by its own")
	}
	if st.Find(s.ID(), "alice") != nil || st.Len() != 0 {
		t.Error("found after its end")
	}
}

func TestFacts(t *testing.T) {
	link := bridge.NewLink(t.Context(), bridge.LinkConfig{})
	st := session.NewStore(session.Config{})
	s := st.New("alice", link, true)
	if err := st.Add(s, session.Hello{Version: mcp.V20250618, ClientInfo: []byte(`{"name":"c"}`), Capabilities: []byte(`{"sampling":{}}`)}); err != nil {
		t.Fatal(err)
	}
	if s.Version() != mcp.V20250618 || s.Link() != link || !s.Exclusive() || string(s.ClientInfo()) != `{"name":"c"}` ||
		string(s.Capabilities()) != `{"sampling":{}}` || s.Level() != mcp.NoLevel {
		t.Error("a fact of the handshake is lost")
	}
	if !s.Declares("sampling") || s.Declares("roots") || s.Declares("elicitation") {
		t.Error("Declares says other than the client")
	}
	s.SetLevel(3)
	if s.Level() != 3 {
		t.Error("the level is lost")
	}
}

// n sessions are open, one more is refused with 429 and a clear text (case 54), until one ends.
func TestSessionLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		set *session.Cap
		max int
	}{"set": {session.NewCap(3), 3}, "default": {nil, 1000}} {
		t.Run(name, func(t *testing.T) {
			st := session.NewStore(session.Config{Sessions: tc.set})
			var last *session.Session
			for range tc.max {
				if err := st.Reserve(); err != nil {
					t.Fatal(err)
				}
				last = add(t, st, bridge.Local)
			}
			for _, err := range []*bridge.Error{st.Reserve(), st.Add(st.New(bridge.Local, nil, false), session.Hello{})} {
				if err == nil || err.Status != 429 || err.Reason != bridge.ReasonSessionLimit || err.Retry == 0 || err.Message == "" {
					t.Fatalf("one too many: %+v", err)
				}
			}
			st.Delete(last.ID(), bridge.Local)
			add(t, st, bridge.Local)
		})
	}
}

// The limit holds also when many pass Reserve before the first is added.
func TestSessionLimitUnderRace(t *testing.T) {
	st := session.NewStore(session.Config{Sessions: session.NewCap(10)})
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			if st.Reserve() == nil {
				_ = st.Add(st.New(bridge.Local, nil, false), session.Hello{})
			}
		})
	}
	wg.Wait()
	if st.Len() != 10 {
		t.Errorf("%d sessions, limit 10", st.Len())
	}
}

// ended counts how often each session was reported.
type ended struct {
	mu sync.Mutex
	n  map[*session.Session]int
}

func (e *ended) add(s *session.Session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.n == nil {
		e.n = map[*session.Session]int{}
	}
	e.n[s]++
}

func (e *ended) of(s *session.Session) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.n[s]
}

// Each session is reported once when it ends, however it ends. After Close there are no new ones.
func TestEndedOnce(t *testing.T) {
	var e ended
	st := session.NewStore(session.Config{Ended: e.add})
	a, b := add(t, st, bridge.Local), add(t, st, bridge.Local)
	never := st.New(bridge.Local, nil, false)
	if !st.Delete(a.ID(), bridge.Local) || st.Delete(a.ID(), bridge.Local) || st.Delete(never.ID(), bridge.Local) {
		t.Error("Delete says other than what is there")
	}
	st.Close()
	st.Close()
	if st.Delete(b.ID(), bridge.Local) {
		t.Error("deleted after the store was closed")
	}
	if e.of(a) != 1 || e.of(b) != 1 || e.of(never) != 0 {
		t.Errorf("reported %d and %d times, and %d times one that never was", e.of(a), e.of(b), e.of(never))
	}
	for _, err := range []*bridge.Error{st.Reserve(), st.Add(never, session.Hello{})} {
		if err == nil || err.Status != 503 || err.Reason != bridge.ReasonStopping {
			t.Errorf("after Close: %+v", err)
		}
	}
	if st.Len() != 0 {
		t.Error("a session after Close")
	}
}

// clock runs a store with an idle time of two seconds.
func clock(t *testing.T, cfg session.Config) (st *session.Store, stop func()) {
	cfg.Idle = 2 * time.Second
	st = session.NewStore(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { st.Run(ctx) })
	return st, func() { cancel(); wg.Wait() }
}

// An idle session ends after two seconds and not before; each use starts the clock anew (HTTP-L-33).
func TestIdleExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e ended
		st, stop := clock(t, session.Config{Ended: e.add})
		defer stop()
		time.Sleep(300 * time.Millisecond) // not in step with the sweeps
		s := add(t, st, bridge.Local)
		time.Sleep(1900 * time.Millisecond)
		s.Enter()
		s.Leave()
		time.Sleep(1900 * time.Millisecond)
		if st.Find(s.ID(), bridge.Local) == nil {
			t.Fatal("ended 1.9 s after it was used")
		}
		time.Sleep(1900 * time.Millisecond) // Find was a use
		if st.Len() != 1 {
			t.Fatal("ended 1.9 s after it was looked for")
		}
		time.Sleep(1200 * time.Millisecond)
		if st.Find(s.ID(), bridge.Local) != nil || e.of(s) != 1 {
			t.Error("not ended 3.1 s after its last use")
		}
	})
}

// A negative idle time is for ever.
func TestNeverExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := session.NewStore(session.Config{Idle: -1})
		s := add(t, st, bridge.Local)
		ctx, stop := context.WithTimeout(t.Context(), 24*time.Hour)
		defer stop()
		st.Run(ctx)
		if st.Find(s.ID(), bridge.Local) == nil {
			t.Error("ended")
		}
	})
}

// What keeps a session: a request in flight, whether its client waits or not, an open stream, an open question. When that
// is over the clock starts anew (case 54).
func TestNotIdle(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, s *session.Session, link *bridge.Link) (end func()){
		"request under way": func(_ *testing.T, s *session.Session, _ *bridge.Link) func() { s.Enter(); return s.Leave },
		"stream": func(_ *testing.T, s *session.Session, _ *bridge.Link) func() {
			st := s.Stand()
			return func() { s.Sit(st) }
		},
		"question": func(t *testing.T, s *session.Session, link *bridge.Link) func() {
			c, _ := link.Conn(t.Context())
			ask(t, s, c, "7", nil)
			return func() { s.Answer(scan(t, `{"jsonrpc":"2.0","id":"mb-1","result":{}}`)) }
		},
		"kept request without a reader": func(_ *testing.T, s *session.Session, _ *bridge.Link) func() {
			st := bridge.NewStream(1, s.PostLimits())
			s.Keep(st)
			s.Detach(st)
			return func() { st.Finish(bridge.Answer{Frame: text(`{}`)}) }
		},
		"request of a client that has left": func(t *testing.T, s *session.Session, link *bridge.Link) func() {
			c, _ := link.Conn(t.Context())
			m := scan(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
			ticket, err := c.Dispatch(t.Context(), &bridge.Exchange{Message: m, Method: mcp.ToolsCall, Era: mcp.Legacy,
				Session: s, Sink: bridge.NewStream(1, s.PostLimits())})
			if err != nil {
				t.Fatal(err)
			}
			return func() { ticket.Cancel(nil) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, stop := clock(t, session.Config{})
				defer stop()
				link := bridge.NewLink(t.Context(), bridge.LinkConfig{Name: "srv", Back: newServer()})
				defer func() { _ = link.Close(context.Background()) }()
				s := st.New(bridge.Local, link, false)
				if err := st.Add(s, session.Hello{}); err != nil {
					t.Fatal(err)
				}
				end := use(t, s, link)
				time.Sleep(10*time.Second + 700*time.Millisecond)
				if st.Len() != 1 {
					t.Fatal("ended while in use")
				}
				end()
				time.Sleep(1200 * time.Millisecond)
				if st.Len() != 1 {
					t.Fatal("the clock did not start anew")
				}
				time.Sleep(3 * time.Second)
				if st.Len() != 0 {
					t.Error("not ended after use")
				}
			})
		})
	}
}

// A session that ends takes its own streams along; a running call's stays open for who reads it, so that it gets its
// answer (rule 3, HTTP-L-31).
func TestEndOfSession(t *testing.T) {
	st, s := open(t, session.Config{})
	own := s.Stand()
	read, left := bridge.NewStream(1, s.PostLimits()), bridge.NewStream(1, s.PostLimits())
	s.Keep(read)
	s.Keep(left)
	s.Detach(left)
	left.Notify(text("1"), "")
	id := left.ID
	st.Delete(s.ID(), bridge.Local)
	if !over(own) || !left.Over() {
		t.Error("a stream of the session is open")
	}
	if over(read) {
		t.Error("the stream of a call that is read was closed")
	}
	read.Finish(bridge.Answer{Frame: text("answer")})
	same(t, "the call", take(read), "answer")
	if _, _, ok := s.Resume(eventID(id, 0)); ok {
		t.Error("a stream was resumed after the end")
	}
	if late := s.Stand(); !over(late) {
		t.Error("a stream opened after the end stays open")
	}
	s.Notify(text("late"), "")
	late := bridge.NewStream(1, s.PostLimits())
	s.Keep(late)
	s.Detach(late)
	s.Sit(own)
	c, v := connect(t)
	ask(t, s, c, "1", nil)
	if got := v.got(); len(got) != 1 || scan(t, got[0]).Error.OK() == false {
		t.Errorf("a question after the end: %v", got)
	}
}
