package pool_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/pool"
)

// Sessions that clients have left without a word make room for a modern caller when they have been unused for Config.Yield,
// and one nanosecond before that they do not. Their sessions live on: the next message starts the server anew.
func TestAbandonedSessionsYield(t *testing.T) {
	for name, tt := range map[string]struct {
		unused time.Duration // before the caller comes
		wait   time.Duration
		took   time.Duration // less than 0: refused
	}{
		"by default":               {30 * time.Second, 0, 0},
		"while the caller waits":   {25 * time.Second, 0, 5 * time.Second},
		"at the end of the wait":   {25 * time.Second, 5*time.Second + 1, 5 * time.Second},
		"a moment too late":        {25*time.Second - 1, 5 * time.Second, -1},
		"when it never was unused": {0, 29 * time.Second, -1},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, 2, func(t *testing.T, cfg pool.Config, _ string) {
				cfg.Wait = tt.wait
				s := &shop{}
				p := newPool(t, s, cfg)
				defer closePool(t, p)
				links := opened(t, p, 2)
				for _, l := range links {
					l.Attach(&session{})
				}
				time.Sleep(tt.unused)
				got := <-opening(t, shared(t, p, modern("a")))
				if tt.took < 0 {
					wantFull(t, got.err)
					return
				}
				if got.err != nil || got.took != tt.took {
					t.Fatalf("%+v, want it after %v", got, tt.took)
				}
				if n := p.Len(); n != 3 {
					t.Errorf("%d links, want 3: sessions live on", n)
				}
				if running, most, _ := s.counts(); running != 2 || most != 2 {
					t.Errorf("%d processes, %d at a time", running, most)
				}
				time.Sleep(time.Minute)
				for _, l := range links { // both again, the one that was rested and the one that was not
					if got := <-opening(t, l); got.err != nil || got.took != 0 {
						t.Errorf("an abandoned session that comes back: %+v", got)
					}
				}
			})
		})
	}
}

// What keeps a process: an open request, a client that listens. A session alone does not.
func TestUsedLinksDoNotYield(t *testing.T) {
	both(t, 2, func(t *testing.T, cfg pool.Config, _ string) {
		s := &shop{}
		p := newPool(t, s, cfg)
		defer closePool(t, p)
		called, listening := exclusive(t, p), exclusive(t, p)
		end := call(t, called, mcp.ToolsCall)
		open(t, listening)
		member := &session{listen: true}
		listening.Attach(member)
		time.Sleep(time.Hour)
		wantFull(t, (<-opening(t, shared(t, p, modern("a")))).err)
		if called.Live() == nil || listening.Live() == nil {
			t.Fatal("a link in use was rested")
		}
		end()
		member.set(false)
		// They were found in use when the caller came; from then on they count as unused.
		time.Sleep(20 * time.Second)
		if got := <-opening(t, shared(t, p, modern("a"))); got.err != nil {
			t.Errorf("%+v", got)
		}
	})
}

// Run notices the end of a long call within Yield/10: it counts as use until then.
func TestLongCallIsUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &shop{}, pool.Config{Max: 1})
		defer running(t, p)()
		l := exclusive(t, p)
		end := call(t, l, mcp.ToolsCall)
		time.Sleep(time.Hour)
		end()
		time.Sleep(16 * time.Second)
		wantFull(t, (<-opening(t, exclusive(t, p))).err)
		if l.Live() == nil {
			t.Error("rested 26 seconds after a call")
		}
		if got := <-opening(t, exclusive(t, p)); got.err != nil || got.took > 4*time.Second {
			t.Errorf("30 seconds after the call: %+v", got)
		}
	})
}

