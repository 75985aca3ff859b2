package session

import "sync/atomic"

// Cap is how many sessions several stores may have open together.
type Cap struct{ max, used atomic.Int64 }

// NewCap returns a cap of n sessions.
func NewCap(n int) *Cap {
	c := &Cap{}
	c.Resize(n)
	return c
}

// Resize changes the cap. Sessions that are open stay open.
func (c *Cap) Resize(n int) { c.max.Store(int64(n)) }

func (c *Cap) full() bool { return c.used.Load() >= c.max.Load() }

// take takes a place if there is one.
func (c *Cap) take() bool {
	for {
		n := c.used.Load()
		if n >= c.max.Load() {
			return false
		}
		if c.used.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (c *Cap) release() { c.used.Add(-1) }
