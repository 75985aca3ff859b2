package procman

import (
	"slices"
	"sync"
	"time"
)

// Defaults of [NewBreaker].
const (
	DefaultBreakerCount  = 5
	DefaultBreakerWindow = time.Minute
	DefaultBreakerPause  = 30 * time.Second
)

// Breaker stops the starts of a server that does not come up, for all supervisors that share it (case 24): each client's
// session may bring a supervisor of its own, with a back-off of its own that knows nothing of the others. The package
// comment has its states. All methods may be called at the same time; a nil Breaker never stops anything.
type Breaker struct {
	count         int
	window, pause time.Duration

	mu     sync.Mutex
	failed []failure // guarded by mu; the latest, none older than window
	since  time.Time // guarded by mu; when it opened, zero while it is closed
	until  time.Time // guarded by mu; the end of the pause, zero while it is closed
	trial  *pass     // guarded by mu; the start let through after the pause
	opener *pass     // guarded by mu; whose failure began the pause
	prior  time.Time // guarded by mu; until before that, zero if it was closed
	why    cause     // guarded by mu; of the last failure

	changed chan struct{} // guarded by mu; closed and replaced at each change
}

// pass is the leave to start one process.
type pass struct{ given time.Time }

// failure is a process that did not come up.
type failure struct {
	pass *pass
	at   time.Time
}

// cause is why a process is no more, or is no good.
type cause struct {
	exit *Exit
	err  error
}

// hold is a start that was refused by a breaker.
type hold struct {
	since, until time.Time // until is zero while a trial is under way
	count        int
	window       time.Duration
	why          cause
	changed      <-chan struct{}
}

// NewBreaker returns a closed breaker that opens for pause when count processes have failed to come up within window.
// A number below 1, or a time that is not positive, means the default.
func NewBreaker(count int, window, pause time.Duration) *Breaker {
	if count < 1 {
		count = DefaultBreakerCount
	}
	if window <= 0 {
		window = DefaultBreakerWindow
	}
	if pause <= 0 {
		pause = DefaultBreakerPause
	}
	return &Breaker{count: count, window: window, pause: pause, changed: make(chan struct{})}
}

// fresh is a closed breaker with the same limits, nil for nil.
func (b *Breaker) fresh() *Breaker {
	if b == nil {
		return nil
	}
	return NewBreaker(b.count, b.window, b.pause)
}

// Why says why nothing is started and when that may change, with the last line of the server's stderr: mask secrets before
// showing it. It is "" while a start may begin.
func (b *Breaker) Why() string {
	h := b.peek()
	if h == nil {
		return ""
	}
	held := h.told("")
	text := held.reason()
	if x := h.why.exit; x != nil && len(x.Stderr) > 0 {
		text += "; its last words: " + x.Stderr[len(x.Stderr)-1]
	}
	return text + "; " + held.outlook()
}

// Reset closes the breaker and forgets all failures: somebody has mended the server, or says so.
func (b *Breaker) Reset() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closeLocked()
}

// peek returns what a start would be told, nil if it could begin.
func (b *Breaker) peek() *hold {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since.IsZero() || b.trial == nil && !time.Now().Before(b.until) {
		return nil
	}
	return b.holdLocked()
}

func (b *Breaker) holdLocked() *hold {
	h := &hold{since: b.since, until: b.until, count: b.count, window: b.window, why: b.why, changed: b.changed}
	if b.trial != nil {
		h.until = time.Time{}
	}
	return h
}

// enter asks for leave to start a process. What is started ahead of use is never the one to find out whether the server
// works again: it would not be asked anything.
func (b *Breaker) enter(ahead bool) (*pass, *hold) {
	if b == nil {
		return nil, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	p := &pass{given: now}
	switch {
	case b.since.IsZero():
		return p, nil
	case !ahead && b.trial == nil && !now.Before(b.until):
		b.trial = p
		return p, nil
	}
	return nil, b.holdLocked()
}

// fail counts a process that did not come up, and reports whether that opened the breaker. A failure while it is open
// changes nothing, unless it is that of the trial.
func (b *Breaker) fail(p *pass, why cause) (opened bool) {
	if b == nil || p == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.why = why
	b.failed = slices.DeleteFunc(append(b.failed, failure{p, now}), func(f failure) bool { return now.Sub(f.at) > b.window })
	b.failed = slices.Delete(b.failed, 0, max(len(b.failed)-2*b.count, 0)) // more than count: one may be forgiven
	closed := b.since.IsZero()
	switch {
	case b.trial == p:
		b.trial = nil
	case closed && len(b.failed) >= b.count:
		b.since = now
	default:
		return false
	}
	b.opener, b.prior, b.until = p, b.until, now.Add(b.pause)
	b.notifyLocked()
	return closed
}

// forgive takes a failure back, and a pause that began with it.
func (b *Breaker) forgive(p *pass) {
	if b == nil || p == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed = slices.DeleteFunc(b.failed, func(f failure) bool { return f.pass == p })
	switch {
	case b.opener != p:
		return
	case !b.prior.IsZero():
		b.until, b.opener = b.prior, nil
		b.notifyLocked()
	case len(b.failed) < b.count:
		kept := b.failed
		b.closeLocked()
		b.failed = kept
	}
}

// void ends a pass that proved nothing.
func (b *Breaker) void(p *pass) {
	if b == nil || p == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trial == p {
		b.trial = nil
		b.notifyLocked()
	}
}

// worked tells that a process has come up, and reports whether that closed the breaker. Any process that does is proof.
func (b *Breaker) worked(p *pass) (closed bool) {
	if b == nil || p == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since.IsZero() {
		return false
	}
	b.closeLocked()
	return true
}

func (b *Breaker) closeLocked() {
	b.failed, b.trial, b.opener = nil, nil, nil
	b.since, b.until, b.prior = time.Time{}, time.Time{}, time.Time{}
	b.notifyLocked()
}

func (b *Breaker) notifyLocked() {
	close(b.changed)
	b.changed = make(chan struct{})
}
