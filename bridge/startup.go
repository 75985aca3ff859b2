package bridge

import (
	"context"
	"slices"
	"time"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

const (
	// rootsWait is how long the first call of a fresh server that may ask for roots is held, counted from the end of the
	// handshake: many servers ask right then (design section 8).
	rootsWait = 100 * time.Millisecond
	// rootsHold is how long a question about roots that belongs to no call waits for one (translation 5.9).
	rootsHold = 20 * time.Second
	// maxHeld is how many such questions wait at a time.
	maxHeld = 4
)

// startup is what a legacy server asks before any call it could belong to. It is guarded by the connection's lock.
type startup struct {
	ready time.Time // end of the handshake
	asked bool      // a call has waited for questions, or need not
	held  []*held
	more  chan struct{} // closed when a question is held, nil if nobody waits
}

// held is a question about roots that waits for a call.
type held struct {
	m     *framing.Message
	until time.Time
}

// hold keeps a question about roots for the next call of a client that has some. It reports false when too many are held.
func (c *Conn) hold(m *framing.Message) bool {
	until := time.Now().Add(rootsHold)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.startup.held) >= maxHeld || c.err != nil {
		return false
	}
	c.questions[string(m.Bytes(m.ID))] = &question{}
	c.startup.held = append(c.startup.held, &held{m, until})
	c.armLocked(until)
	if c.startup.more != nil {
		close(c.startup.more)
		c.startup.more = nil
	}
	return true
}

// TakeHeld hands over the questions about roots that wait for a call. On a fresh connection it waits for one a moment, the first
// time it is called. The caller answers them.
func (c *Conn) TakeHeld(ctx context.Context) (questions []*framing.Message) {
	c.mu.Lock()
	s := &c.startup
	left := time.Until(s.ready.Add(rootsWait))
	if s.asked || len(s.held) > 0 || left <= 0 || c.err != nil {
		defer c.mu.Unlock()
		return c.takeHeldLocked()
	}
	s.asked, s.more = true, make(chan struct{})
	more := s.more
	c.mu.Unlock()
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-more:
	case <-t.C:
	case <-c.done:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.takeHeldLocked()
}

func (c *Conn) takeHeldLocked() (questions []*framing.Message) {
	c.startup.asked = true
	for _, h := range c.startup.held {
		questions = append(questions, h.m)
	}
	c.startup.held = nil
	return questions
}

// withdrawHeld forgets a held question the server takes back.
func (c *Conn) withdrawHeld(id []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.startup.held = slices.DeleteFunc(c.startup.held, func(h *held) bool { return string(h.m.Bytes(h.m.ID)) == string(id) })
}

// lateHeldLocked takes out the held questions whose time is up, and tells when the next one's is.
func (c *Conn) lateHeldLocked(now time.Time) (late []*framing.Message, next time.Time) {
	c.startup.held = slices.DeleteFunc(c.startup.held, func(h *held) bool {
		if now.Before(h.until) {
			if next.IsZero() || h.until.Before(next) {
				next = h.until
			}
			return false
		}
		late = append(late, h.m)
		return true
	})
	return late, next
}

// refuseHeld answers questions that no call came for (CLF-14).
func (c *Conn) refuseHeld(late []*framing.Message) {
	for _, m := range late {
		c.Refuse(m, mcp.CodeInvalidParams, "no client request came that this could be attached to")
	}
}
