package back

import (
	"context"
	"slices"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// lane is one of the two kinds of parcels under way: requests, whose slots are taken until they are answered, and all others, which must not
// wait for those.
type lane struct {
	slots   int
	bytes   int
	waiting []chan struct{} // for a slot, oldest first
}

// laneOf is where a parcel travels. A cancellation needs no slot: it frees one.
func (w *wire) laneOf(p *parcel) *lane {
	if p.m.Kind == framing.Request {
		return &w.requests
	}
	return &w.others
}

// enter takes a slot for a parcel and sends it on its way.
func (w *wire) enter(ctx context.Context, p *parcel) error {
	l, size, urgent := w.laneOf(p), len(p.m.Raw), p.m.MethodIs(mcp.Cancelled)
	w.mu.Lock()
	for first := true; !w.closed && !urgent && (first && len(l.waiting) > 0 || !w.roomLocked(l, size)); first = false {
		turn := make(chan struct{})
		l.waiting = append(l.waiting, turn)
		w.mu.Unlock()
		select {
		case <-turn:
		case <-w.ctx.Done():
		case <-ctx.Done():
			w.leaveQueue(l, turn)
			return ctx.Err()
		}
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	if w.closed {
		return context.Cause(w.ctx)
	}
	l.slots++
	l.bytes += size
	if l.slots < w.remote.cfg.Streams { // there may be room for the next as well
		l.wake()
	}
	w.startLocked(p)
	return nil
}

func (w *wire) roomLocked(l *lane, size int) bool {
	return l.slots == 0 || l.slots < w.remote.cfg.Streams && l.bytes+size <= w.remote.cfg.Limits.Queue
}

// leaveQueue gives up waiting; a turn that came meanwhile is the next one's.
func (w *wire) leaveQueue(l *lane, turn chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(l.waiting, turn); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return
	}
	l.wake()
}

// wake gives the one that has waited longest its turn. The wire's lock must be held.
func (l *lane) wake() {
	if len(l.waiting) > 0 {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}
