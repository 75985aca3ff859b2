package session_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/session"
)

// A session ends when it has lain still for longer than Idle, and stays ended; n and n+1 nanoseconds. It makes no difference whether
// it is live, or was put away by Close or at the cap (HTTP-L-33).
func TestIdle(t *testing.T) {
	const idle = 10 * time.Minute
	for name, away := range map[string]bool{"live": false, "away": true} {
		for over, want := range map[time.Duration]bool{0: true, 1: false} {
			synctest.Test(t, func(t *testing.T) {
				k := newKept()
				cfg := sealing(t, k)
				cfg.Idle = idle
				st := session.NewStore(cfg)
				s := shake(t, st, "alice")
				time.Sleep(time.Minute)
				s.Enter()
				s.Leave() // the last use
				if away {
					st.Close()
					st = session.NewStore(cfg)
				}
				time.Sleep(idle + over)
				if away {
					got, opened := reopen(t, st, s.ID(), "alice")
					if (got != nil) != want || opened != want {
						t.Errorf("%s, %d ns over: session %v, opened %v", name, over, got != nil, opened)
					}
				} else if got := st.Find(s.ID(), "alice"); (got != nil) != want {
					t.Errorf("%s, %d ns over: session %v", name, over, got != nil)
				}
				if !want {
					if got, opened := reopen(t, session.NewStore(cfg), s.ID(), "alice"); got != nil || opened {
						t.Errorf("%s: it came back after a restart", name)
					}
				}
			})
		}
	}
}

// A session of a bridge that was killed is given the benefit of what could not be saved any more.
func TestIdleAfterKill(t *testing.T) {
	for over, want := range map[time.Duration]bool{0: true, 1: false} {
		synctest.Test(t, func(t *testing.T) {
			k := newKept()
			cfg := sealing(t, k)
			cfg.Idle = 10 * time.Minute
			st := session.NewStore(cfg)
			s := shake(t, st, "alice")
			s.SetLevel(1)
			st.Flush() // and then it is killed
			time.Sleep(12*time.Minute + over)
			if got, _ := reopen(t, session.NewStore(cfg), s.ID(), "alice"); (got != nil) != want {
				t.Errorf("%d ns over: session %v", over, got != nil)
			}
		})
	}
}

// A session that was opened again is in use from then on: another restart soon after does not end it.
func TestIdleAfterReopen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		cfg := sealing(t, k)
		cfg.Idle = 10 * time.Minute
		first := session.NewStore(cfg)
		s := shake(t, first, "alice")
		first.Close()
		time.Sleep(9 * time.Minute)
		second, stop := running(t, cfg)
		reopen(t, second, s.ID(), "alice")
		time.Sleep(time.Second)
		stop() // killed
		time.Sleep(9 * time.Minute)
		if got, _ := reopen(t, session.NewStore(cfg), s.ID(), "alice"); got == nil {
			t.Error("ended although it was used nine minutes ago")
		}
	})
}

// running runs a store.
func running(t *testing.T, cfg session.Config) (st *session.Store, stop func()) {
	st = session.NewStore(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { st.Run(ctx) })
	return st, func() { cancel(); wg.Wait() }
}

// No session lives longer than Life, used or not; n and n+1 nanoseconds, live and away.
func TestLife(t *testing.T) {
	for _, life := range []time.Duration{time.Hour, 0} {
		n := life
		if n == 0 {
			n = 7 * 24 * time.Hour
		}
		for over, want := range map[time.Duration]bool{0: true, 1: false} {
			synctest.Test(t, func(t *testing.T) {
				k := newKept()
				cfg := sealing(t, k)
				cfg.Idle, cfg.Life = -1, life
				st := session.NewStore(cfg)
				s := shake(t, st, "alice")
				random := session.NewStore(session.Config{Idle: -1, Life: life})
				r := add(t, random, "alice")
				time.Sleep(n + over)
				if got, opened := reopen(t, session.NewStore(cfg), s.ID(), "alice"); (got != nil) != want || opened != want {
					t.Errorf("away, %d ns over: session %v, opened %v", over, got != nil, opened)
				}
				for _, got := range []*session.Session{st.Find(s.ID(), "alice"), random.Find(r.ID(), "alice")} {
					if (got != nil) != want {
						t.Errorf("live, %d ns over: session %v", over, got != nil)
					}
				}
				if got := session.NewStore(cfg).Delete(s.ID(), "alice"); got != want {
					t.Errorf("%d ns over: deleted %v", over, got)
				}
			})
		}
	}
}