// The process that was not used for longest goes first, over all servers that share the limit; a server that has as many as
// it may takes none of another's.
func TestLongestUnusedYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := pool.NewBudget(4)
		one := newPool(t, &shop{}, pool.Config{Max: 3, Budget: budget})
		two := newPool(t, &shop{}, pool.Config{Max: 2, Budget: budget})
		defer closePool(t, two)
		defer closePool(t, one)
		var links []*bridge.Link
		for _, p := range []*pool.Pool{one, two, one, two} {
			links = append(links, opened(t, p, 1)...)
			time.Sleep(time.Second)
		}
		open(t, links[0]) // used again: the second is the oldest now
		time.Sleep(time.Hour)
		lives := func(want ...bool) {
			t.Helper()
			synctest.Wait()
			var got []bool
			for _, l := range links {
				got = append(got, l.Live() != nil)
			}
			if !slices.Equal(got, want) {
				t.Errorf("live: %v, want %v", got, want)
			}
		}
		lives(true, true, true, true)
		fresh := exclusive(t, one)
		open(t, fresh)
		busy(t, fresh)
		lives(true, false, true, true)
		open(t, shared(t, one, modern("a"))) // one has three now: only its own helps
		lives(true, false, false, true)
		open(t, shared(t, two, modern("a"))) // the longest unused of all is the last of two's
		lives(true, false, false, false)
		open(t, shared(t, two, modern("b"))) // it has one, just used: the other server's goes
		lives(false, false, false, false)
	})
}

// A caller that is in the way of its own server's limit holds up nobody who waits behind it for the bridge's.
func TestOwnLimitHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := pool.NewBudget(2)
		one := newPool(t, &shop{}, pool.Config{Max: 1, Budget: budget})
		two := newPool(t, &shop{}, pool.Config{Budget: budget})
		defer closePool(t, two)
		defer closePool(t, one)
		busy(t, opened(t, one, 1)...)
		old := opened(t, two, 1)[0]
		busy(t, old)
		first := opening(t, exclusive(t, one))
		synctest.Wait()
		second := opening(t, exclusive(t, two))
		time.Sleep(time.Second)
		two.Release(old)
		if got := <-second; got.err != nil || got.took != time.Second {
			t.Errorf("behind one that cannot be served: %+v", got)
		}
		wantFull(t, (<-first).err, "maxProcesses of the server: 1")
	})
}

// A server that has as many processes as it may ends one of its own, though others have spares and links unused for longer.
func TestOwnLimitTakesNothingOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := pool.NewBudget(9)
		one := newPool(t, &shop{}, pool.Config{Max: 1, Budget: budget})
		two := newPool(t, &shop{}, pool.Config{Spare: 1, Budget: budget})
		defer running(t, two)()
		defer closePool(t, one)
		theirs := opened(t, two, 1)[0]
		time.Sleep(time.Second)
		mine := opened(t, one, 1)[0]
		time.Sleep(time.Minute)
		if got := <-opening(t, exclusive(t, one)); got.err != nil || got.took != 0 {
			t.Errorf("%+v", got)
		}
		if theirs.Live() == nil || kinds(two)[pool.KindSpare] != 1 || mine.Live() != nil {
			t.Error("another server's process was ended, or its own was not")
		}
	})
}

// Who counted on a seat that another got looks for one again at once.
func TestSeatGoesToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := pool.NewBudget(2)
		one := newPool(t, &shop{stop: 3 * time.Second}, pool.Config{Max: 1, Budget: budget})
		two := newPool(t, &shop{stop: time.Second}, pool.Config{Budget: budget})
		defer closePool(t, two)
		defer closePool(t, one)
		old, unused := opened(t, one, 1)[0], opened(t, two, 1)[0]
		time.Sleep(time.Minute)
		one.Release(old)
		first := opening(t, exclusive(t, one))
		synctest.Wait()
		second := opening(t, exclusive(t, two))
		if got := <-first; got.err != nil || got.took != 3*time.Second {
			t.Errorf("the first: %+v", got)
		}
		if got := <-second; got.err != nil || got.took != 4*time.Second || unused.Live() != nil {
			t.Errorf("the second: %+v", got)
		}
	})
}

// Each of those who wait gets a seat of its own made, no more are: as many processes are ended as are needed.
func TestAsManyYieldAsAreNeeded(t *testing.T) {
	both(t, 6, func(t *testing.T, cfg pool.Config, _ string) {
		s := &shop{stop: 2 * time.Second}
		p := newPool(t, s, cfg)
		defer closePool(t, p)
		links := opened(t, p, 6)
		time.Sleep(time.Minute)
		var all []<-chan outcome
		for range 4 {
			all = append(all, opening(t, exclusive(t, p)))
		}
		for _, w := range all {
			if got := <-w; got.err != nil || got.took != 2*time.Second {
				t.Errorf("%+v: not ended at the same time", got)
			}
		}
		live := 0
		for _, l := range links {
			if l.Live() != nil {
				live++
			}
		}
		if live != 2 {
			t.Errorf("%d of 6 are left, want 2", live)
		}
	})
}

