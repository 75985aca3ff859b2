package pool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/pool"
)

// Close ends all links at the same time, waits for them and for those already on their way out, tells what went wrong, and refuses
// new ones. The limits are free again.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{stop: 2 * time.Second, fail: errors.New("7 is still there")}
		budget := pool.NewBudget(5)
		p := newPool(t, s, pool.Config{Budget: budget})
		released := exclusive(t, p)
		single, _ := p.Single(modern("a"), nil)
		for _, l := range []*bridge.Link{released, exclusive(t, p), shared(t, p, modern("")), single} {
			open(t, l)
		}
		exclusive(t, p) // without a process there is nothing to report
		p.Release(released)
		began := time.Now()
		err := p.Close()
		if err == nil || strings.Count(err.Error(), "still there") != 3 {
			t.Errorf("close: %v", err)
		}
		if d := time.Since(began); d != 2*time.Second {
			t.Errorf("close took %v: the links are ended one after the other", d)
		}
		if running, _, _ := s.counts(); running != 0 {
			t.Errorf("%d servers after Close", running)
		}
		_, one := p.Shared(modern(""), nil)
		_, two := p.Exclusive(nil, false)
		_, three := p.Single(modern(""), nil)
		for _, err := range []*bridge.Error{one, two, three} {
			if err == nil || err.Status != 503 || err.Reason != bridge.ReasonStopping {
				t.Errorf("after Close: %+v", err)
			}
		}
		if err := p.Close(); err != nil {
			t.Errorf("second close: %v", err)
		}
		other := newPool(t, &shop{}, pool.Config{Budget: budget})
		defer closePool(t, other)
		for range 5 {
			if got := <-opening(t, exclusive(t, other)); got.err != nil || got.took != 0 {
				t.Errorf("a seat is lost: %+v", got)
			}
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
			both(t, 1, func(t *testing.T, cfg pool.Config, _ string) {
				s := &shop{start: 30 * time.Second}
				p := newPool(t, s, cfg)
				defer closePool(t, p)
				l := exclusive(t, p)
				failed := opening(t, l)
				synctest.Wait()
				end(p, l)
				if got := <-failed; got.err == nil || got.err.Reason != bridge.ReasonStopping || got.took > time.Second {
					t.Errorf("the caller got %+v", got)
				}
				synctest.Wait()
				if running, _, _ := s.counts(); running != 0 {
					t.Errorf("%d servers", running)
				}
				other := newPool(t, &shop{}, pool.Config{Budget: cfg.Budget})
				defer closePool(t, other)
				if got := <-opening(t, exclusive(t, other)); got.err != nil || got.took != 0 {
					t.Errorf("the seat is lost: %+v", got)
				}
			})
		})
	}
}

// A server that does not end holds Close up for Config.Grace, by default 10 seconds.
func TestGrace(t *testing.T) {
	for _, grace := range []time.Duration{0, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			p := newPool(t, &shop{}, pool.Config{Grace: grace, Back: func() bridge.Back { return stubborn{(&shop{}).back()} }})
			opened(t, p, 2)
			began := time.Now()
			err := p.Close()
			want := grace
			if want == 0 {
				want = 10 * time.Second
			}
			if d := time.Since(began); d != want || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("close took %v: %v", d, err)
			}
		})
	}
}

// stubborn is a back that ends when it is told to no more.
type stubborn struct{ bridge.Back }

func (s stubborn) Close(ctx context.Context) error {
	<-ctx.Done()
	_ = s.Back.Close(ctx)
	return ctx.Err()
}

