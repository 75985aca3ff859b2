package pool

import (
	"slices"
	"sync"

	"mcpbridge/bridge"
)

// Budget is the number of processes that all servers of a bridge may have together. It knows who has a seat and who waits for one
// in all pools that share it.
type Budget struct {
	mu      sync.Mutex
	max     int                  // guarded by mu
	used    int                  // guarded by mu; seats taken
	leaving int                  // guarded by mu; of these, how many are free soon
	pools   []*Pool              // guarded by mu
	seated  map[*tenant]struct{} // guarded by mu; links with a seat
	queue   []*claim             // guarded by mu; oldest first
}

// NewBudget returns a budget. Default 64.
func NewBudget(processes int) *Budget {
	return &Budget{max: or(processes, 64), seated: map[*tenant]struct{}{}}
}

// Resize changes the number of processes, 0 means the default. Where more run, none is started until enough have ended.
func (b *Budget) Resize(processes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.max = or(processes, 64)
	b.dispatchLocked()
}

// Used is the number of processes there are, those included that are being started or ended.
func (b *Budget) Used() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

func (b *Budget) join(p *Pool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pools = append(b.pools, p)
}

func (b *Budget) part(p *Pool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pools = slices.DeleteFunc(b.pools, func(o *Pool) bool { return o == p })
}

// seats is what a pool has of the Budget. All of it is guarded by the Budget's lock.
type seats struct {
	used, leaving int
	waiting       int
	spares        []*spare // that can be taken, oldest first
	spareless     retry
	stopping      bool // nothing is opened any more
}

// place is a seat, or the lack of one, of a process that is there, comes or goes. It is guarded by the Budget's lock.
type place struct {
	pool    *Pool
	taken   bool
	leaving bool // taken, and free soon
}

// roomLocked reports whether a pool has a seat free, and spare more.
func (b *Budget) roomLocked(p *Pool, spare int) bool {
	return p.seats.used+spare < p.cfg.Max && b.used+spare < b.max
}

func (b *Budget) takeLocked(s *place) {
	s.taken = true
	s.pool.seats.used++
	b.used++
}

// leaveLocked marks a seat as free soon.
func (b *Budget) leaveLocked(s *place) {
	if s.taken && !s.leaving {
		s.leaving = true
		s.pool.seats.leaving++
		b.leaving++
	}
}

// stayLocked takes leaveLocked back.
func (b *Budget) stayLocked(s *place) {
	if s.leaving {
		s.leaving = false
		s.pool.seats.leaving--
		b.leaving--
	}
}

// freeLocked gives a seat back, and on to who waits.
func (b *Budget) freeLocked(s *place) {
	if !s.taken {
		return
	}
	b.stayLocked(s)
	s.taken = false
	s.pool.seats.used--
	b.used--
	b.dispatchLocked()
}

// dispatchLocked gives free seats to those who wait, in their order; one whose server has as many as it may does not hold up
// the others. Who goes on waiting looks again whether enough seats are on their way out.
func (b *Budget) dispatchLocked() {
	for _, c := range slices.Clone(b.queue) {
		if b.roomLocked(c.t.pool, 0) {
			c.t.takeLocked()
			b.settleLocked(c, nil)
		} else {
			c.look()
		}
	}
	for _, p := range b.pools {
		p.wantSpares()
	}
}

// claim is an opening that waits for a seat.
type claim struct {
	t     *tenant
	err   *bridge.Error // why it is refused; written before done is closed
	done  chan struct{} // closed when it has its seat, or is refused
	again chan struct{} // full when it should look for room again
}

func (c *claim) look() {
	select {
	case c.again <- struct{}{}:
	default:
	}
}

func (b *Budget) queueLocked(t *tenant) *claim {
	c := &claim{t: t, done: make(chan struct{}), again: make(chan struct{}, 1)}
	b.queue = append(b.queue, c)
	t.pool.seats.waiting++
	return c
}

// settleLocked ends the wait of a claim, with a seat or an error.
func (b *Budget) settleLocked(c *claim, err *bridge.Error) {
	i := slices.Index(b.queue, c)
	if i < 0 {
		return
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	c.t.pool.seats.waiting--
	c.err = err
	close(c.done)
}

// giveUp ends the wait of a claim that has waited long enough, unless it was settled meanwhile.
func (b *Budget) giveUp(c *claim, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settleLocked(c, c.t.pool.fullLocked(why))
	b.lookLocked()
}

// refuseLocked ends the wait of those that are being stopped.
func (b *Budget) refuseLocked(stopped func(*tenant) bool) {
	for _, c := range slices.Clone(b.queue) {
		if stopped(c.t) {
			b.settleLocked(c, c.t.pool.stopping())
		}
	}
	b.lookLocked()
}

// lookLocked has all that wait look for room again: a seat that was to be another's may be theirs, or need not come.
func (b *Budget) lookLocked() {
	for _, c := range b.queue {
		c.look()
	}
}
