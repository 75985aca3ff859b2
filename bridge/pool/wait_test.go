package pool_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/pool"
)

// The start timeout of a link bounds its wait too; the error is that of a full server.
func TestStartTimeoutWhileWaiting(t *testing.T) {
	both(t, 1, func(t *testing.T, cfg pool.Config, says string) {
		cfg.Link.Limits.Start = 4 * time.Second
		p := newPool(t, &shop{}, cfg)
		defer closePool(t, p)
		busy(t, opened(t, p, 1)...)
		got := <-opening(t, exclusive(t, p))
		wantFull(t, got.err, says, "waited 4s")
		if got.took != 4*time.Second || p.Waiting() != 0 {
			t.Errorf("after %v, %d wait", got.took, p.Waiting())
		}
	})
}

// A link that is released while it waits frees its place in the queue at once, and its caller hears that it was stopped.
func TestReleaseWhileWaiting(t *testing.T) {
	both(t, 1, func(t *testing.T, cfg pool.Config, _ string) {
		cfg.Waiting = 1
		p := newPool(t, &shop{}, cfg)
		defer closePool(t, p)
		busy(t, opened(t, p, 1)...)
		l := exclusive(t, p)
		w := opening(t, l)
		synctest.Wait()
		if got := <-opening(t, exclusive(t, p)); got.err == nil || got.took != 0 || p.Waiting() != 1 {
			t.Errorf("two wait where one may: %+v", got)
		}
		p.Release(l)
		if got := <-w; got.err == nil || got.err.Reason != bridge.ReasonStopping || got.took != 0 {
			t.Errorf("released: %+v", got)
		}
		if n := p.Waiting(); n != 0 {
			t.Errorf("%d wait", n)
		}
		other := opening(t, exclusive(t, p))
		synctest.Wait()
		if n := p.Waiting(); n != 1 {
			t.Errorf("%d wait, want the next", n)
		}
		<-other
	})
}

// Who waits delays nobody whose link has a process, nor another server.
func TestWaitingDelaysNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := pool.NewBudget(3)
		full := newPool(t, &shop{}, pool.Config{Max: 1, Budget: budget})
		other := newPool(t, &shop{}, pool.Config{Max: 1, Budget: budget})
		defer closePool(t, other)
		defer closePool(t, full)
		l := shared(t, full, modern("a"))
		busy(t, l)
		w := opening(t, exclusive(t, full))
		synctest.Wait()
		for _, link := range []*bridge.Link{l, shared(t, full, modern("a")), shared(t, other, modern("a"))} {
			if got := <-opening(t, link); got.err != nil || got.took != 0 {
				t.Errorf("%+v", got)
			}
		}
		<-w
	})
}

// A link whose process dies while a client listens keeps its seat and opens again by itself, though others wait. One nobody
// listens to gives it up.
func TestReopeningLinkKeepsItsSeat(t *testing.T) {
	for _, listens := range []bool{false, true} {
		t.Run(fmt.Sprint(listens), func(t *testing.T) {
			both(t, 1, func(t *testing.T, cfg pool.Config, _ string) {
				s := &shop{}
				p := newPool(t, s, cfg)
				defer closePool(t, p)
				l := exclusive(t, p)
				l.Attach(&session{listen: listens})
				busy(t, l)
				w := opening(t, exclusive(t, p))
				synctest.Wait()
				proc(t, p, l).crash()
				got := <-w
				if kept := got.err != nil; kept != listens {
					t.Errorf("who waited got %+v", got)
				}
				if (l.Live() != nil) != listens {
					t.Errorf("the link that died lives: %v", l.Live() != nil)
				}
			})
		})
	}
}

// A listening link whose server cannot be started again does not hold its seat for ever.
func TestSeatOfLinkThatCannotReopen(t *testing.T) {
	both(t, 1, func(t *testing.T, cfg pool.Config, _ string) {
		s := &shop{}
		p := newPool(t, s, cfg)
		defer closePool(t, p)
		l := exclusive(t, p)
		member := &session{listen: true}
		l.Attach(member)
		busy(t, l)
		first := proc(t, p, l)
		w := opening(t, shared(t, p, modern("a")))
		synctest.Wait()
		s.set(func() { s.refuses = errors.New("exit status 1") })
		first.crash()
		if got := <-w; got.err == nil || got.err.Reason != bridge.ReasonBackUnavailable || got.took > time.Second {
			t.Errorf("who waited got %+v, want its own try", got)
		}
		member.set(false)
	})
}

// Closing the pool refuses who waits, with reason stopping.
func TestCloseWhileWaiting(t *testing.T) {
	both(t, 1, func(t *testing.T, cfg pool.Config, _ string) {
		p := newPool(t, &shop{}, cfg)
		busy(t, opened(t, p, 1)...)
		var all []<-chan outcome
		for range 3 {
			all = append(all, opening(t, exclusive(t, p)))
		}
		synctest.Wait()
		closePool(t, p)
		for _, w := range all {
			if got := <-w; got.err == nil || got.err.Reason != bridge.ReasonStopping || got.took != 0 {
				t.Errorf("%+v", got)
			}
		}
	})
}

// The end of the bridge ends the wait.
func TestContextEndsWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		p := pool.New(ctx, pool.Config{Name: "srv", Max: 1, Back: (&shop{}).back})
		defer closePool(t, p)
		busy(t, opened(t, p, 1)...)
		w := opening(t, exclusive(t, p))
		synctest.Wait()
		stop()
		if got := <-w; got.err == nil || got.err.Reason != bridge.ReasonStopping || got.took != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// Who is released while it waits takes no seat that becomes free at the same moment.
func TestReleaseInTheMomentOfTheGrant(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			budget := pool.NewBudget(1)
			p := newPool(t, &shop{}, pool.Config{Budget: budget})
			defer closePool(t, p)
			holder := opened(t, p, 1)[0]
			busy(t, holder)
			l := exclusive(t, p)
			w := opening(t, l)
			synctest.Wait()
			var both sync.WaitGroup
			both.Go(func() { p.Release(l) })
			both.Go(func() { p.Release(holder) })
			both.Wait()
			if got := <-w; got.err != nil && got.err.Reason != bridge.ReasonStopping {
				t.Errorf("released: %+v", got)
			}
			synctest.Wait()
			if got := <-opening(t, exclusive(t, p)); got.err != nil || got.took != 0 {
				t.Errorf("the seat is lost: %+v", got)
			}
		})
	}
}
