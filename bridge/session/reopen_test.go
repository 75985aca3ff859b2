package session_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/session"
)

// open works at once.
func (o *opener) open(context.Context, *session.Session) *bridge.Error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n++
	return nil
}

// reopen asks a store for a session.
func reopen(t testing.TB, st *session.Store, id string, p bridge.Principal) (s *session.Session, opened bool) {
	t.Helper()
	var o opener
	s, err := st.Reopen(t.Context(), id, p, o.open)
	if err != nil {
		t.Fatalf("cannot reopen: %v", err)
	}
	return s, o.count() > 0
}

// What the id carries comes back byte for byte, at another store with the same key (design decision 6).
func TestReopen(t *testing.T) {
	k := newKept()
	first := session.NewStore(sealing(t, k))
	s := shake(t, first, "alice")
	s.SetLevel(3)
	s.NoteSubscription([]byte(`"file:///a"`), true)
	s.NoteSubscription([]byte(`"b"`), true)
	first.Close()

	st := session.NewStore(sealing(t, k))
	defer st.Close()
	link := bridge.NewLink(t.Context(), bridge.LinkConfig{})
	got, err := st.Reopen(t.Context(), s.ID(), "alice", func(_ context.Context, s *session.Session) *bridge.Error {
		if string(s.InitParams()) != params || s.Level() != 3 || !slices.Equal(s.Subscriptions(), []string{`"file:///a"`, `"b"`}) {
			t.Errorf("open finds %s, %v, %q", s.InitParams(), s.Level(), s.Subscriptions())
		}
		if st.Len() != 0 {
			t.Error("the session is in the store before it is open")
		}
		s.Bind(link, true)
		return nil
	})
	if err != nil || got == nil {
		t.Fatalf("%v, %v", got, err)
	}
	if got == s || got.ID() != s.ID() || got.Short() != s.Short() || got.Principal() != "alice" || got.Version() != mcp.V20250618 ||
		string(got.Capabilities()) != `{"sampling":{}}` || string(got.ClientInfo()) != `{"name":"c","n":12345678901234567890}` ||
		!got.Declares("sampling") || got.Declares("roots") || got.Link() != link || !got.Exclusive() {
		t.Errorf("something of the session is lost: %+v", got)
	}
	if !got.SameServer([]byte(caps)) || got.SameServer([]byte(`{"tools":{}}`)) {
		t.Error("the server's capabilities are lost")
	}
	if again, opened := reopen(t, st, s.ID(), "alice"); again != got || opened {
		t.Error("opened although it is live")
	}
	if st.Find(s.ID(), "alice") != got || st.Len() != 1 {
		t.Error("not in the store")
	}
}

// SameServer asks for no change where nothing is known.
func TestSameServerUnknown(t *testing.T) {
	_, s := open(t, session.Config{})
	if !s.SameServer([]byte(caps)) {
		t.Error("another server, although none is known")
	}
}

// A session that Facts know nothing of works, without what changed (another replica).
func TestReopenWithoutFacts(t *testing.T) {
	s := shake(t, session.NewStore(sealing(t, nil)), "alice")
	s.SetLevel(3)
	got, _ := reopen(t, session.NewStore(sealing(t, newKept())), s.ID(), "alice")
	if got == nil || got.Level() != mcp.NoLevel || len(got.Subscriptions()) != 0 {
		t.Errorf("%+v", got)
	}
}