// A negative life is for ever, and so are its tombstones.
func TestLifeForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		cfg := sealing(t, k)
		cfg.Idle, cfg.Life = -1, -1
		st := session.NewStore(cfg)
		s, gone := shake(t, st, "alice"), shake(t, st, "alice")
		st.Delete(gone.ID(), "alice")
		st.Close()
		time.Sleep(50 * 365 * 24 * time.Hour)
		st = session.NewStore(cfg)
		if got, _ := reopen(t, st, s.ID(), "alice"); got == nil {
			t.Error("ended")
		}
		if got, _ := reopen(t, st, gone.ID(), "alice"); got != nil {
			t.Error("a deleted one came back")
		}
		for _, f := range k.facts {
			if !f.End.IsZero() {
				t.Errorf("a fact ends at %v", f.End)
			}
		}
	})
}

// Tombstones and facts end with the life of their session.
func TestFactsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept()
		cfg := sealing(t, k)
		cfg.Life = time.Hour
		st := session.NewStore(cfg)
		end := time.Now().Add(time.Hour)
		gone := shake(t, st, "alice")
		shake(t, st, "alice")
		time.Sleep(time.Minute)
		st.Delete(gone.ID(), "alice")
		st.Close()
		if len(k.facts) != 2 {
			t.Fatalf("%d facts", len(k.facts))
		}
		for _, f := range k.facts {
			if !f.End.Equal(end) {
				t.Errorf("%+v ends at another time than %v", f, end)
			}
		}
	})
}

// When its life is over a session ends at its next quiet moment: no request is cut off. One that only listens is quiet (HTTP-L-31).
func TestLifeEndsInAQuietMoment(t *testing.T) {
	for name, use := range map[string]func(s *session.Session) (end func()){
		"nothing":           func(*session.Session) func() { return nil },
		"a client listens":  func(s *session.Session) func() { s.Enter(); s.Stand(); return nil },
		"request under way": func(s *session.Session) func() { s.Enter(); return s.Leave },
		"request beside a listening client": func(s *session.Session) func() {
			s.Enter()
			s.Stand()
			s.Enter()
			return s.Leave
		},
		"answer that streams": func(s *session.Session) func() {
			s.Enter()
			st := bridge.NewStream(1, s.PostLimits())
			s.Keep(st)
			return func() { st.Finish(bridge.Answer{Frame: text(`{}`)}) }
		},
		"answer whose client is away": func(s *session.Session) func() {
			st := bridge.NewStream(1, s.PostLimits())
			s.Keep(st)
			s.Detach(st)
			return func() { st.Finish(bridge.Answer{Frame: text(`{}`)}) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := sealing(t, newKept())
				cfg.Idle, cfg.Life = time.Hour, 10*time.Minute
				st, stop := running(t, cfg)
				defer stop()
				s := shake(t, st, "alice")
				end := use(s)
				time.Sleep(20 * time.Minute)
				if alive := st.Len() == 1; alive != (end != nil) {
					t.Fatalf("alive beyond its life: %v", alive)
				}
				if end != nil {
					if st.Find(s.ID(), "alice") != s {
						t.Fatal("not found while it is needed")
					}
					end()
					time.Sleep(2 * time.Minute)
					if st.Len() != 0 {
						t.Error("it goes on after its quiet moment")
					}
				}
			})
		})
	}
}

// Run ends what has expired for good: the store's size goes down, and each session is buried.
func TestExpiredAreBuried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e ended
		k := newKept()
		cfg := sealing(t, k)
		cfg.Idle, cfg.Ended = time.Minute, e.add
		st, stop := running(t, cfg)
		defer stop()
		const n = 100
		for range n {
			shake(t, st, "alice")
		}
		add(t, st, "alice") // a random id leaves no tombstone
		time.Sleep(2 * time.Minute)
		if st.Len() != 0 || k.tombstones() != n || len(e.n) != n+1 {
			t.Errorf("%d sessions, %d tombstones, %d reported", st.Len(), k.tombstones(), len(e.n))
		}
	})
}

