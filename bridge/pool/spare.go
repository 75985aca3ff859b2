package pool

import (
	"context"
	"slices"
	"time"

	"mcpbridge/bridge"
)

// warmable is a back that can start its process ahead of use. Warm keeps one started until ctx ends; then Open uses it.
type warmable interface {
	Warm(ctx context.Context) error
}

// retryTime is when a spare that could not be kept is tried again, unless a new link is a reason to before.
const retryTime = 30 * time.Second

// retry tells whether spares are tried. The zero value: they are.
type retry struct {
	never bool // the server's backs cannot be started ahead of use
	at    time.Time
}

// spare is a process started ahead of use.
type spare struct {
	place
	back  bridge.Back
	ctx   context.Context
	stop  context.CancelFunc
	done  chan struct{} // closed when Warm has returned
	since time.Time
}

// wantSpares has Run look whether a spare can be started.
func (p *Pool) wantSpares() {
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// retrySpares has a spare that failed tried again.
func (p *Pool) retrySpares() {
	if p.cfg.Spare <= 0 {
		return
	}
	p.cfg.Budget.mu.Lock()
	p.seats.spareless.at = time.Time{}
	p.cfg.Budget.mu.Unlock()
	p.wantSpares()
}

// fill starts the spares that are missing, and tells when to try again, zero if that is not a matter of time.
func (p *Pool) fill() time.Duration {
	for {
		s, again := p.reserve()
		if s == nil {
			return again
		}
		s.back = p.cfg.Back()
		w, ok := s.back.(warmable)
		if ok && p.enlist(s, w) {
			continue
		}
		s.stop()
		_ = s.back.Close(context.Background()) // nothing of it runs
		p.cfg.Budget.mu.Lock()
		p.seats.spareless.never = !ok
		p.cfg.Budget.freeLocked(&s.place)
		p.cfg.Budget.mu.Unlock()
		return 0
	}
}

// reserve takes a seat for a spare, nil if none is missing or there is none for it. The last free one is for those who ask.
func (p *Pool) reserve() (*spare, time.Duration) {
	b := p.cfg.Budget
	b.mu.Lock()
	defer b.mu.Unlock()
	st := &p.seats
	switch left := time.Until(st.spareless.at); {
	case st.stopping || st.spareless.never || len(st.spares) >= p.cfg.Spare:
		return nil, 0
	case left > 0:
		return nil, left
	case !b.roomLocked(p, 1):
		return nil, 0
	}
	s := &spare{place: place{pool: p}, done: make(chan struct{}), since: time.Now()}
	s.ctx, s.stop = context.WithCancel(p.ctx)
	b.takeLocked(&s.place)
	return s, 0
}

// enlist makes a spare one that can be taken, and starts it.
func (p *Pool) enlist(s *spare, w warmable) bool {
	b := p.cfg.Budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.seats.stopping {
		return false
	}
	p.seats.spares = append(p.seats.spares, s)
	p.wg.Go(func() { s.warm(w) })
	return true
}

// warm keeps the spare started until it is taken, or ended. One that fails by itself is ended.
func (s *spare) warm(w warmable) {
	err := w.Warm(s.ctx)
	close(s.done)
	b := s.pool.cfg.Budget
	b.mu.Lock()
	failed := err != nil && s.ctx.Err() == nil && s.unlistLocked()
	if failed {
		s.pool.seats.spareless.at = time.Now().Add(retryTime)
		b.leaveLocked(&s.place)
	}
	b.mu.Unlock()
	if failed {
		_ = s.end() // it could not be started: nothing is left to report
	}
}

// unlistLocked has the spare taken by nobody else, and reports whether nobody has.
func (s *spare) unlistLocked() bool {
	i := slices.Index(s.pool.seats.spares, s)
	if i >= 0 {
		s.pool.seats.spares = slices.Delete(s.pool.seats.spares, i, i+1)
	}
	return i >= 0
}

// inheritLocked gives a link the oldest spare's seat and back.
func (t *tenant) inheritLocked() *spare {
	s := t.pool.seats.spares[0]
	s.unlistLocked()
	s.taken, t.taken, t.back = false, true, s.back
	t.budget().seated[t] = struct{}{}
	t.pool.wantSpares()
	return s
}

// release lets go of a spare's process for whoever has taken it.
func (s *spare) release(ctx context.Context) {
	s.stop()
	select {
	case <-s.done:
	case <-ctx.Done():
	}
}

// yieldLocked begins to end a spare.
func (s *spare) yieldLocked() {
	s.unlistLocked()
	s.pool.cfg.Budget.leaveLocked(&s.place)
	s.pool.wg.Go(func() { _ = s.end() }) // what survives is reported by whoever runs the server
}

// end ends a spare nobody can take any more.
func (s *spare) end() error {
	s.stop()
	<-s.done
	ctx, stop := context.WithTimeout(context.Background(), s.pool.cfg.Grace)
	defer stop()
	err := s.back.Close(ctx)
	b := s.pool.cfg.Budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.freeLocked(&s.place)
	return err
}
