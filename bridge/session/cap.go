package session

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Cap is how many sessions several stores may have open together. At the cap the session that has been idle longest, in whichever
// store, is shelved for a new one. Its lock is not held while a store is asked.
type Cap struct {
	max, used atomic.Int64

	mu     sync.Mutex
	stores []*Store // guarded by mu
}

// NewCap returns a cap of n sessions.
func NewCap(n int) *Cap {
	c := &Cap{}
	c.Resize(n)
	return c
}

// Resize changes the cap. Sessions that are open stay open.
func (c *Cap) Resize(n int) { c.max.Store(int64(n)) }

func (c *Cap) join(st *Store) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stores = append(c.stores, st)
}

func (c *Cap) part(st *Store) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stores = slices.DeleteFunc(c.stores, func(o *Store) bool { return o == st })
}

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

// room takes a place, at the cap that of a session that has been idle for long. It reports whether there was one.
func (c *Cap) room() bool {
	for !c.take() {
		now := time.Now()
		s := c.idlest(now)
		if s == nil {
			return false
		}
		s.store.shelve(s, now) // if it was used meanwhile, another is next
	}
	return true
}

// idlest is the session of all stores that may be shelved and has been idle longest, nil if there is none.
func (c *Cap) idlest(now time.Time) (idlest *Session) {
	c.mu.Lock()
	stores := slices.Clone(c.stores)
	c.mu.Unlock()
	var longest time.Duration
	for _, st := range stores {
		if s, d := st.idlest(now); s != nil && (idlest == nil || d > longest) {
			idlest, longest = s, d
		}
	}
	return idlest
}
