package procman_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/procman"
)

// Case 24 over two hours: a server that exits at once, and ten sessions that want it every second. It is started as often
// as the policy allows and not more, each of them has the reason within a second, nothing piles up, and once it is mended
// everybody is served after one pause at the most.
func TestTwoHoursOfCrashLoop(t *testing.T) {
	const sessions, life, pause = 10, 2 * time.Hour, 30 * time.Second
	var mended atomic.Bool
	housed(t, func(n int) (procman.Process, error) {
		if mended.Load() {
			return always(n)
		}
		return dying(n)
	}, func(t *testing.T, h *house) {
		h.policy = procman.Policy{Breaker: procman.NewBreaker(5, time.Minute, pause)}
		h.take = nil
		stop := make(chan struct{})
		var callers sync.WaitGroup
		c := &complainer{t: t, stop: stop, served: map[*procman.Supervisor]time.Time{}}
		for range sessions {
			s := h.supervisor()
			callers.Go(func() { c.ask(s) })
		}
		time.Sleep(life/2 + 500*time.Millisecond)
		before := load()
		time.Sleep(life / 2)
		after := load()
		if after.goroutines > before.goroutines || after.objects > before.objects+100 { // one object a start would be more
			t.Errorf("load grew from %+v to %+v", before, after)
		}
		// Each session starts it once before it can know, and four more failures may come before the fifth is one too many; then
		// there is one start a pause.
		most := sessions + 4 + int(life/pause) + 1
		if n := len(h.spawner.times()); n > most || n < most/2 {
			t.Errorf("%d starts in two hours, want at most %d and one a pause", n, most)
		}
		mended.Store(true)
		at := time.Now()
		time.Sleep(pause + 2*time.Second)
		close(stop)
		callers.Wait()
		for _, s := range h.all {
			if when, ok := c.served[s]; !ok || when.Sub(at) > pause+time.Second {
				t.Errorf("served %v after it was mended", when.Sub(at))
			}
		}
		t.Logf("%d starts, at most %d, answers %d, the slowest after %v, %+v", len(h.spawner.times())-sessions, most, c.answers, c.slowest, after)
	})
}

// complainer asks for a server every second, and complains about late answers and answers without a reason.
type complainer struct {
	t    *testing.T
	stop chan struct{}

	mu      sync.Mutex
	answers int
	slowest time.Duration
	served  map[*procman.Supervisor]time.Time // since when
}

func (c *complainer) ask(s *procman.Supervisor) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.stop:
			return
		}
		began := time.Now()
		p, err := s.Start(c.t.Context())
		good := err == nil && !isDone(p)
		if good {
			s.Healthy(p)
		}
		c.judge(s, time.Since(began), good, p, err)
	}
}

func (c *complainer) judge(s *procman.Supervisor, took time.Duration, good bool, p procman.Process, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers++
	c.slowest = max(c.slowest, took)
	held, ok := errors.AsType[*procman.HeldError](err)
	switch {
	case took > time.Second:
		c.t.Errorf("an answer after %v", took)
	case good:
		if c.served[s].IsZero() {
			c.served[s] = time.Now()
		}
	case err == nil && p.Exit().Code != 3, err != nil && (!ok || held.Exit == nil || held.Exit.Code != 3):
		c.t.Errorf("an answer without the reason: %v", err)
	}
}

// usage is what there is of things that must not pile up. A timer that nobody stopped is an object of the heap.
type usage struct {
	goroutines int
	objects    uint64
}

func load() usage {
	synctest.Wait()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{runtime.NumGoroutine(), m.HeapObjects}
}
