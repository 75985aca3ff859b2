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
	for {
		n := b.used.Load()
		if n >= b.max {
			return false
		}
		if b.used.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (b *Budget) release() { b.used.Add(-1) }

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
	shared map[Key]*entry            // guarded by mu
	own    map[*bridge.Link]struct{} // guarded by mu
	ending []*seat                   // guarded by mu; of links on their way out whose place nobody has taken yet
	after  map[*bridge.Link]*seat    // guarded by mu; whose place a link has taken over
	closed bool                      // guarded by mu
}

// entry is a shared link. given is when it was last handed out: until whoever got it has used it, it does not look idle.
type entry struct {
	link  *bridge.Link
	given time.Time
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
	return &Pool{cfg: cfg, ctx: ctx, shared: map[Key]*entry{}, own: map[*bridge.Link]struct{}{}, after: map[*bridge.Link]*seat{}}
}

// Shared returns the link of a key, a new one the first time. params is the initialize request of the bridge's own.
func (p *Pool) Shared(k Key, params []byte) (*bridge.Link, *bridge.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.shared[k]; e != nil {
		e.given = time.Now()
		return e.link, nil
	}
	l, err := p.newLocked(k.Era, params, false)
	if err == nil {
		p.shared[k] = &entry{l, time.Now()}
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
	if p.closed {
		return nil, bridge.Unavailable("server " + p.cfg.Name + " is being stopped")
	}
	after, err := p.seatLocked()
	if err != nil {
		return nil, err
	}
	cfg := p.cfg.Link
	cfg.Want, cfg.Params, cfg.Exclusive, cfg.Back = want, params, exclusive, p.cfg.Back()
	if after == nil {
		return bridge.NewLink(p.ctx, cfg), nil
	}
	cfg.Back = &queued{cfg.Back, after.gone}
	l := bridge.NewLink(p.ctx, cfg)
	p.after[l] = after
	return l, nil
}

func (p *Pool) full(setting string, n int) *bridge.Error {
	return &bridge.Error{Status: 503, Code: mcp.CodeInternal, Reason: bridge.ReasonOverload, Retry: 5,
		Message: "server " + p.cfg.Name + " already runs in as many processes as it may (" + setting + ": " + strconv.Itoa(n) + ")"}
}

// Release ends an exclusive link. It returns at once; Close waits for it.
func (p *Pool) Release(l *bridge.Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.own[l]; ok {
		delete(p.own, l)
		p.endLocked(l, func(error) {}) // what survives is reported by whoever runs the server
	}
}

// endLocked ends a link that is handed out no more. Its place is free when the link is gone, and the one before it.
func (p *Pool) endLocked(l *bridge.Link, done func(error)) {
	s, before := &seat{gone: make(chan struct{})}, p.after[l]
	delete(p.after, l)
	p.ending = append(p.ending, s)
	p.wg.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), p.cfg.Grace)
		defer stop()
		done(l.Close(ctx))
		if before != nil {
			<-before.gone
		}
		p.leave(s)
	})
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
	for k, e := range p.shared {
		since, idle := e.link.Idle()
		if since.Before(e.given) {
			since = e.given
		}
		if idle && now.Sub(since) >= p.cfg.Idle {
			delete(p.shared, k)
			p.endLocked(e.link, func(error) {})
		}
	}
}

// Len is the number of links in use; those on their way out do not count.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lenLocked()
}

func (p *Pool) lenLocked() int { return len(p.shared) + len(p.own) }

// Close ends all links and waits for them. It returns what could not be ended.
func (p *Pool) Close() error {
	var mu sync.Mutex
	var errs []error
	note := func(err error) {
		mu.Lock()
		errs = append(errs, err)
		mu.Unlock()
	}
	p.mu.Lock()
	p.closed = true
	for k, e := range p.shared {
		delete(p.shared, k)
		p.endLocked(e.link, note)
	}
	for l := range p.own {
		delete(p.own, l)
		p.endLocked(l, note)
	}
	p.mu.Unlock()
	p.wg.Wait()
	return errors.Join(errs...)
}
