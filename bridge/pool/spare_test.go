package pool_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/pool"
)

// A spare hides the time a server takes to start, whoever gets it, and the next one is started at once.
func TestSpareHidesTheStart(t *testing.T) {
	for name, link := range map[string]func(*testing.T, *pool.Pool) *bridge.Link{
		"session": exclusive,
		"shared":  func(t *testing.T, p *pool.Pool) *bridge.Link { return shared(t, p, modern("a")) },
		"request": func(_ *testing.T, p *pool.Pool) *bridge.Link {
			l, _ := p.Single(modern("a"), nil)
			return l
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shop{start: 20 * time.Second}
				p := newPool(t, s, pool.Config{Spare: 1})
				defer running(t, p)()
				time.Sleep(15 * time.Second)
				l := link(t, p)
				if got := <-opening(t, l); got.err != nil || got.took != 5*time.Second {
					t.Errorf("with a spare that has 5 s to go: %+v", got)
				}
				if running, _, started := s.counts(); running != 2 || started != 2 {
					t.Errorf("%d run of %d started, want a new spare", running, started)
				}
				time.Sleep(15 * time.Second)
				if got := <-opening(t, exclusive(t, p)); got.err != nil || got.took != 0 {
					t.Errorf("with the next spare: %+v", got)
				}
				if _, ok := entry(t, p, l).Back.(*server); !ok {
					t.Errorf("the link has a back of type %T", entry(t, p, l).Back)
				}
				closePool(t, p)
				if running, _, _ := s.counts(); running != 0 {
					t.Errorf("%d run after Close", running)
				}
			})
		})
	}
}

// As many are kept as configured, and a link that is never opened takes none.
func TestSpareCount(t *testing.T) {
	for _, n := range []int{0, 1, 3} {
		synctest.Test(t, func(t *testing.T) {
			s := &shop{}
			p := newPool(t, s, pool.Config{Spare: n})
			defer running(t, p)()
			exclusive(t, p)
			time.Sleep(time.Minute)
			if running, _, _ := s.counts(); running != n || kinds(p)[pool.KindSpare] != n {
				t.Errorf("%d spares, want %d", running, n)
			}
		})
	}
}

// The last free seat, of the server or of the bridge, is never taken for a spare.
func TestSpareLeavesASeat(t *testing.T) {
	both(t, 3, func(t *testing.T, cfg pool.Config, _ string) {
		cfg.Spare = 9
		s := &shop{}
		p := newPool(t, s, cfg)
		defer running(t, p)()
		spares := func(want int) {
			t.Helper()
			synctest.Wait()
			if n := kinds(p)[pool.KindSpare]; n != want {
				t.Errorf("%d spares, want %d", n, want)
			}
		}
		spares(2)
		l := opened(t, p, 1)[0] // takes one; then two are used, and one is free
		spares(1)
		opened(t, p, 1)
		spares(0)
		p.Release(l)
		spares(1)
	})
	both(t, 1, func(t *testing.T, cfg pool.Config, _ string) {
		cfg.Spare = 1
		s := &shop{}
		p := newPool(t, s, cfg)
		defer running(t, p)()
		time.Sleep(time.Minute)
		if _, _, started := s.counts(); started != 0 {
			t.Error("a spare has the only seat")
		}
	})
}

