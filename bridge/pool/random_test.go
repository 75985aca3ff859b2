package pool_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/pool"
	"mcpbridge/framing"
)

// Many at once, of all kinds, in two pools that share a budget, with spares, crashes, halts, slow ends: neither limit is
// ever exceeded, everybody is answered within bounds, and no seat is lost.
func TestNoOvershoot(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { storm(t, seed) })
		})
	}
}

const (
	stormBudget = 5
	stormMax    = 4
)

func storm(t *testing.T, seed uint64) {
	all := &shop{}
	budget := pool.NewBudget(stormBudget)
	var pools []*pool.Pool
	var shops []*shop
	for i := range 2 {
		s := &shop{start: 3 * time.Millisecond, stop: time.Duration(i) * 5 * time.Millisecond, linger: 4 * time.Millisecond, above: all}
		shops = append(shops, s)
		pools = append(pools, newPool(t, s, pool.Config{Max: stormMax, Budget: budget, Spare: i, Yield: 10 * time.Millisecond,
			Wait: 200 * time.Millisecond, Idle: 40 * time.Millisecond, Waiting: 10}))
	}
	ctx, stop := context.WithCancel(t.Context())
	var own, clients sync.WaitGroup
	for _, p := range pools {
		own.Go(func() { p.Run(ctx) })
	}
	for i := range 20 {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		clients.Go(func() {
			for range 30 {
				visit(t, pools[r.IntN(len(pools))], r)
			}
		})
	}
	clients.Wait()
	time.Sleep(time.Second)
	for i, s := range shops {
		if _, most, started := s.counts(); most > stormMax || started < 20 {
			t.Errorf("server %d: %d at a time of %d", i, most, started)
		}
		if n := pools[i].Waiting(); n != 0 {
			t.Errorf("server %d: %d wait", i, n)
		}
	}
	if _, most, _ := all.counts(); most > stormBudget {
		t.Errorf("%d at a time in all", most)
	}
	stop()
	own.Wait()
	for _, p := range pools {
		closePool(t, p)
	}
	if running, _, _ := all.counts(); running != 0 {
		t.Errorf("%d run at the end", running)
	}
	whole(t, budget)
}

// visit is what one client does: it gets a link, uses it, and leaves it in one of the ways there are.
func visit(t *testing.T, p *pool.Pool, r *rand.Rand) {
	l, err := someLink(p, r)
	if err != nil {
		t.Errorf("no link: %v", err)
		return
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Duration(1+r.IntN(400))*time.Millisecond)
	defer stop()
	began := time.Now()
	c, err := l.Conn(ctx)
	if d := time.Since(began); d > 300*time.Millisecond {
		t.Errorf("answered after %v", d)
	}
	if err == nil {
		m, _ := framing.Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`))
		if ticket, err := c.Dispatch(ctx, &bridge.Exchange{Message: m, Method: mcp.ToolsCall, Era: mcp.Modern, Sink: sink{}}); err == nil {
			time.Sleep(time.Duration(r.IntN(8)) * time.Millisecond)
			ticket.Cancel(nil)
		}
	}
	switch r.IntN(6) {
	case 0:
		crashSome(p, l)
	case 1:
		_ = l.Halt(t.Context())
	case 2:
		time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
		_, _ = l.Conn(ctx)
	case 3:
		if r.IntN(20) == 0 {
			_ = p.Halt(t.Context())
		}
	}
	if r.IntN(3) > 0 {
		p.Release(l)
	}
}

func someLink(p *pool.Pool, r *rand.Rand) (*bridge.Link, *bridge.Error) {
	switch r.IntN(4) {
	case 0:
		return p.Single(modern("a"), nil)
	case 1:
		return p.Shared(modern(bridge.Principal(fmt.Sprint(r.IntN(5)))), nil)
	}
	return p.Exclusive(nil, r.IntN(2) == 0)
}

func crashSome(p *pool.Pool, l *bridge.Link) {
	for _, e := range p.Entries() {
		if v, ok := e.Back.(*server); ok && e.Link == l {
			if proc := v.current(); proc != nil {
				proc.crash()
			}
		}
	}
}

// whole checks that all seats of a budget are free.
func whole(t *testing.T, budget *pool.Budget) {
	t.Helper()
	p := newPool(t, &shop{}, pool.Config{Max: stormBudget, Budget: budget})
	defer closePool(t, p)
	for range stormBudget {
		if got := <-opening(t, exclusive(t, p)); got.err != nil || got.took != 0 {
			t.Errorf("a seat is lost: %+v", got)
		}
	}
}
