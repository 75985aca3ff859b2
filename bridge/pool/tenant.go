package pool

import (
	"context"
	"sync/atomic"
	"time"

	"mcpbridge/bridge"
)

// tenant is a link as its pool sees it, and the link's back: it takes a seat before the server is started, and gives it back when
// the process is gone.
type tenant struct {
	place
	link  *bridge.Link
	kind  string
	key   Key
	since time.Time
	given atomic.Int64  // when the link was last handed out, in Unix nanoseconds; it is not idle until whoever got it has used it
	over  chan struct{} // closed when the link is closed and holds nothing

	// Guarded by the Budget's lock:
	back     bridge.Back   // nil until the first opening
	opening  bool          // Open runs
	halting  int           // calls of Halt that run
	yielding chan struct{} // closed when the process has been ended to make room, nil while it is not being ended
	ending   bool          // the link is being closed
	life     *life         // the last connection, nil once its process is gone
}

var _ bridge.Back = (*tenant)(nil)

// lingering is a back that can outlive its connection. Gone waits until nothing of it runs, within ctx, and changes nothing.
type lingering interface {
	Gone(ctx context.Context) error
}

// Open implements bridge.Back.
func (t *tenant) Open(ctx context.Context, o bridge.OpenOptions) (*bridge.Conn, error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	back, err := t.sit(ctx)
	if err != nil {
		t.stay()
		return nil, err
	}
	c, err := back.Open(ctx, o)
	t.follow(c)
	return c, err
}

// Halt implements bridge.Back.
func (t *tenant) Halt(ctx context.Context) error {
	b := t.budget()
	b.mu.Lock()
	back := t.back
	t.halting++
	b.mu.Unlock()
	var err error
	if back != nil {
		err = back.Halt(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t.halting--
	t.settleLocked()
	return err
}

// Close implements bridge.Back.
func (t *tenant) Close(ctx context.Context) error {
	t.leave()
	b := t.budget()
	b.mu.Lock()
	back := t.back
	b.mu.Unlock()
	var err error
	if back != nil {
		err = back.Close(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t.supersedeLocked()
	t.freeLocked()
	select {
	case <-t.over:
	default:
		close(t.over)
	}
	return err
}

func (t *tenant) budget() *Budget { return t.pool.cfg.Budget }

// leave has the link opened no more: it gets no seat from here on. Its own is free soon.
func (t *tenant) leave() {
	b := t.budget()
	b.mu.Lock()
	defer b.mu.Unlock()
	t.ending = true
	b.refuseLocked(func(o *tenant) bool { return o == t })
	b.leaveLocked(&t.place)
}

func (t *tenant) takeLocked() {
	t.budget().takeLocked(&t.place)
	t.budget().seated[t] = struct{}{}
}

func (t *tenant) freeLocked() {
	delete(t.budget().seated, t)
	t.budget().freeLocked(&t.place)
}

// settleLocked gives the seat back if nothing runs and nothing is under way. Whoever ends the process to make room, or the
// link, gives it back by itself.
func (t *tenant) settleLocked() {
	if !t.opening && t.life == nil && t.halting == 0 && t.yielding == nil && !t.ending {
		t.freeLocked()
	}
}

// lastGiven is when the link was last handed out.
func (t *tenant) lastGiven() time.Time { return time.Unix(0, t.given.Load()) }

// use is what the link is used for, and since when it lies still: not before it was last handed out.
func (t *tenant) use() (u bridge.Use) {
	u = t.link.Use()
	if given := t.lastGiven(); u.Since.Before(given) {
		u.Since = given
	}
	return u
}

// idle reports whether nobody needs the link, and since when (translation 14.4).
func (t *tenant) idle(now time.Time) (since time.Time, idle bool) {
	u := t.use()
	if u.Busy() || u.Sessions > 0 {
		return now, false
	}
	return u.Since, true
}
