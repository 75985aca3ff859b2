package pool_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/pool"
	"mcpbridge/framing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop makes backs without servers and counts what runs.
type shop struct {
	start, stop time.Duration // how long a server takes to start and to end
	fail        error         // of Close

	mu      sync.Mutex
	running int
	most    int
	opened  int
}

// server is the upstream and the back of one link.
type server struct {
	shop *shop
	once sync.Once
	dead chan struct{}

	mu sync.Mutex
	up bool
}

func (s *shop) back() bridge.Back { return &server{shop: s, dead: make(chan struct{})} }

func (s *shop) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running += n
	s.most = max(s.most, s.running)
	if n > 0 {
		s.opened++
	}
}

func (s *shop) counts() (running, most, opened int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running, s.most, s.opened
}

func (v *server) Open(ctx context.Context, o bridge.OpenOptions) (*bridge.Conn, error) {
	v.mu.Lock()
	v.up = true
	v.mu.Unlock()
	v.shop.add(1)
	select {
	case <-time.After(v.shop.start):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	c := bridge.NewConn(v.upstream(), o.Conn)
	c.Establish(bridge.Facts{Era: o.Want})
	return c, nil
}

func (v *server) Halt(context.Context) error { return nil }

func (v *server) Close(context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.up {
		time.Sleep(v.shop.stop)
		v.shop.add(-1)
		v.up = false
	}
	v.once.Do(func() { close(v.dead) })
	return v.shop.fail
}

func (v *server) upstream() bridge.Upstream { return upstream{v} }

type upstream struct{ v *server }

func (u upstream) Send(context.Context, framing.Frame, bool) error { return nil }
func (u upstream) Serve(bridge.Receiver) error                     { <-u.v.dead; return errors.New("gone") }
func (u upstream) Close(ctx context.Context) error                 { return u.v.Close(ctx) }

// sink takes an answer and forgets it.
type sink struct{}

func (sink) Notify(framing.Frame, string) {}
func (sink) Ask(framing.Frame)            {}
func (sink) Finish(bridge.Answer)         {}

func newPool(t *testing.T, s *shop, cfg pool.Config) *pool.Pool {
	cfg.Name, cfg.Back = "srv", s.back
	return pool.New(t.Context(), cfg)
}

func closePool(t *testing.T, p *pool.Pool) {
	t.Helper()
	if err := p.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func shared(t *testing.T, p *pool.Pool, k pool.Key) *bridge.Link {
	t.Helper()
	l, err := p.Shared(k, nil)
	if err != nil {
		t.Fatalf("no link for %v: %v", k, err)
	}
	return l
}

func exclusive(t *testing.T, p *pool.Pool) *bridge.Link {
	t.Helper()
	l, err := p.Exclusive(nil)
	if err != nil {
		t.Fatalf("no exclusive link: %v", err)
	}
	return l
}

func open(t *testing.T, l *bridge.Link) {
	t.Helper()
	if _, err := l.Conn(t.Context()); err != nil {
		t.Fatalf("cannot open: %v", err)
	}
}

// A key has one link, and different keys have different ones: nothing is shared between eras or principals (translation
// 14.2, SEC-08). An exclusive link is nobody else's.
func TestKeys(t *testing.T) {
	p := newPool(t, &shop{}, pool.Config{})
	defer closePool(t, p)
	keys := []pool.Key{{mcp.Modern, "a"}, {mcp.Modern, "b"}, {mcp.Legacy, "a"}, {mcp.Modern, ""}}
	seen := map[*bridge.Link]bool{}
	for _, k := range keys {
		l := shared(t, p, k)
		if seen[l] {
			t.Errorf("%v shares a link with another key", k)
		}
		seen[l] = true
		if shared(t, p, k) != l {
			t.Errorf("%v has two links", k)
		}
	}
	for range 2 {
		l := exclusive(t, p)
		if seen[l] {
			t.Error("an exclusive link is shared")
		}
		seen[l] = true
	}
	if p.Len() != 6 {
		t.Errorf("%d links, want 6", p.Len())
	}
}

// The cap of the server and the budget of all hold at n and refuse n+1 with 503, whatever kind the links are; a link of a
// known key is always given.
func TestCaps(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg  pool.Config
		says string
	}{
		"server": {pool.Config{Max: 3}, "maxProcesses of the server: 3"},
		"bridge": {pool.Config{Budget: pool.NewBudget(3)}, "limits.processes: 3"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, &shop{}, tc.cfg)
			defer closePool(t, p)
			k := pool.Key{Era: mcp.Modern, Principal: "a"}
			shared(t, p, k)
			exclusive(t, p)
			exclusive(t, p)
			_, one := p.Exclusive(nil)
			_, two := p.Shared(pool.Key{Era: mcp.Legacy}, nil)
			for _, err := range []*bridge.Error{one, two} {
				if err == nil {
					t.Fatal("a fourth link")
				}
				if err.Status != 503 || err.Reason != bridge.ReasonOverload || err.Retry == 0 || !strings.Contains(err.Message, tc.says) {
					t.Errorf("refused with %+v", err)
				}
			}
			shared(t, p, k)
		})
	}
}

