package daemon

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

const (
	// calm is how long nothing may have been asked before memory is given back.
	calm = 500 * time.Millisecond
	// litter is how much must have been allocated since the last time for that to be worth a collection.
	litter = 1 << 20
)

// trimmer gives memory back to the system once a burst of requests is over. Without it the reserve of garbage that makes
// bursts cheap (ballast) would stay resident for minutes. Nothing runs while nothing is asked.
type trimmer struct {
	armed atomic.Bool
	seen  atomic.Int64 // requests so far
	freed uint64       // what had been allocated at the last trim; of the timer alone
}

// used notes a request.
func (t *trimmer) used() {
	n := t.seen.Add(1)
	if !t.armed.Load() && t.armed.CompareAndSwap(false, true) {
		time.AfterFunc(calm, func() { t.check(n) })
	}
}

// check trims if nothing has been asked since there were n requests, else it comes back.
func (t *trimmer) check(n int64) {
	if now := t.seen.Load(); now != n {
		time.AfterFunc(calm, func() { t.check(now) })
		return
	}
	if total := allocated(); total-t.freed >= litter {
		t.freed = total
		runtime.GC() // what pools hold goes with the second collection
		debug.FreeOSMemory()
	}
	t.armed.Store(false)
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
