package session_test

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/session"
	"mcpbridge/bridge/session/facts"
)

// A change of level or subscriptions is saved within a second, and not more often than every second.
func TestSaveRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		cfg := sealing(t, k)
		cfg.Idle = 30 * time.Second // all sessions are looked at every 1.5 seconds
		st, stop := running(t, cfg)
		defer stop()
		s := shake(t, st, "alice")
		other := shake(t, st, "alice")
		time.Sleep(10 * time.Second)
		k.taken()
		for i := range 100 { // for ten seconds
			s.SetLevel(mcp.Level(i % 8))
			s.NoteSubscription(fmt.Appendf(nil, `"%d"`, i), true)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		got := k.taken()
		if len(got) < 10 || len(got) > 12 {
			t.Errorf("saved %d times in eleven seconds", len(got))
		}
		for i := range got[1:] {
			if d := got[i+1].at.Sub(got[i].at); d < time.Second {
				t.Errorf("saved again after %v", d)
			}
		}
		last := got[len(got)-1].fact
		if last.Level != 99%8 || len(last.Subscriptions) != 100 || !last.Running {
			t.Errorf("last saved: level %v, %d subscriptions, %+v", last.Level, len(last.Subscriptions), last)
		}
		at := time.Now()
		other.SetLevel(1)
		time.Sleep(time.Second)
		if got = k.taken(); len(got) != 1 || got[0].at.Sub(at) > time.Second || got[0].fact.Level != 1 {
			t.Errorf("another session's change: %+v", got)
		}
	})
}

// What is no change is not saved.
func TestSaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		st, stop := running(t, sealing(t, k))
		defer stop()
		s := shake(t, st, "alice")
		s.SetLevel(3)
		time.Sleep(5 * time.Second)
		if got := k.taken(); len(got) != 1 {
			t.Fatalf("saved %d times", len(got))
		}
		s.SetLevel(3)
		s.NoteSubscription([]byte(`"a"`), false)
		add(t, st, "alice").SetLevel(3) // of a random id
		time.Sleep(5 * time.Second)
		if got := k.taken(); len(got) != 0 {
			t.Errorf("saved %d times, %+v", len(got), got)
		}
	})
}

// Mere use is saved at most once a minute, and not later than two minutes after it, however often sessions are looked at.
func TestSaveUse(t *testing.T) {
	for _, idle := range []time.Duration{-1, 100 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			k := newKept()
			cfg := sealing(t, k)
			cfg.Idle = idle
			st, stop := running(t, cfg)
			defer stop()
			time.Sleep(300 * time.Millisecond)
			s, listens := shake(t, st, "alice"), shake(t, st, "alice")
			listens.Stand()
			for range 600 {
				s.Enter()
				s.Leave()
				time.Sleep(time.Second)
			}
			all := k.taken()
			for name, who := range map[string]*session.Session{"used": s, "listening": listens} {
				got := slices.DeleteFunc(slices.Clone(all), func(v saved) bool { return !v.of(who) })
				if len(got) < 5 || len(got) > 10 {
					t.Fatalf("%s: saved %d times in ten minutes", name, len(got))
				}
				for i := range got[1:] {
					if d := got[i+1].at.Sub(got[i].at); d < time.Minute || d > 2*time.Minute {
						t.Errorf("%s: saved again after %v", name, d)
					}
				}
			}
		})
	}
}

// A session that lies still is not saved again and again.
func TestSaveStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		cfg := sealing(t, k)
		cfg.Idle = -1
		st, stop := running(t, cfg)
		defer stop()
		s := shake(t, st, "alice")
		s.Enter()
		s.Leave()
		time.Sleep(3 * time.Minute)
		if got := k.taken(); len(got) != 1 {
			t.Fatalf("saved %d times", len(got))
		}
		time.Sleep(time.Hour)
		if got := k.taken(); len(got) != 0 {
			t.Errorf("saved %d times", len(got))
		}
	})
}

// of reports whether something was saved of that session: its name in logs is the begin of what it is saved under.
func (v saved) of(s *session.Session) bool { return hex.EncodeToString(v.uid[:4]) == s.Short() }

// Close saves what is not saved yet, once; Flush too, and leaves the sessions open.
func TestFlushAndClose(t *testing.T) {
	k := newKept()
	st := session.NewStore(sealing(t, k))
	s, still := shake(t, st, "alice"), shake(t, st, "alice")
	add(t, st, "alice") // a random id
	check := func(what string, level mcp.Level, running bool) {
		t.Helper()
		got := k.taken()
		for _, v := range got {
			if v.fact.Running != running || v.of(s) && v.fact.Level != level || v.of(still) && v.fact.Level != mcp.NoLevel {
				t.Errorf("%s: %+v", what, v.fact)
			}
		}
		if len(got) != 2 {
			t.Errorf("%s: %d facts were saved, want 2", what, len(got))
		}
	}
	s.SetLevel(3)
	for range 2 {
		st.Flush()
	}
	check("Flush", 3, true)
	if st.Len() != 3 {
		t.Errorf("%d sessions are open", st.Len())
	}
	s.SetLevel(4)
	for range 2 {
		st.Close()
	}
	check("Close", 4, false)
}

