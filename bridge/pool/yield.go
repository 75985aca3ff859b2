package pool

import (
	"context"
	"slices"
	"time"
)

// makeRoom begins to end a process for a claim, unless enough are being ended for those who wait. It returns when to look
// again, if nothing happens before.
func (b *Budget) makeRoom(c *claim) time.Duration {
	later := c.t.pool.cfg.Yield // whoever begins to be used now can make room then
	seated, enough := b.search(c)
	if enough {
		return later
	}
	type offer struct {
		t     *tenant
		since time.Time
	}
	var offers []offer
	now := time.Now()
	for _, t := range seated {
		u, yield := t.use(), t.pool.cfg.Yield
		left := yield
		if !u.Busy() {
			left = u.Since.Add(yield).Sub(now)
		}
		if left > 0 {
			later = min(later, left)
			continue
		}
		offers = append(offers, offer{t, u.Since})
	}
	slices.SortFunc(offers, func(x, y offer) int { return x.since.Compare(y.since) })
	for _, o := range offers {
		if b.rest(o.t) {
			break
		}
	}
	return later
}

// search returns the links whose processes could make room for a claim, unless enough seats are on their way out. A spare
// is ended here, since nobody needs to be asked.
func (b *Budget) search(c *claim) (seated []*tenant, enough bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := c.t.pool.seats.used >= c.t.pool.cfg.Max // only its own server's processes help
	if b.coveredLocked(c, own) {
		return nil, true
	}
	for _, p := range b.pools {
		if n := len(p.seats.spares); n > 0 && (!own || p == c.t.pool) {
			p.seats.spares[n-1].yieldLocked() // the youngest: it hides the least
			return nil, true
		}
	}
	for t := range b.seated {
		if t.restableLocked() && (!own || t.pool == c.t.pool) {
			seated = append(seated, t)
		}
	}
	return seated, false
}

// coveredLocked reports whether a claim and those before it that wait for the same need no further seat. A claim that has been
// settled needs none.
func (b *Budget) coveredLocked(c *claim, own bool) bool {
	leaving, ahead := b.leaving, 0
	if own {
		leaving = c.t.pool.seats.leaving
	}
	for _, o := range b.queue {
		p := o.t.pool
		if own && p == c.t.pool || !own && p.seats.used < p.cfg.Max {
			ahead++
		}
		if o == c {
			return leaving >= ahead
		}
	}
	return true
}

// restableLocked reports whether the link has a process that serves, and that nobody is ending.
func (t *tenant) restableLocked() bool {
	return t.taken && t.life != nil && !t.opening && t.halting == 0 && t.yielding == nil && !t.ending
}

// rest begins to end the process of a link that nobody has used for a while.
func (b *Budget) rest(t *tenant) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !t.restableLocked() {
		return false
	}
	t.yielding = make(chan struct{})
	b.leaveLocked(&t.place)
	l := t.life
	t.pool.wg.Go(func() { t.yield(l) })
	return true
}

// yield ends the process. Openings of the link wait meanwhile, so that they cannot mistake their new process for the old one,
// nor can the end hit it.
func (t *tenant) yield(l *life) {
	ctx, stop := context.WithTimeout(context.Background(), t.pool.cfg.Grace)
	defer stop()
	rested, _ := t.link.Rest(ctx, t.pool.cfg.Yield) // what survives is reported by whoever runs the server
	if rested {
		select {
		case <-l.ended:
		case <-t.over:
		}
	}
	b := t.budget()
	b.mu.Lock()
	defer b.mu.Unlock()
	close(t.yielding)
	t.yielding = nil
	switch {
	case t.ending: // whoever ends the link sees to the seat
	case rested:
		t.freeLocked()
	default: // somebody was faster
		b.stayLocked(&t.place)
		t.settleLocked()
		b.lookLocked()
	}
}