// A spare makes room at once for an opening that needs its seat: of a link that has a back of its own, of another server.
func TestSpareYields(t *testing.T) {
	t.Run("same server", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &shop{stop: time.Second}
			p := newPool(t, s, pool.Config{Max: 3, Spare: 1})
			defer running(t, p)()
			links := opened(t, p, 3)
			busy(t, links...)
			_ = links[0].Halt(t.Context())
			_ = links[1].Halt(t.Context())
			synctest.Wait()
			if kinds(p)[pool.KindSpare] != 1 {
				t.Fatal("no spare")
			}
			busy(t, links[0])
			if got := <-opening(t, links[1]); got.err != nil || got.took != time.Second {
				t.Errorf("%+v, want it after the end of the spare", got)
			}
			if _, most, _ := s.counts(); most > 3 || kinds(p)[pool.KindSpare] != 0 {
				t.Errorf("%d at a time, %d spares", most, kinds(p)[pool.KindSpare])
			}
		})
	})
	t.Run("another server", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			all := &shop{}
			budget := pool.NewBudget(3)
			one := newPool(t, &shop{stop: time.Second, above: all}, pool.Config{Spare: 1, Budget: budget})
			two := newPool(t, &shop{stop: time.Second, above: all}, pool.Config{Budget: budget})
			defer running(t, one)()
			defer closePool(t, two)
			synctest.Wait()
			links := opened(t, two, 2)
			if kinds(one)[pool.KindSpare] != 1 {
				t.Fatal("no spare")
			}
			time.Sleep(time.Hour)
			if got := <-opening(t, exclusive(t, two)); got.err != nil || got.took != time.Second {
				t.Errorf("%+v, want it after the end of the spare", got)
			}
			if links[0].Live() == nil || links[1].Live() == nil {
				t.Error("a link was rested where a spare could go")
			}
			if running, most, _ := all.counts(); running != 3 || most != 3 || kinds(one)[pool.KindSpare] != 0 {
				t.Errorf("%d run, %d at a time", running, most)
			}
		})
	})
}

// A spare that fails by itself is tried again with the next link, or after 30 seconds.
func TestSpareFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{warmErr: errors.New("no such command")}
		made := 0
		p := newPool(t, s, pool.Config{Spare: 2, Back: func() bridge.Back {
			s.set(func() { made++ })
			return s.back()
		}})
		defer running(t, p)()
		tries := func(want int) {
			t.Helper()
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			if made != want {
				t.Errorf("%d tries, want %d", made, want)
			}
		}
		synctest.Wait()
		s.mu.Lock()
		begun := made // both, or one: the failure of the first may come before the second
		s.mu.Unlock()
		if begun == 0 || begun > 2 {
			t.Fatalf("%d tries", begun)
		}
		time.Sleep(30*time.Second - 1)
		tries(begun)
		s.set(func() { s.warmErr = nil })
		time.Sleep(time.Nanosecond)
		tries(begun + 2)
		if n := kinds(p)[pool.KindSpare]; n != 2 {
			t.Errorf("%d spares of a server that has been mended", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &shop{warmErr: errors.New("no such command")}
		p := newPool(t, s, pool.Config{Spare: 1})
		defer running(t, p)()
		time.Sleep(time.Second)
		s.set(func() { s.warmErr = nil })
		time.Sleep(time.Second)
		if n := kinds(p)[pool.KindSpare]; n != 0 {
			t.Errorf("tried again without a reason: %d spares", n)
		}
		exclusive(t, p)
		synctest.Wait()
		if n := kinds(p)[pool.KindSpare]; n != 1 {
			t.Errorf("%d spares after the next link", n)
		}
	})
}

// A server whose backs cannot be started ahead of use has no spares.
func TestNoSpares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		p := newPool(t, s, pool.Config{Max: 3, Spare: 2, Back: s.cold})
		defer running(t, p)()
		time.Sleep(time.Minute)
		if _, _, started := s.counts(); started != 0 || len(p.Entries()) != 0 {
			t.Errorf("%d started", started)
		}
		busy(t, opened(t, p, 3)...) // all seats are there
	})
}

// Eight callers at once, one spare: nobody shares a process, nobody is lost.
func TestSpareIsTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{start: 20 * time.Second}
		p := newPool(t, s, pool.Config{Spare: 2, Max: 9})
		defer running(t, p)()
		time.Sleep(20 * time.Second)
		var all []<-chan outcome
		links := make([]*bridge.Link, 8)
		for i := range links {
			links[i] = exclusive(t, p)
			all = append(all, opening(t, links[i]))
		}
		fast := 0
		for _, w := range all {
			got := <-w
			if got.err != nil {
				t.Errorf("%+v", got)
			}
			if got.took == 0 {
				fast++
			}
		}
		if fast != 2 {
			t.Errorf("%d were served at once, want 2", fast)
		}
		procs := map[*process]bool{}
		for _, l := range links {
			procs[proc(t, p, l)] = true
		}
		if len(procs) != 8 {
			t.Errorf("8 links have %d processes", len(procs))
		}
	})
}