func TestDefaults(t *testing.T) {
	p := newPool(t, &shop{}, pool.Config{})
	defer closePool(t, p)
	for range 8 {
		exclusive(t, p)
	}
	if _, err := p.Exclusive(nil); err == nil {
		t.Error("nine links of one server by default")
	}
	b := pool.NewBudget(0)
	big := newPool(t, &shop{}, pool.Config{Max: 100, Budget: b})
	defer closePool(t, big)
	for range 64 {
		exclusive(t, big)
	}
	if _, err := big.Exclusive(nil); err == nil {
		t.Error("65 links by default")
	}
}

// Servers share the budget, and the end of a link returns its part, once.
func TestBudgetReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := pool.NewBudget(2)
		one := newPool(t, &shop{}, pool.Config{Budget: budget})
		two := newPool(t, &shop{}, pool.Config{Budget: budget})
		defer closePool(t, two)
		defer closePool(t, one)
		l := exclusive(t, one)
		k := pool.Key{Era: mcp.Modern}
		shared(t, two, k)
		if _, err := two.Exclusive(nil); err == nil {
			t.Fatal("three links with a budget of two")
		}
		one.Release(l)
		one.Release(l)                 // again: nothing
		two.Release(shared(t, two, k)) // not exclusive: nothing
		synctest.Wait()
		exclusive(t, two)
		if _, err := one.Exclusive(nil); err == nil {
			t.Error("three links after one was released")
		}
		if err := two.Close(); err != nil {
			t.Error(err)
		}
		exclusive(t, one)
		exclusive(t, one)
		if _, err := one.Exclusive(nil); err == nil {
			t.Error("three links after a pool was closed")
		}
	})
}

// A client that ends one session and opens the next is not refused, and still there are never more processes than allowed:
// the new server starts when the old one is gone.
func TestPlaceIsTakenOver(t *testing.T) {
	for name, cfg := range map[string]pool.Config{"server": {Max: 1}, "bridge": {Budget: pool.NewBudget(1)}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shop{stop: 3 * time.Second}
				p := newPool(t, s, cfg)
				defer closePool(t, p)
				began := time.Now()
				l := exclusive(t, p)
				for range 3 {
					open(t, l)
					p.Release(l)
					p.Release(exclusive(t, p)) // waits for its place, is released before it has it
					l = exclusive(t, p)
					if _, err := p.Exclusive(nil); err == nil {
						t.Fatal("the same place was given twice")
					}
				}
				open(t, l)
				if d := time.Since(began); d != 9*time.Second {
					t.Errorf("it took %v, want three ends", d)
				}
				if _, most, opened := s.counts(); most != 1 || opened != 4 {
					t.Errorf("%d servers at a time, %d starts", most, opened)
				}
			})
		})
	}
}

// A shared link nobody uses is ended after the idle time and not before; its key gets a new one (translation 14.4).
func TestIdleStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		p := newPool(t, s, pool.Config{Idle: 10 * time.Minute})
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { p.Run(ctx) })
		k := pool.Key{Era: mcp.Modern}
		l := shared(t, p, k)
		open(t, l)
		own := exclusive(t, p)
		open(t, own)
		time.Sleep(10*time.Minute - time.Second)
		if running, _, _ := s.counts(); running != 2 {
			t.Errorf("%d servers before the idle time is over", running)
		}
		shared(t, p, k) // handed out: not idle until it has been used
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		if running, _, _ := s.counts(); running != 2 {
			t.Error("a link was ended between being handed out and being used")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if running, _, _ := s.counts(); running != 1 || p.Len() != 1 {
			t.Errorf("%d servers, %d links after the idle time; want the exclusive one", running, p.Len())
		}
		if _, err := l.Conn(t.Context()); err == nil {
			t.Error("the ended link opens again")
		}
		if shared(t, p, k) == l {
			t.Error("the ended link is handed out again")
		}
		stop()
		wg.Wait()
		closePool(t, p)
	})
}

