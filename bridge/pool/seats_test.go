package pool_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/pool"
)

// both runs a test against the limit of a server and against that of the bridge.
func both(t *testing.T, n int, f func(t *testing.T, cfg pool.Config, says string)) {
	for name, tc := range map[string]struct {
		cfg  func() pool.Config
		says string
	}{
		"server": {func() pool.Config { return pool.Config{Max: n} }, fmt.Sprintf("maxProcesses of the server: %d", n)},
		"bridge": {func() pool.Config { return pool.Config{Budget: pool.NewBudget(n)} }, fmt.Sprintf("limits.processes: %d", n)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, tc.cfg(), tc.says) })
		})
	}
}

func wantFull(t *testing.T, err *bridge.Error, says ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("served beyond the limit")
	}
	if err.Status != 503 || err.Reason != bridge.ReasonOverload || err.Retry != 5 {
		t.Errorf("refused with %+v", err)
	}
	for _, text := range says {
		if !strings.Contains(err.Message, text) {
			t.Errorf("%q does not say %q", err.Message, text)
		}
	}
}

// Both limits hold at n; one more waits for Config.Wait, and its error names the setting and says that it waited. Links
// without a process take no place.
func TestSeatLimits(t *testing.T) {
	both(t, 3, func(t *testing.T, cfg pool.Config, says string) {
		cfg.Wait = 7 * time.Second
		s := &shop{}
		p := newPool(t, s, cfg)
		defer closePool(t, p)
		for range 20 {
			exclusive(t, p)
		}
		links := opened(t, p, 3)
		busy(t, links...)
		got := <-opening(t, shared(t, p, modern("a")))
		wantFull(t, got.err, says, "waited 7s")
		if got.took != 7*time.Second {
			t.Errorf("refused after %v", got.took)
		}
		if running, _, _ := s.counts(); running != 3 {
			t.Errorf("%d processes", running)
		}
		p.Release(links[0])
		if got := <-opening(t, shared(t, p, modern("a"))); got.err != nil || got.took != 0 {
			t.Errorf("with a free seat: %+v", got)
		}
	})
}

// The defaults, each at n and n+1.
func TestDefaults(t *testing.T) {
	t.Run("Max, Wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPool(t, &shop{}, pool.Config{})
			defer closePool(t, p)
			busy(t, opened(t, p, 8)...)
			got := <-opening(t, exclusive(t, p))
			wantFull(t, got.err, "maxProcesses of the server: 8", "waited 10s")
		})
	})
	t.Run("Budget", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPool(t, &shop{}, pool.Config{Max: 100})
			defer closePool(t, p)
			busy(t, opened(t, p, 64)...)
			wantFull(t, (<-opening(t, exclusive(t, p))).err, "limits.processes: 64")
		})
	})
	t.Run("Waiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPool(t, &shop{}, pool.Config{Max: 1})
			defer closePool(t, p)
			busy(t, opened(t, p, 1)...)
			var waiting []<-chan outcome
			for range 64 {
				waiting = append(waiting, opening(t, exclusive(t, p)))
			}
			synctest.Wait()
			if n := p.Waiting(); n != 64 {
				t.Errorf("%d wait", n)
			}
			got := <-opening(t, exclusive(t, p))
			wantFull(t, got.err, "maxProcesses of the server: 1", "64 others wait")
			if got.took != 0 {
				t.Errorf("one more than may wait waited %v", got.took)
			}
			for _, w := range waiting {
				wantFull(t, (<-w).err)
			}
			if n := p.Waiting(); n != 0 {
				t.Errorf("%d wait behind their time", n)
			}
		})
	})
	t.Run("Links", func(t *testing.T) {
		p := newPool(t, &shop{}, pool.Config{})
		defer closePool(t, p)
		for range 10_000 {
			exclusive(t, p)
		}
		if _, err := p.Exclusive(nil, false); err == nil {
			t.Error("10,001 links")
		}
	})
}

// A limit that changes holds for what starts from then on; who waits gets what is more.
func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := pool.NewBudget(1)
		p := newPool(t, &shop{}, pool.Config{Budget: budget})
		defer closePool(t, p)
		links := opened(t, p, 1)
		busy(t, links...)
		second, third := exclusive(t, p), exclusive(t, p)
		w := opening(t, second)
		time.Sleep(time.Second)
		budget.Resize(2)
		if got := <-w; got.err != nil || got.took != time.Second {
			t.Errorf("with more seats: %+v", got)
		}
		busy(t, second)
		budget.Resize(1)
		w = opening(t, third)
		time.Sleep(time.Second)
		p.Release(links[0])
		time.Sleep(time.Second)
		p.Release(second)
		if got := <-w; got.err != nil || got.took != 2*time.Second {
			t.Errorf("with less seats: %+v", got)
		}
	})
}

