package bridge

import (
	"time"

	"mcpbridge/bridge/mcp"
)

// armLocked makes sure the timer fires no later than deadline. c.mu must be held.
func (c *Conn) armLocked(deadline time.Time) {
	if !c.armed.IsZero() && !deadline.Before(c.armed) {
		return
	}
	c.armed = deadline
	if c.timer == nil {
		c.timer = time.AfterFunc(time.Until(deadline), c.expire)
	} else {
		c.timer.Reset(time.Until(deadline))
	}
}

// expire fails the calls whose time is up and arms the timer for the next one.
func (c *Conn) expire() {
	c.expiring <- struct{}{}
	defer func() { <-c.expiring }()
	now := time.Now()
	var late []*call
	var next time.Time
	c.mu.Lock()
	for _, k := range c.calls {
		if k.endless {
			continue
		}
		if c.lateLocked(k, now) {
			c.removeLocked(k)
			late = append(late, k)
		} else if next.IsZero() || k.deadline.Before(next) {
			next = k.deadline
		}
	}
	unclaimed, soon := c.lateHeldLocked(now)
	if !soon.IsZero() && (next.IsZero() || soon.Before(next)) {
		next = soon
	}
	c.armed = time.Time{}
	if !next.IsZero() && c.err == nil {
		c.armLocked(next)
	}
	c.mu.Unlock()
	c.refuseHeld(unclaimed)
	for _, k := range late { // all clients first: the server may be slow to take what follows
		c.timeout(k, now)
	}
	for _, k := range late {
		if k.ex != nil || c.established() { // a handshake is never cancelled (CAN-02)
			c.callOff(k, []byte(`"timeout"`))
		}
	}
}

// lateLocked tells whether a call is out of time. A call that waits for a human gets its time anew (CAN-12).
func (c *Conn) lateLocked(k *call, now time.Time) bool {
	if k.asks > 0 {
		c.extendLocked(k, now)
		if k.ex != nil && k.ex.Asker != nil { // it bounds by itself how long a human may take
			k.deadline = now.Add(c.limits.Timeout)
			return false
		}
	}
	return !now.Before(k.deadline)
}

func (c *Conn) timeout(k *call, now time.Time) {
	k.fail(&Error{Code: mcp.CodeInternal, Reason: ReasonTimeout,
		Message: "server " + c.name + " did not answer within " + now.Sub(k.started).Round(time.Second).String()})
	c.events.emit(Event{Server: c.name, Kind: EventTimeout, Detail: k.method()})
}

func (k *call) method() string {
	if k.ex == nil {
		return ""
	}
	return k.ex.Method
}

// extendLocked gives a call that makes progress its time anew, up to the hard limit (CAN-09).
func (c *Conn) extendLocked(k *call, now time.Time) {
	k.deadline = now.Add(c.limits.Timeout)
	if hard := k.started.Add(c.limits.HardTimeout); hard.Before(k.deadline) {
		k.deadline = hard
	}
}
