package pool

import (
	"context"
	"fmt"
	"time"

	"mcpbridge/bridge"
)

// begin starts an opening. A process that is being ended to make room goes first: its seat is another's.
func (t *tenant) begin(ctx context.Context) error {
	b := t.budget()
	for {
		b.mu.Lock()
		yielding := t.yielding
		switch {
		case t.ending || t.pool.seats.stopping:
			b.mu.Unlock()
			return t.pool.stopping()
		case yielding == nil:
			t.opening = true
			t.supersedeLocked() // a link that opens again keeps the seat it still has
			b.mu.Unlock()
			return nil
		}
		b.mu.Unlock()
		select {
		case <-yielding:
		case <-ctx.Done():
			return fmt.Errorf("cannot start the server while its last process is being ended: %w", context.Cause(ctx))
		}
	}
}

// stay ends an opening that got no seat.
func (t *tenant) stay() {
	b := t.budget()
	b.mu.Lock()
	defer b.mu.Unlock()
	t.opening = false
	t.settleLocked()
}

// sit gets a seat, and what to open: the link's own back, or the first time a spare's.
func (t *tenant) sit(ctx context.Context) (bridge.Back, error) {
	s, c, refused := t.ask()
	switch {
	case refused != nil:
		return nil, refused
	case s != nil:
		s.release(ctx)
	case c != nil:
		if err := t.await(ctx, c); err != nil {
			return nil, err
		}
	}
	return t.furnish()
}

// ask takes a seat: the one the link has, that of a spare with its process, or a free one. Else it has the link wait.
func (t *tenant) ask() (*spare, *claim, *bridge.Error) {
	b, p := t.budget(), t.pool
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case t.ending || p.seats.stopping:
		return nil, nil, p.stopping()
	case t.taken:
		return nil, nil, nil
	case t.back == nil && len(p.seats.spares) > 0:
		return t.inheritLocked(), nil, nil
	case b.roomLocked(p, 0):
		t.takeLocked()
		return nil, nil, nil
	case p.seats.waiting >= p.cfg.Waiting:
		return nil, nil, p.fullLocked(tooMany(p.seats.waiting))
	}
	return nil, b.queueLocked(t), nil
}

// furnish makes the link's back, if it has none yet.
func (t *tenant) furnish() (bridge.Back, error) {
	b := t.budget()
	b.mu.Lock()
	back := t.back
	b.mu.Unlock()
	if back != nil {
		return back, nil
	}
	back = t.pool.cfg.Back()
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.ending { // Close has been here and closed nothing
		return nil, t.pool.stopping()
	}
	t.back = back
	return back, nil
}

// await waits for a seat, and makes room for it.
func (t *tenant) await(ctx context.Context, c *claim) error {
	b, began := t.budget(), time.Now()
	limit := time.NewTimer(t.pool.cfg.Wait)
	defer limit.Stop()
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-c.done:
			if c.err != nil {
				return c.err
			}
			return nil
		case <-look.C:
			look.Reset(b.makeRoom(c))
		case <-c.again:
			look.Reset(b.makeRoom(c))
		case <-limit.C:
			b.giveUp(c, waited(t.pool.cfg.Wait))
		case <-ctx.Done():
			b.giveUp(c, waited(time.Since(began)))
			<-c.done
			if c.err != nil {
				return c.err
			}
			return nil
		}
	}
}

// life is the time from the end of an opening to the end of what it started.
type life struct {
	ended chan struct{} // closed when the process is gone
	ctx   context.Context
	stop  context.CancelFunc // nobody needs to know any more
}

// follow ends an opening, and sees what it has started to its end. c is nil where it failed.
func (t *tenant) follow(c *bridge.Conn) {
	b := t.budget()
	b.mu.Lock()
	defer b.mu.Unlock()
	t.opening = false
	t.given.Store(time.Now().UnixNano()) // whoever waited for it has not used it yet
	if t.ending {                        // whoever ends the link sees to its end
		return
	}
	l := &life{ended: make(chan struct{})}
	l.ctx, l.stop = context.WithCancel(context.Background())
	t.life = l
	back := t.back
	t.pool.wg.Go(func() {
		defer l.stop()
		if t.gone(l, c, back) {
			t.bury(l)
		}
	})
}

// revival is how long the seat of a link that is opened again by itself, because somebody listens, is kept for it.
const revival = time.Second

// gone waits until nothing of a connection runs. It returns false if nobody needs to know any more.
func (t *tenant) gone(l *life, c *bridge.Conn, back bridge.Back) bool {
	if c != nil {
		select {
		case <-c.Done():
		case <-l.ctx.Done():
			return false
		}
		if t.revives() {
			_ = sleep(l.ctx, revival)
		}
	}
	if g, ok := back.(lingering); ok {
		_ = g.Gone(l.ctx) // it fails with its context only
	}
	return l.ctx.Err() == nil
}

// revives reports whether the link is about to be opened again by itself.
func (t *tenant) revives() bool {
	b := t.budget()
	b.mu.Lock()
	held := t.yielding != nil || t.ending
	b.mu.Unlock()
	return !held && (t.pool.cfg.Keep && t.kind != KindSession && t.kind != KindRequest || t.link.Use().Listening)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// bury ends a life whose process is gone.
func (t *tenant) bury(l *life) {
	b := t.budget()
	b.mu.Lock()
	defer b.mu.Unlock()
	close(l.ended)
	if t.life == l {
		t.life = nil
		t.settleLocked()
	}
}

// supersedeLocked forgets a life: another begins, or none will.
func (t *tenant) supersedeLocked() {
	if t.life != nil {
		t.life.stop()
		t.life = nil
	}
}