// At the cap the sealed session that has been idle longest makes room, if it has been for long enough; it comes back with its next
// request, as it was.
func TestShelve(t *testing.T) {
	for name, tc := range map[string]struct{ set, min time.Duration }{"set": {5 * time.Second, 5 * time.Second}, "default": {0, time.Minute}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e ended
				k := newKept()
				cfg := sealing(t, k)
				cfg.Sessions, cfg.Shelve, cfg.Ended = session.NewCap(2), tc.set, e.add
				st := session.NewStore(cfg)
				old := shake(t, st, "alice")
				old.SetLevel(5)
				old.NoteSubscription([]byte(`"a"`), true)
				time.Sleep(time.Second)
				young := shake(t, st, "alice")
				time.Sleep(tc.min - time.Second - 1)
				if err := st.Reserve(); err == nil || err.Status != 429 {
					t.Fatalf("Reserve 1 ns too early: %v", err)
				}
				if err := st.Add(st.New("bob", nil, true), session.Hello{}); err == nil || err.Status != 429 {
					t.Fatalf("Add 1 ns too early: %v", err)
				}
				time.Sleep(time.Nanosecond)
				if err := st.Reserve(); err != nil || st.Len() != 2 {
					t.Fatalf("Reserve: %v, %d sessions", err, st.Len())
				}
				shake(t, st, "bob")
				if st.Len() != 2 || st.Find(old.ID(), "alice") != nil || st.Find(young.ID(), "alice") != young || e.of(old) != 1 || k.tombstones() != 0 {
					t.Fatalf("%d sessions, %d tombstones, ended %d times", st.Len(), k.tombstones(), e.of(old))
				}
				time.Sleep(tc.min)
				got, opened := reopen(t, st, old.ID(), "alice")
				if got == nil || !opened || got.Level() != 5 || len(got.Subscriptions()) != 1 {
					t.Errorf("it does not come back as it was: %+v", got)
				}
				if st.Len() != 2 {
					t.Errorf("%d sessions", st.Len())
				}
			})
		})
	}
}

// Of several the one goes that has been idle longest and is not in use.
func TestShelveOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := sealing(t, newKept())
		cfg.Sessions = session.NewCap(4)
		st := session.NewStore(cfg)
		var list []*session.Session
		for range 4 {
			list = append(list, shake(t, st, "alice"))
			time.Sleep(time.Second)
		}
		list[0].Stand()
		list[1].Enter()
		list[1].Leave() // used last of all
		time.Sleep(time.Hour / 4)
		for _, want := range []*session.Session{list[2], list[3], list[1]} {
			shake(t, st, "bob")
			if st.Find(want.ID(), "alice") != nil || st.Len() != 4 {
				t.Fatal("another was shelved")
			}
		}
	})
}

// What is in use, has a random id or must not be shelved is not.
func TestShelveSpares(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*session.Config)
		use    func(*session.Session)
	}{
		"a client listens":  {use: func(s *session.Session) { s.Stand() }},
		"request under way": {use: func(s *session.Session) { s.Enter() }},
		"random ids":        {change: func(c *session.Config) { c.Sealer = nil }},
		"never":             {change: func(c *session.Config) { c.Shelve = -1 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := sealing(t, newKept())
				cfg.Sessions, cfg.Idle = session.NewCap(1), -1
				if tc.change != nil {
					tc.change(&cfg)
				}
				st := session.NewStore(cfg)
				s := shake(t, st, "alice")
				if tc.use != nil {
					tc.use(s)
				}
				time.Sleep(time.Hour)
				if err := st.Reserve(); err == nil || err.Status != 429 {
					t.Errorf("Reserve: %v", err)
				}
				if err := st.Add(st.New("bob", nil, true), session.Hello{}); err == nil || err.Status != 429 {
					t.Errorf("Add: %v", err)
				}
				if st.Find(s.ID(), "alice") != s {
					t.Error("it was shelved")
				}
			})
		})
	}
}

// Without Facts a shelved session is remembered by the store.
func TestShelveWithoutFacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := sealing(t, nil)
		cfg.Sessions = session.NewCap(1)
		st := session.NewStore(cfg)
		s := shake(t, st, "alice")
		s.SetLevel(2)
		time.Sleep(time.Minute)
		shake(t, st, "bob")
		time.Sleep(time.Minute)
		if got, _ := reopen(t, st, s.ID(), "alice"); got == nil || got.Level() != 2 {
			t.Errorf("%+v", got)
		}
	})
}
