package pool

import (
	"context"
	"errors"
	"sync"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

// Halt ends all processes at the same time, those of spares too, and waits for that. The links stay: their next message, or
// Run where it is a spare's, starts them anew. It returns what could not be ended.
func (p *Pool) Halt(ctx context.Context) error {
	var f failures
	var wg sync.WaitGroup
	for _, s := range p.dismiss() {
		wg.Go(func() { f.add(s.end()) })
	}
	for _, t := range p.seatedTenants() {
		wg.Go(func() { f.add(t.link.Halt(ctx)) })
	}
	wg.Wait()
	p.retrySpares()
	return f.err()
}

// dismiss takes the spares off the list of those that can be taken.
func (p *Pool) dismiss() []*spare {
	b := p.cfg.Budget
	b.mu.Lock()
	defer b.mu.Unlock()
	list := p.seats.spares
	p.seats.spares = nil
	for _, s := range list {
		b.leaveLocked(&s.place)
	}
	return list
}

// drainPoll is how often Drain looks whether the work is done.
const drainPoll = 20 * time.Millisecond

// Drain refuses new links and openings with reason stopping, those that wait for a seat too, waits until no link has a call open or
// ctx ends, and closes the pool. Clients that listen, and sessions, do not hold it up.
func (p *Pool) Drain(ctx context.Context) error {
	p.refuse()
	t := time.NewTicker(drainPoll)
	defer t.Stop()
	for p.working() {
		select {
		case <-t.C:
		case <-ctx.Done():
			return p.Close()
		}
	}
	return p.Close()
}

// refuse has nothing new begun.
func (p *Pool) refuse() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	b := p.cfg.Budget
	b.mu.Lock()
	defer b.mu.Unlock()
	p.seats.stopping = true
	b.refuseLocked(func(t *tenant) bool { return t.pool == p })
}

func (p *Pool) working() bool {
	for _, t := range p.seatedTenants() {
		if calls(t.link) > 0 {
			return true
		}
	}
	return false
}

// calls is the number of requests that end by themselves.
func calls(l *bridge.Link) int {
	n := l.Use().Calls
	if c := l.Live(); c != nil && n > 0 {
		_, listens := c.Youngest(func(x *bridge.Exchange) bool { return x.Method == mcp.Listen })
		n -= listens
	}
	return n
}

// Close ends all links and spares and waits for them. It returns what could not be ended. What waits for a seat is refused with
// reason stopping.
func (p *Pool) Close() error {
	p.refuse()
	var f failures
	p.mu.Lock()
	for _, list := range [...]map[*bridge.Link]*tenant{p.own, p.single} {
		for l, t := range list {
			delete(list, l)
			p.end(t, f.add)
		}
	}
	for _, t := range p.shared {
		p.unshareLocked(t)
		p.end(t, f.add)
	}
	p.mu.Unlock()
	for _, s := range p.dismiss() {
		p.wg.Go(func() { f.add(s.end()) })
	}
	p.wg.Wait()
	p.cfg.Budget.part(p)
	return f.err()
}

// failures collects errors from several goroutines.
type failures struct {
	mu   sync.Mutex
	errs []error
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, err)
}

func (f *failures) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.errs...)
}
