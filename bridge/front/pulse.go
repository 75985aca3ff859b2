package front

import (
	"sync"
	"time"
)

// pulse wakes everybody who waits, a few times in the shortest wait anybody needs. A timer for each request would cost every
// short call the insertion of one, and often the waking of the thread that watches timers and sockets.
type pulse struct {
	period time.Duration

	mu    sync.Mutex
	beat  chan struct{} // closed at the next beat
	armed bool
}

func newPulse(period time.Duration) *pulse { return &pulse{period: period, beat: make(chan struct{})} }

// next returns a channel that is closed at the next beat, at most one period from now. Nothing runs while nobody asks.
func (p *pulse) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed {
		p.armed = true
		time.AfterFunc(p.period, p.fire)
	}
	return p.beat
}

func (p *pulse) fire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.beat)
	p.beat, p.armed = make(chan struct{}), false
}

// due reports at a beat whether a wait of that length has to end before the next one.
func (p *pulse) due(since time.Time, wait time.Duration) bool {
	return time.Since(since) >= wait-p.period
}