// What does not fit opens nothing and costs nothing (HTTP-L-21, HTTP-L-29).
func TestReopenRefuses(t *testing.T) {
	s := shake(t, session.NewStore(sealing(t, nil)), "alice")
	id := s.ID()
	flip := func(i int) string {
		b := []byte(id)
		if b[i]++; b[i] == 'z'+1 || b[i] == 'Z'+1 || b[i] == '9'+1 {
			b[i] -= 2
		}
		return string(b)
	}
	with := func(change func(*session.Config)) session.Config {
		cfg := sealing(t, nil)
		change(&cfg)
		return cfg
	}
	good := sealing(t, nil)
	for name, tc := range map[string]struct {
		cfg   session.Config
		id    string
		who   bridge.Principal
		opens bool
	}{
		"itself":            {good, id, "alice", true},
		"other principal":   {good, id, "bob", false},
		"no principal":      {good, id, "", false},
		"other endpoint":    {with(func(c *session.Config) { c.Endpoint = "mail" }), id, "alice", false},
		"no endpoint":       {with(func(c *session.Config) { c.Endpoint = "" }), id, "alice", false},
		"other key":         {with(func(c *session.Config) { c.Sealer = ring(t, 2).Box("session id") }), id, "alice", false},
		"other label":       {with(func(c *session.Config) { c.Sealer = ring(t, 1).Box("x") }), id, "alice", false},
		"no key":            {with(func(c *session.Config) { c.Sealer = nil }), id, "alice", false},
		"key is the second": {with(func(c *session.Config) { c.Sealer = ring(t, 2, 1).Box("session id") }), id, "alice", true},
		"bit flip, begin":   {good, flip(0), "alice", false},
		"bit flip, middle":  {good, flip(len(id) / 2), "alice", false},
		"bit flip, end":     {good, flip(len(id) - 1), "alice", false},
		"cut":               {good, id[:len(id)-1], "alice", false},
		"longer":            {good, id + "A", "alice", false},
		"padded":            {good, id + "=", "alice", false},
		"with a line break": {good, id[:8] + "\n" + id[8:], "alice", false},
		"ending in one":     {good, id + "\r\n", "alice", false},
		"far too long":      {good, strings.Repeat(id, 100), "alice", false},
		"empty":             {good, "", "alice", false},
		"random":            {good, "kJYHFX2q0y3nQ1mZb1fGm3yqH0pZ7o7V", "alice", false},
		"no base64":         {good, "nope!", "alice", false},
	} {
		t.Run(name, func(t *testing.T) {
			st := session.NewStore(tc.cfg)
			got, opened := reopen(t, st, tc.id, tc.who)
			if (got != nil) != tc.opens || opened != tc.opens {
				t.Errorf("session %v, open called %v", got != nil, opened)
			}
			if deleted := st.Delete(tc.id, tc.who); deleted != tc.opens {
				t.Errorf("deleted: %v", deleted)
			}
		})
	}
}

// Another principal's live session does not exist either.
func TestReopenLiveOfAnother(t *testing.T) {
	st := session.NewStore(sealing(t, nil))
	if got, opened := reopen(t, st, shake(t, st, "alice").ID(), "bob"); got != nil || opened {
		t.Error("bob got alice's session")
	}
}

// Many ask for one session at once: it is opened once, and all get it.
func TestReopenAtOnce(t *testing.T) {
	s := shake(t, session.NewStore(sealing(t, nil)), "alice")
	synctest.Test(t, func(t *testing.T) {
		st := session.NewStore(sealing(t, nil))
		var running, most, calls atomic.Int32
		slow := func(context.Context, *session.Session) *bridge.Error {
			most.Store(max(most.Load(), running.Add(1)))
			calls.Add(1)
			time.Sleep(time.Second)
			running.Add(-1)
			return nil
		}
		got := make([]*session.Session, 32)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Millisecond) // some come when it is open
				got[i], _ = st.Reopen(t.Context(), s.ID(), "alice", slow)
			})
		}
		wg.Wait()
		if calls.Load() != 1 || most.Load() != 1 {
			t.Errorf("opened %d times, %d at once", calls.Load(), most.Load())
		}
		for _, g := range got {
			if g == nil || g != got[0] {
				t.Fatal("not all got the same session")
			}
		}
	})
}

