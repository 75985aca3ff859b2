package pool

import (
	"context"
	"time"
)

// Run ends shared links that have been idle for too long, and keeps spares started, until ctx ends.
func (p *Pool) Run(ctx context.Context) {
	pulse := max(p.cfg.Yield/10, time.Second)
	if p.cfg.Idle > 0 {
		pulse = min(pulse, max(p.cfg.Idle/10, time.Second))
	}
	t := time.NewTicker(pulse)
	defer t.Stop()
	for {
		var retry <-chan time.Time
		if again := p.fill(); again > 0 {
			retry = time.After(again)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.more:
		case <-retry:
		case now := <-t.C:
			p.observe()
			p.sweep(now)
		}
	}
}

// observe asks the links with a process what they are used for: time counts as unused from the last time a link was found busy.
func (p *Pool) observe() {
	for _, t := range p.seatedTenants() {
		t.link.Use()
	}
}

// seatedTenants returns the links that have a process and are not on their way out.
func (p *Pool) seatedTenants() (list []*tenant) {
	b := p.cfg.Budget
	b.mu.Lock()
	defer b.mu.Unlock()
	for t := range b.seated {
		if t.pool == p && !t.ending {
			list = append(list, t)
		}
	}
	return list
}

// sweep ends shared links with no calls, no listeners and no sessions for Config.Idle (translation 14.4). The process of an
// exclusive link ends with its session, or when another needs the seat.
func (p *Pool) sweep(now time.Time) {
	if p.cfg.Idle < 0 || p.cfg.Keep {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.shared {
		if since, idle := t.idle(now); idle && now.Sub(since) >= p.cfg.Idle {
			p.unshareLocked(t)
			p.end(t, func(error) {})
		}
	}
}
