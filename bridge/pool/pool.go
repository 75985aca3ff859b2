// Package pool decides which link serves whom: one for each legacy session, for each principal, or for all, as the server's
// isolation says. It bounds how many servers run and ends links nobody needs. It knows neither fronts nor how a server
// is reached.
package pool

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

// Budget is the number of links, and so of processes, that all servers of a bridge may have together.
type Budget struct {
	max  int64
	used atomic.Int64
}

// NewBudget returns a budget. Default 64.
func NewBudget(links int) *Budget {
	if links == 0 {
		links = 64
	}
	return &Budget{max: int64(links)}
}

func (b *Budget) take() bool {
	if b.used.Add(1) > b.max {
		b.used.Add(-1)
		return false
	}
	return true
}

// Config describes the links of one server.
type Config struct {
	Name string
	// Max is how many links the server may have. Default 8.
	Max int
	// Idle is how long a link nobody uses keeps its server running. Default 10 minutes; negative: for ever.
	Idle time.Duration
	// Budget is shared by all servers.
	Budget *Budget
	// Back makes the back of a new link.
	Back func() bridge.Back
	// Link holds what all links of the server have in common.
	Link bridge.LinkConfig
	// Grace bounds the end of one link. Default 10 seconds.
	Grace time.Duration
}

// Key tells links apart that several clients share.
type Key struct {
	Era       mcp.Era
	Principal bridge.Principal // "" where all principals share
}

// Pool holds the links of one server.
type Pool struct {
	cfg Config
	ctx context.Context
	wg  sync.WaitGroup

	mu     sync.Mutex
	shared map[Key]*bridge.Link
	own    map[*bridge.Link]struct{}
	closed bool
}

// New returns an empty pool whose links live no longer than ctx.
func New(ctx context.Context, cfg Config) *Pool {
	if cfg.Max == 0 {
		cfg.Max = 8
	}
	if cfg.Idle == 0 {
		cfg.Idle = 10 * time.Minute
	}
	if cfg.Grace == 0 {
		cfg.Grace = 10 * time.Second
	}
	if cfg.Budget == nil {
		cfg.Budget = NewBudget(0)
	}
	return &Pool{cfg: cfg, ctx: ctx, shared: map[Key]*bridge.Link{}, own: map[*bridge.Link]struct{}{}}
}

// Shared returns the link of a key, a new one the first time. params is the initialize request of the bridge's own.
func (p *Pool) Shared(k Key, params []byte) (*bridge.Link, *bridge.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.shared[k]; l != nil {
		return l, nil
	}
	l, err := p.newLocked(k.Era, params, false)
	if err == nil {
		p.shared[k] = l
	}
	return l, err
}

// Exclusive returns a link for one legacy session. params is the client's own initialize request. Release ends it.
func (p *Pool) Exclusive(params []byte) (*bridge.Link, *bridge.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, err := p.newLocked(mcp.Legacy, params, true)
	if err == nil {
		p.own[l] = struct{}{}
	}
	return l, err
}

func (p *Pool) newLocked(want mcp.Era, params []byte, exclusive bool) (*bridge.Link, *bridge.Error) {
	switch {
	case p.closed:
		return nil, bridge.Unavailable("server " + p.cfg.Name + " is being stopped")
	case len(p.shared)+len(p.own) >= p.cfg.Max:
		return nil, p.full("maxProcesses of the server", p.cfg.Max)
	case !p.cfg.Budget.take():
		return nil, p.full("limits.processes", int(p.cfg.Budget.max))
	}
	cfg := p.cfg.Link
	cfg.Want, cfg.Params, cfg.Exclusive, cfg.Back = want, params, exclusive, p.cfg.Back()
	return bridge.NewLink(p.ctx, cfg), nil
}

func (p *Pool) full(setting string, n int) *bridge.Error {
	return &bridge.Error{Status: 503, Code: mcp.CodeInternal, Reason: bridge.ReasonOverload, Retry: 5,
		Message: "server " + p.cfg.Name + " already runs in as many processes as it may (" + setting + ": " + strconv.Itoa(n) + ")"}
}

// Release ends an exclusive link. It returns at once; Close waits for it.
func (p *Pool) Release(l *bridge.Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.own[l]; !ok {
		return
	}
	delete(p.own, l)
	p.wg.Go(func() { _ = p.end(l) })
}

func (p *Pool) end(l *bridge.Link) error {
	ctx, stop := context.WithTimeout(context.Background(), p.cfg.Grace)
	defer stop()
	err := l.Close(ctx)
	p.cfg.Budget.used.Add(-1)
	return err
}

// Run ends shared links that have been idle for too long, until ctx ends.
func (p *Pool) Run(ctx context.Context) {
	if p.cfg.Idle < 0 {
		return
	}
	t := time.NewTicker(max(p.cfg.Idle/10, time.Second))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			p.sweep(now)
		}
	}
}

func (p *Pool) sweep(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, l := range p.shared {
		if since, idle := l.Idle(); idle && now.Sub(since) >= p.cfg.Idle {
			delete(p.shared, k)
			p.wg.Go(func() { _ = p.end(l) })
		}
	}
}

// Len is the number of links.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.shared) + len(p.own)
}

// Close ends all links and waits for them.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	var errs []error
	var mu sync.Mutex
	stop := func(l *bridge.Link) {
		p.wg.Go(func() {
			if err := p.end(l); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	for k, l := range p.shared {
		delete(p.shared, k)
		stop(l)
	}
	for l := range p.own {
		delete(p.own, l)
		stop(l)
	}
	p.mu.Unlock()
	p.wg.Wait()
	return errors.Join(errs...)
}