// A message for a link whose process is being ended to make room waits for another process, in its turn: it gets neither the
// old one, nor the seat that is another's.
func TestMessageWhileYielding(t *testing.T) {
	both(t, 2, func(t *testing.T, cfg pool.Config, _ string) {
		s := &shop{stop: 3 * time.Second}
		p := newPool(t, s, cfg)
		defer closePool(t, p)
		links := opened(t, p, 2)
		time.Sleep(time.Minute)
		busy(t, links[1])
		newcomer := exclusive(t, p)
		w := opening(t, newcomer)
		time.Sleep(time.Second)
		again := opening(t, links[0])
		if got := <-w; got.err != nil || got.took != 3*time.Second {
			t.Errorf("the newcomer: %+v", got)
		}
		busy(t, newcomer)
		wantFull(t, (<-again).err)
		if _, most, _ := s.counts(); most != 2 {
			t.Errorf("%d at a time", most)
		}
	})
}

// A link that was just handed out is not unused, nor is one whose server has just become ready.
func TestHandedOutIsUse(t *testing.T) {
	both(t, 1, func(t *testing.T, cfg pool.Config, _ string) {
		s := &shop{start: 40 * time.Second}
		p := newPool(t, s, cfg)
		defer closePool(t, p)
		l := shared(t, p, modern("a"))
		open(t, l)
		wantFull(t, (<-opening(t, exclusive(t, p))).err)
		time.Sleep(15 * time.Second)
		shared(t, p, modern("a"))
		wantFull(t, (<-opening(t, exclusive(t, p))).err)
		if l.Live() == nil {
			t.Error("rested between being handed out and being used")
		}
	})
}

// A back that cannot say when it is gone gives its seat back with its connection.
func TestBackWithoutGone(t *testing.T) {
	both(t, 1, func(t *testing.T, cfg pool.Config, _ string) {
		s := &shop{stop: 2 * time.Second}
		cfg.Back, cfg.Spare = s.cold, 1
		p := newPool(t, s, cfg)
		defer running(t, p)()
		links := opened(t, p, 1)
		time.Sleep(time.Minute)
		other := exclusive(t, p)
		if got := <-opening(t, other); got.err != nil || got.took != 2*time.Second {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Minute)
		s.set(func() { s.refuses = errors.New("exit status 1") })
		for range 2 {
			if got := <-opening(t, links[0]); got.err == nil || got.err.Reason != bridge.ReasonBackUnavailable {
				t.Errorf("%+v", got)
			}
		}
		if running, most, _ := s.counts(); running != 0 || most != 1 {
			t.Errorf("%d run, %d at a time", running, most)
		}
	})
}

// A server that ends slowly, or whose link is used again in the last moment, is no reason to give up: the next one is
// asked.
func TestYieldFailsAndIsTriedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		p := newPool(t, s, pool.Config{Max: 3, Wait: time.Minute})
		defer closePool(t, p)
		links := opened(t, p, 3)
		var members []*session
		for _, l := range links {
			m := &session{}
			l.Attach(m)
			members = append(members, m)
		}
		time.Sleep(29 * time.Second)
		w := opening(t, exclusive(t, p))
		synctest.Wait()
		members[0].set(true)
		members[2].set(true)
		if got := <-w; got.err != nil || got.took != time.Second {
			t.Errorf("%+v", got)
		}
		for i, want := range []bool{true, false, true} {
			if live := links[i].Live() != nil; live != want {
				t.Errorf("link %d lives: %v", i, live)
			}
		}
		members[0].set(false)
		members[2].set(false)
	})
}

// Whoever waits longer than Yield finds those that were opened meanwhile.
func TestWaitLongerThanYield(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPool(t, &shop{start: 5 * time.Second}, pool.Config{Max: n, Wait: time.Hour, Yield: 10 * time.Second})
				defer closePool(t, p)
				var first []<-chan outcome
				for range n {
					first = append(first, opening(t, exclusive(t, p)))
				}
				synctest.Wait()
				l := exclusive(t, p)
				w := opening(t, l)
				for _, f := range first {
					<-f
				}
				if got := <-w; got.err != nil || got.took != 20*time.Second { // 5 + 10 + 5 of its own
					t.Errorf("%+v", got)
				}
			})
		})
	}
}
