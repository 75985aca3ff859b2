package procman

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Policy says when a process may be started again and how patiently it is stopped. Zero fields mean the defaults.
type Policy struct {
	Initial    time.Duration // first interval; default 500ms
	Max        time.Duration // longest interval, jitter included; default 30s
	Multiplier float64       // growth; default 2, below 1 means 1
	Jitter     float64       // an interval i becomes one of [i-Jitter*i, i+Jitter*i]; default 0.5, at most 1, negative: none
	ResetAfter time.Duration // a run of this length makes the next interval the first again; default 30s
	// Patience is the longest rest that Start waits out; default 1s, negative: none.
	Patience time.Duration
	// Proof is how long a process has to run for its end to concern its own supervisor alone. One that ends sooner counts for the
	// shared Breaker too, whatever came up: servers that leave right behind their handshake would else be started for each new
	// supervisor without bound. Default 0: nothing is asked.
	Proof time.Duration
	// Breaker is shared by all supervisors of one server; nil: none. With one, Healthy has to be called for each process
	// that has come up.
	Breaker *Breaker
	Grace   Grace
}

// Defaults of [Policy].
const (
	DefaultInitial    = 500 * time.Millisecond
	DefaultMax        = 30 * time.Second
	DefaultMultiplier = 2
	DefaultJitter     = 0.5
	DefaultResetAfter = 30 * time.Second
	DefaultPatience   = time.Second
)

func (p Policy) withDefaults() Policy {
	p.Initial = orDefault(p.Initial, DefaultInitial)
	p.Max = max(orDefault(p.Max, DefaultMax), p.Initial)
	p.ResetAfter = orDefault(p.ResetAfter, DefaultResetAfter)
	if p.Multiplier == 0 {
		p.Multiplier = DefaultMultiplier
	}
	p.Multiplier = max(p.Multiplier, 1)
	if p.Jitter == 0 {
		p.Jitter = DefaultJitter
	}
	p.Jitter = min(max(p.Jitter, 0), 1)
	p.Patience = orDefault(p.Patience, DefaultPatience)
	return p
}

// pacer says how far apart starts have to be. Intervals come from backoff; they never run out (MaxElapsedTime 0), for a
// server is never dead for good (case 24).
type pacer struct {
	next       backoff.ExponentialBackOff
	max        time.Duration
	resetAfter time.Duration
}

func newPacer(p Policy) pacer {
	b := backoff.ExponentialBackOff{
		InitialInterval:     p.Initial,
		RandomizationFactor: p.Jitter,
		Multiplier:          p.Multiplier,
		MaxInterval:         p.Max,
		MaxElapsedTime:      0,
		Stop:                backoff.Stop,
		Clock:               backoff.SystemClock,
	}
	b.Reset()
	return pacer{next: b, max: p.Max, resetAfter: p.ResetAfter}
}

// after returns how long to wait now for the next start when the last one was ran ago. The interval counts from start
// to start: a server that ran longer than the interval starts again at once, one that ends right away has to wait.
func (p *pacer) after(ran time.Duration) time.Duration {
	if ran >= p.resetAfter {
		p.next.Reset()
	}
	return max(p.interval()-ran, 0)
}

// interval returns the next interval.
func (p *pacer) interval() time.Duration {
	return min(p.next.NextBackOff(), p.max) // the library caps the interval before it adds the jitter
}

// reset makes the next interval the first again.
func (p *pacer) reset() { p.next.Reset() }