// A caller that leaves gets its error and spoils nothing for the others, be it the first.
func TestReopenCallerLeaves(t *testing.T) {
	s := shake(t, session.NewStore(sealing(t, nil)), "alice")
	synctest.Test(t, func(t *testing.T) {
		st := session.NewStore(sealing(t, nil))
		ctx, leave := context.WithCancel(t.Context())
		open := make(chan struct{})
		slow := func(ctx context.Context, _ *session.Session) *bridge.Error {
			select {
			case <-open:
				return nil
			case <-ctx.Done():
				return bridge.Unavailable("spoilt")
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if got, err := st.Reopen(ctx, s.ID(), "alice", slow); got != nil || err == nil || err.Status != 503 || !errors.Is(err, context.Canceled) {
				t.Errorf("the one that left: %v, %v", got, err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if got, err := st.Reopen(t.Context(), s.ID(), "alice", slow); got == nil || err != nil {
				t.Errorf("the one that stayed: %v, %v", got, err)
			}
		})
		synctest.Wait()
		leave()
		synctest.Wait()
		close(open)
		wg.Wait()
		if st.Len() != 1 {
			t.Error("not in the store")
		}
	})
}

// A session whose opening fails is not in the store, is not reported as ended, and is tried again.
func TestReopenFails(t *testing.T) {
	var e ended
	s := shake(t, session.NewStore(sealing(t, nil)), "alice")
	cfg := sealing(t, nil)
	cfg.Ended, cfg.Sessions = e.add, session.NewCap(1)
	st := session.NewStore(cfg)
	for range 3 { // a place is given back
		got, err := st.Reopen(t.Context(), s.ID(), "alice", func(context.Context, *session.Session) *bridge.Error {
			return bridge.Unavailable("no")
		})
		if got != nil || err == nil || err.Message != "no" || st.Len() != 0 || len(e.n) != 0 {
			t.Fatalf("%v, %v, %d sessions, %d ended", got, err, st.Len(), len(e.n))
		}
	}
	if got, opened := reopen(t, st, s.ID(), "alice"); got == nil || !opened {
		t.Error("not tried again")
	}
}

// Close is no deletion: it ends openings under way, reports those that succeed all the same, and leaves no tombstone.
func TestCloseDuringReopen(t *testing.T) {
	k := newKept()
	first := session.NewStore(sealing(t, k))
	one, two := shake(t, first, "alice").ID(), shake(t, first, "alice").ID()
	first.Close()
	synctest.Test(t, func(t *testing.T) {
		var e ended
		cfg := sealing(t, k)
		cfg.Ended = e.add
		st := session.NewStore(cfg)
		var wg sync.WaitGroup
		for id, failure := range map[string]*bridge.Error{one: nil, two: bridge.Unavailable("gave up")} {
			wg.Go(func() {
				got, err := st.Reopen(t.Context(), id, "alice", func(ctx context.Context, _ *session.Session) *bridge.Error {
					<-ctx.Done()
					return failure
				})
				if got != nil || err == nil || failure == nil && err.Reason != bridge.ReasonStopping || failure != nil && err != failure {
					t.Errorf("%v, %v", got, err)
				}
			})
		}
		synctest.Wait()
		st.Close()
		wg.Wait()
		if st.Len() != 0 || len(e.n) != 1 {
			t.Errorf("%d sessions are left, %d were reported", st.Len(), len(e.n))
		}
		if _, err := st.Reopen(t.Context(), one, "alice", (&opener{}).open); err == nil || err.Reason != bridge.ReasonStopping {
			t.Errorf("after Close: %v", err)
		}
	})
	if k.tombstones() != 0 {
		t.Error("Close left tombstones")
	}
}

// The cap counts sessions that are being opened; n are, one more is refused with 429 (case 54).
func TestReopenLimit(t *testing.T) {
	first := session.NewStore(sealing(t, nil))
	one, two := shake(t, first, "alice"), shake(t, first, "alice")
	cfg := sealing(t, nil)
	cfg.Sessions = session.NewCap(2)
	st := session.NewStore(cfg)
	add(t, st, "alice")
	_, err := st.Reopen(t.Context(), one.ID(), "alice", func(context.Context, *session.Session) *bridge.Error {
		if err := st.Reserve(); err == nil || err.Status != 429 {
			t.Errorf("Reserve while the last place is being taken: %v", err)
		}
		got, err := st.Reopen(t.Context(), two.ID(), "alice", (&opener{}).open)
		if got != nil || err == nil || err.Status != 429 || err.Reason != bridge.ReasonSessionLimit {
			t.Errorf("n+1: %v, %v", got, err)
		}
		return nil
	})
	if err != nil || st.Len() != 2 {
		t.Errorf("n: %v, %d sessions", err, st.Len())
	}
}