// Halt ends all processes at the same time, those of spares too; links stay, and their next message starts them anew.
func TestHalt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{stop: 2 * time.Second}
		p := newPool(t, s, pool.Config{Max: 9, Spare: 1})
		defer running(t, p)()
		links := append(opened(t, p, 3), shared(t, p, modern("a")), exclusive(t, p))
		open(t, links[3])
		synctest.Wait()
		if running, _, _ := s.counts(); running != 5 {
			t.Fatalf("%d run, want four links and a spare", running)
		}
		began := time.Now()
		if err := p.Halt(t.Context()); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d != 2*time.Second {
			t.Errorf("halt took %v: the processes are ended one after the other", d)
		}
		synctest.Wait()
		if running, _, started := s.counts(); running != 1 || started != 6 || kinds(p)[pool.KindSpare] != 1 {
			t.Errorf("%d run of %d, want a new spare", running, started)
		}
		if p.Len() != 5 {
			t.Errorf("%d links, want 5", p.Len())
		}
		for _, l := range links {
			if l.Live() != nil {
				t.Error("a link is live")
			}
			if got := <-opening(t, l); got.err != nil {
				t.Errorf("the next message: %+v", got)
			}
		}
	})
}

// What could not be halted is told.
func TestHaltFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, nil, pool.Config{Back: func() bridge.Back { return unhalted{(&shop{}).back()} }})
		defer closePool(t, p)
		opened(t, p, 2)
		if err := p.Halt(t.Context()); err == nil || strings.Count(err.Error(), "still there") != 2 {
			t.Errorf("halt: %v", err)
		}
	})
}

type unhalted struct{ bridge.Back }

func (unhalted) Halt(context.Context) error { return errors.New("7 is still there") }

// Drain refuses what is new, lets calls end, waits neither for clients that listen nor for sessions, and closes.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		p := newPool(t, s, pool.Config{Max: 3})
		links := opened(t, p, 2)
		end := call(t, links[0], mcp.ToolsCall)
		links[1].Attach(&session{listen: true})
		modernLink := shared(t, p, modern("a"))
		call(t, modernLink, mcp.Listen)
		unopened := exclusive(t, p)
		waits := opening(t, exclusive(t, p))
		synctest.Wait()
		drained := make(chan error, 1)
		go func() { drained <- p.Drain(t.Context()) }()
		synctest.Wait()
		if got := <-waits; got.err == nil || got.err.Reason != bridge.ReasonStopping || got.took != 0 {
			t.Errorf("who waited for a seat got %+v", got)
		}
		if got := <-opening(t, unopened); got.err == nil || got.err.Reason != bridge.ReasonStopping || got.err.Status != 503 {
			t.Errorf("an opening got %+v", got)
		}
		_, one := p.Shared(modern("b"), nil)
		_, two := p.Exclusive(nil, true)
		for _, err := range []*bridge.Error{one, two} {
			if err == nil || err.Reason != bridge.ReasonStopping || err.Status != 503 {
				t.Errorf("a new link: %+v", err)
			}
		}
		time.Sleep(time.Hour)
		if len(drained) > 0 || links[0].Live() == nil {
			t.Fatal("a call was cut off")
		}
		if got := <-opening(t, links[0]); got.err != nil {
			t.Errorf("a link with a process: %+v", got)
		}
		end()
		began := time.Now()
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > 100*time.Millisecond {
			t.Errorf("drained %v behind the last call", d)
		}
		if running, _, _ := s.counts(); running != 0 || p.Len() != 0 {
			t.Errorf("%d processes, %d links", running, p.Len())
		}
	})
}

// Drain ends with its context, and closes all the same. With nothing to wait for it does not wait.
func TestDrainEnds(t *testing.T) {
	for _, works := range []bool{false, true} {
		t.Run(fmt.Sprint(works), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shop{}
				p := newPool(t, s, pool.Config{Spare: 1})
				defer running(t, p)()
				l := opened(t, p, 1)[0]
				want := time.Duration(0)
				if works {
					busy(t, l)
					want = time.Minute
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				began := time.Now()
				if err := p.Drain(ctx); err != nil {
					t.Error(err)
				}
				if d := time.Since(began); d != want {
					t.Errorf("it took %v, want %v", d, want)
				}
				if running, _, _ := s.counts(); running != 0 {
					t.Errorf("%d processes", running)
				}
			})
		})
	}
}
