package pool

import (
	"context"
	"fmt"
	"slices"

	"mcpbridge/bridge"
)

// seat is the place in the budget of a link that is being ended. A new link may take it over: it then starts its server
// when the old one is gone, so that there are never more processes than the limits say, and clients that end one session and
// open the next are not refused.
type seat struct{ gone chan struct{} }

// seatLocked finds a place for a new link: a free one, or that of a link on its way out.
func (p *Pool) seatLocked() (after *seat, err *bridge.Error) {
	switch n := p.lenLocked(); {
	case n >= p.cfg.Max:
		return nil, p.full("maxProcesses of the server", p.cfg.Max)
	case n+len(p.ending) < p.cfg.Max && p.cfg.Budget.take():
		return nil, nil
	case len(p.ending) == 0:
		return nil, p.full("limits.processes", int(p.cfg.Budget.max))
	}
	after = p.ending[0]
	p.ending = slices.Delete(p.ending, 0, 1)
	return after, nil
}

// leave frees the place of a link that is gone, if nobody has taken it over.
func (p *Pool) leave(s *seat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.ending, s); i >= 0 {
		p.ending = slices.Delete(p.ending, i, i+1)
		p.cfg.Budget.release()
	}
	close(s.gone)
}

// queued is the back of a link that has taken over a place.
type queued struct {
	bridge.Back
	free <-chan struct{}
}

// Open waits for the place to be free.
func (q *queued) Open(ctx context.Context, o bridge.OpenOptions) (*bridge.Conn, error) {
	select {
	case <-q.free:
		return q.Back.Open(ctx, o)
	case <-ctx.Done():
		return nil, fmt.Errorf("cannot start while another process of the server is being ended: %w", context.Cause(ctx))
	}
}
