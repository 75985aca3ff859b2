package pool

import (
	"context"
	"slices"
	"time"
)

// makeRoom begins to end processes for a claim, until enough are being ended for it and those before it. It returns when to look
// again, if nothing happens before.
func (b *Budget) makeRoom(c *claim) time.Duration {
	seated := b.search(c)
	offers, later := offersOf(seated, c.t.pool.cfg.Yield)
	for _, t := range offers {
		if !b.rest(c, t) {
			break
		}
	}
	return later
}

// offersOf returns those that have been unused for long enough, the longest first, and when the next of the others may be. One that
// begins to be used now, or to run, is one of them after later at the earliest.
func offersOf(seated []*tenant, later time.Duration) ([]*tenant, time.Duration) {
	type offer struct {
		t     *tenant
		since time.Time
	}
	var offers []offer
	now := time.Now()
	for _, t := range seated {
		u, left := t.use(), t.pool.cfg.Yield
		if !u.Busy() {
			left -= now.Sub(u.Since)
		}
		if left > 0 {
			later = min(later, left)
			continue
		}
		offers = append(offers, offer{t, u.Since})
	}
	slices.SortFunc(offers, func(x, y offer) int { return x.since.Compare(y.since) })
	list := make([]*tenant, len(offers))
	for i, o := range offers {
		list[i] = o.t
	}
	return list, later
}

// search returns the links whose processes could make room for a claim, none if enough seats are on their way out. Spares are
// ended here, since nobody needs to be asked.
func (b *Budget) search(c *claim) (seated []*tenant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := c.ownLocked()
	for _, p := range b.pools {
		for !b.coveredLocked(c) && len(p.seats.spares) > 0 && (!own || p == c.t.pool) {
			p.seats.spares[len(p.seats.spares)-1].yieldLocked() // the youngest: it hides the least
		}
	}
	if b.coveredLocked(c) {
		return nil
	}
	for t := range b.seated {
		if t.restableLocked() && (!own || t.pool == c.t.pool) {
			seated = append(seated, t)
		}
	}
	return seated
}

// ownLocked reports whether only an end of its own server's processes helps a claim.
func (c *claim) ownLocked() bool { return c.t.pool.seats.used >= c.t.pool.cfg.Max }

// coveredLocked reports whether a claim and those before it that wait for the same need no further seat. A claim that has been
// settled needs none.
func (b *Budget) coveredLocked(c *claim) bool {
	own, leaving, ahead := c.ownLocked(), b.leaving, 0
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

// rest begins to end the process of a link that nobody has used for a while, and reports whether the claim may need more.
func (b *Budget) rest(c *claim, t *tenant) (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.coveredLocked(c) {
		return false
	}
	if !t.restableLocked() {
		return true
	}
	t.yielding = make(chan struct{})
	b.leaveLocked(&t.place)
	l := t.life
	t.pool.wg.Go(func() { t.yield(l) })
	return !b.coveredLocked(c)
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