// What keeps a shared link: a request at the server, a legacy session, an opening.
func TestNotIdle(t *testing.T) {
	for name, use := range map[string]func(*testing.T, *bridge.Link) (end func()){
		"request": func(t *testing.T, l *bridge.Link) func() {
			c, _ := l.Conn(t.Context())
			m, _ := framing.Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`))
			ticket, err := c.Dispatch(t.Context(), &bridge.Exchange{Message: m, Method: mcp.Listen, Era: mcp.Modern, Sink: sink{}})
			if err != nil {
				t.Fatal(err)
			}
			return func() { ticket.Cancel(nil) }
		},
		"session": func(_ *testing.T, l *bridge.Link) func() {
			l.Attach(nil)
			return func() { l.Detach(nil) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shop{}
				p := newPool(t, s, pool.Config{Idle: time.Minute})
				ctx, stop := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { p.Run(ctx) })
				l := shared(t, p, pool.Key{Era: mcp.Modern})
				open(t, l)
				end := use(t, l)
				time.Sleep(time.Hour)
				if running, _, _ := s.counts(); running != 1 {
					t.Error("the link was ended while it was in use")
				}
				end()
				time.Sleep(30 * time.Second)
				if running, _, _ := s.counts(); running != 1 {
					t.Error("the idle time did not start anew")
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if running, _, _ := s.counts(); running != 0 {
					t.Error("the link was not ended after use")
				}
				stop()
				wg.Wait()
				closePool(t, p)
			})
		})
	}
}

// A negative idle time keeps links for ever, and Run has nothing to do.
func TestNeverIdle(t *testing.T) {
	p := newPool(t, &shop{}, pool.Config{Idle: -1})
	defer closePool(t, p)
	p.Run(t.Context())
}

// Close ends all links, waits for them and for those already on their way out, tells what went wrong, and refuses new ones.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{stop: 2 * time.Second, fail: errors.New("7 is still there")}
		budget := pool.NewBudget(3)
		p := newPool(t, s, pool.Config{Budget: budget})
		k := pool.Key{Era: mcp.Modern}
		released := exclusive(t, p)
		for _, l := range []*bridge.Link{released, exclusive(t, p), shared(t, p, k)} {
			open(t, l)
		}
		p.Release(released)
		began := time.Now()
		err := p.Close()
		if err == nil || strings.Count(err.Error(), "still there") != 2 {
			t.Errorf("close: %v", err)
		}
		if d := time.Since(began); d != 2*time.Second {
			t.Errorf("close took %v: the links are ended one after the other", d)
		}
		if running, _, _ := s.counts(); running != 0 {
			t.Errorf("%d servers after Close", running)
		}
		_, one := p.Shared(k, nil)
		_, two := p.Exclusive(nil)
		if one == nil || two == nil || one.Status != 503 {
			t.Error("links after Close")
		}
		if err := p.Close(); err != nil {
			t.Errorf("second close: %v", err)
		}
		other := newPool(t, &shop{}, pool.Config{Budget: budget})
		defer closePool(t, other)
		for range 3 {
			exclusive(t, other)
		}
	})
}

// A link that is closed while it opens fails its callers at once and leaves nothing behind.
func TestCloseWhileOpening(t *testing.T) {
	for name, end := range map[string]func(*pool.Pool, *bridge.Link){
		"release": func(p *pool.Pool, l *bridge.Link) { p.Release(l) },
		"close":   func(p *pool.Pool, _ *bridge.Link) { _ = p.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shop{start: 30 * time.Second}
				p := newPool(t, s, pool.Config{})
				defer closePool(t, p)
				l := exclusive(t, p)
				failed := make(chan *bridge.Error, 1)
				go func() { _, err := l.Conn(t.Context()); failed <- err }()
				synctest.Wait()
				began := time.Now()
				end(p, l)
				if err := <-failed; err == nil || err.Status != 503 {
					t.Errorf("the caller got %v", err)
				}
				if d := time.Since(began); d > time.Second {
					t.Errorf("the caller waited %v", d)
				}
				synctest.Wait()
				if running, _, _ := s.counts(); running != 0 {
					t.Errorf("%d servers", running)
				}
			})
		})
	}
}

// Many at once: the caps hold at every moment.
func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{stop: time.Millisecond}
		p := newPool(t, s, pool.Config{Max: 4})
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				for range 20 {
					l, err := p.Exclusive(nil)
					if err != nil {
						time.Sleep(time.Millisecond)
						continue
					}
					_, _ = l.Conn(t.Context())
					p.Release(l)
				}
			})
		}
		wg.Wait()
		closePool(t, p)
		if running, most, opened := s.counts(); running != 0 || most > 4 || opened < 20 {
			t.Errorf("%d running, %d at a time, %d starts", running, most, opened)
		}
	})
}