// The subscriptions that are remembered are bounded: n and n+1 of number and of bytes.
func TestSubscriptions(t *testing.T) {
	for name, tc := range map[string]struct {
		limits session.Limits
		uris   []string
		want   int
	}{
		"n":                {session.Limits{Subscriptions: 2}, []string{`"a"`, `"b"`}, 2},
		"n+1":              {session.Limits{Subscriptions: 2}, []string{`"a"`, `"b"`, `"c"`}, 2},
		"twice":            {session.Limits{Subscriptions: 2}, []string{`"a"`, `"a"`, `"b"`}, 2},
		"n bytes":          {session.Limits{SubscriptionBytes: 6}, []string{`"a"`, `"b"`}, 2},
		"n+1 bytes":        {session.Limits{SubscriptionBytes: 5}, []string{`"a"`, `"b"`}, 1},
		"one of n+1 bytes": {session.Limits{SubscriptionBytes: 4}, []string{`"abc"`, `"a"`}, 1},
		"default":          {session.Limits{}, nil, 1000},
		"default bytes":    {session.Limits{}, []string{`"` + strings.Repeat("x", 64<<10-2) + `"`, `"a"`}, 1},
	} {
		st := session.NewStore(session.Config{Session: tc.limits})
		s := add(t, st, "alice")
		if tc.uris == nil {
			for i := range 1001 {
				tc.uris = append(tc.uris, fmt.Sprintf(`"%d"`, i))
			}
		}
		for _, uri := range tc.uris {
			s.NoteSubscription([]byte(uri), true)
		}
		if got := s.Subscriptions(); len(got) != tc.want {
			t.Errorf("%s: %d are remembered, want %d", name, len(got), tc.want)
		}
		s.NoteSubscription([]byte(s.Subscriptions()[0]), false)
		s.NoteSubscription([]byte(`"x"`), true)
		if got := s.Subscriptions(); len(got) != tc.want || got[tc.want-1] != `"x"` {
			t.Errorf("%s: one that was released makes no room: %q", name, got)
		}
	}
	_, s := open(t, session.Config{})
	list := append(s.Subscriptions(), "x")
	s.NoteSubscription([]byte(`"a"`), true)
	if got := s.Subscriptions(); !slices.Equal(got, []string{`"a"`}) || list[0] != "x" {
		t.Errorf("%q", got)
	}
}

// Listening tells whether a client reads a stream of the session's own; that of a POST does not count.
func TestListening(t *testing.T) {
	_, s := open(t, session.Config{})
	check := func(when string, want bool) {
		t.Helper()
		if s.Listening() != want {
			t.Errorf("%s: %v", when, !want)
		}
	}
	check("at first", false)
	fill(s)
	check("with the stream of a POST", false)
	one, two := s.Stand(), s.Stand()
	check("with two streams", true)
	s.Sit(two)
	check("with one", true)
	s.Sit(one)
	check("with none", false)
	back, _, ok := s.Resume(eventID(one.ID, 0))
	check("resumed but not in service", false)
	if ok {
		s.Reopen(back)
	}
	check("resumed", true)
	s.Sit(back)
	check("after that", false)
}

// The whole way with a real file: level and subscriptions, tombstones and last use are there after a restart.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	cfg := sealing(t, nil)
	run := func(use func(st *session.Store)) {
		t.Helper()
		db, warning, err := facts.Open(path)
		if err != nil || warning != nil {
			t.Fatal(err, warning)
		}
		cfg.Facts = db
		st := session.NewStore(cfg)
		use(st)
		st.Close()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var stays, gone string
	run(func(st *session.Store) {
		a, b := shake(t, st, "alice"), shake(t, st, "alice")
		stays, gone = a.ID(), b.ID()
		a.SetLevel(6)
		a.NoteSubscription([]byte(`"a"`), true)
		st.Delete(gone, "alice")
	})
	for range 2 {
		run(func(st *session.Store) {
			if got, _ := reopen(t, st, stays, "alice"); got == nil || got.Level() != 6 || !slices.Equal(got.Subscriptions(), []string{`"a"`}) {
				t.Errorf("%+v", got)
			}
			if got, opened := reopen(t, st, gone, "alice"); got != nil || opened {
				t.Error("a deleted session is back")
			}
		})
	}
	cfg.Idle = 1 // nanosecond
	run(func(st *session.Store) {
		if got, _ := reopen(t, st, stays, "alice"); got != nil {
			t.Error("the last use is lost")
		}
	})
}