// Those who wait are served in the order in which they came, whatever kind they are.
func TestOrderOfArrival(t *testing.T) {
	both(t, 1, func(t *testing.T, cfg pool.Config, _ string) {
		cfg.Wait = time.Hour
		p := newPool(t, &shop{}, cfg)
		defer closePool(t, p)
		first := opened(t, p, 1)[0]
		busy(t, first)
		order := make(chan int, 5)
		var links []*bridge.Link
		for i := range 5 {
			l := exclusive(t, p)
			if i%2 == 0 {
				l = shared(t, p, modern(bridge.Principal(fmt.Sprint(i))))
			}
			links = append(links, l)
			go func() {
				if _, err := l.Conn(t.Context()); err == nil {
					call(t, l, "tools/call")
					order <- i
				}
			}()
			synctest.Wait()
		}
		p.Release(first)
		var got []int
		for range 5 {
			i := <-order
			got = append(got, i)
			time.Sleep(time.Second)
			if len(order) > 0 {
				t.Error("two have the same seat")
			}
			proc(t, p, links[i]).crash()
		}
		if !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
			t.Errorf("served in the order %v", got)
		}
	})
}

// A seat passes on when the old process is gone, not before: of a session that ends, of one that crashed and lingers, of one that
// could not be opened.
func TestSeatPassesOnWhenTheProcessIsGone(t *testing.T) {
	type ending func(*testing.T, *pool.Pool, *bridge.Link)
	release := func(_ *testing.T, p *pool.Pool, l *bridge.Link) { p.Release(l) }
	crash := func(t *testing.T, p *pool.Pool, l *bridge.Link) { proc(t, p, l).crash() }
	halt := func(t *testing.T, _ *pool.Pool, l *bridge.Link) { _ = l.Halt(t.Context()) }
	for name, tt := range map[string]struct {
		stop, linger time.Duration
		end          ending
		took         time.Duration
	}{
		"released":            {3 * time.Second, 0, release, 3 * time.Second},
		"crashed":             {time.Second, 0, crash, 0},
		"crashed and lingers": {0, 5 * time.Second, crash, 5 * time.Second},
		"halted":              {2 * time.Second, 0, halt, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, 1, func(t *testing.T, cfg pool.Config, _ string) {
				s := &shop{stop: tt.stop, linger: tt.linger}
				p := newPool(t, s, cfg)
				defer closePool(t, p)
				l := opened(t, p, 1)[0]
				busy(t, l)
				w := opening(t, exclusive(t, p))
				synctest.Wait()
				tt.end(t, p, l)
				if got := <-w; got.err != nil || got.took != tt.took {
					t.Errorf("%+v, want it after %v", got, tt.took)
				}
				if _, most, _ := s.counts(); most != 1 {
					t.Errorf("%d processes at a time", most)
				}
			})
		})
	}
}

// A process that closes its output and takes its time to end has its seat until it has ended, whether or not its back can say
// when that is.
func TestSeatOfHushedProcess(t *testing.T) {
	for name, halt := range map[string]bool{"halted": true, "released": false} {
		t.Run(name, func(t *testing.T) {
			both(t, 1, func(t *testing.T, cfg pool.Config, _ string) {
				s := &shop{stop: 3 * time.Second, hushes: true}
				cfg.Back = s.cold
				p := newPool(t, s, cfg)
				defer closePool(t, p)
				l := opened(t, p, 1)[0]
				w := opening(t, exclusive(t, p))
				synctest.Wait()
				if halt {
					_ = l.Halt(t.Context())
				} else {
					p.Release(l)
				}
				if got := <-w; got.err != nil || got.took != 3*time.Second {
					t.Errorf("%+v, want it after 3s", got)
				}
				if _, most, _ := s.counts(); most != 1 {
					t.Errorf("%d processes at a time", most)
				}
			})
		})
	}
}

// A client that ends one session and opens the next costs nobody else's process, however long the old one takes to end.
func TestEndingSeatIsWaitedFor(t *testing.T) {
	both(t, 2, func(t *testing.T, cfg pool.Config, _ string) {
		s := &shop{stop: 3 * time.Second}
		p := newPool(t, s, cfg)
		defer closePool(t, p)
		links := opened(t, p, 2)
		time.Sleep(time.Hour)
		p.Release(links[0])
		if got := <-opening(t, exclusive(t, p)); got.err != nil || got.took != 3*time.Second {
			t.Errorf("%+v", got)
		}
		if links[1].Live() == nil {
			t.Error("an idle link was rested although a seat was on its way out")
		}
	})
}

// An opening that fails leaves no seat taken, nor does one whose caller has gone.
func TestFailedOpening(t *testing.T) {
	both(t, 1, func(t *testing.T, cfg pool.Config, _ string) {
		s := &shop{refuses: errors.New("exit status 1")}
		p := newPool(t, s, cfg)
		defer closePool(t, p)
		l := exclusive(t, p)
		for range 3 {
			if got := <-opening(t, l); got.err == nil || got.err.Reason != bridge.ReasonBackUnavailable {
				t.Errorf("got %+v", got)
			}
			synctest.Wait()
		}
		s.set(func() { s.refuses = nil })
		if got := <-opening(t, exclusive(t, p)); got.err != nil || got.took != 0 {
			t.Errorf("another link: %+v", got)
		}
	})
}
