//go:build linux

package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// afterError is how long a caller rests after a failed call, so that a broken
// server is not hammered.
const afterError = 5 * time.Millisecond

// run is one load run: callers that call until told to stop.
type run struct {
	o        *options
	tally    tally
	counting atomic.Bool
	stop     atomic.Bool
	left     atomic.Int64 // calls still to make, if o.calls > 0
	ids      atomic.Int64 // ids of a shared legacy session
}

// load calls an endpoint over HTTP from o.callers connections at once. Callers
// with a legacy session of their own, and all modern callers, use the same ids.
func load(o *options) (*result, error) {
	conns, err := openConns(o)
	if err != nil {
		return nil, err
	}
	r := &run{o: o}
	r.tally.r.Callers, r.tally.r.Size = o.callers, o.spec.size
	r.left.Store(o.calls)
	var wg sync.WaitGroup
	start := func() {
		for i, c := range conns {
			wg.Go(func() { r.work(i, c) })
		}
	}
	var s *sampler
	var began time.Time
	if o.calls > 0 {
		r.counting.Store(true)
		s, began = startSampler(o.pid), time.Now()
		start()
		wg.Wait()
	} else {
		start()
		time.Sleep(o.warm)
		s, began = startSampler(o.pid), time.Now()
		r.counting.Store(true)
		time.Sleep(o.duration)
		r.counting.Store(false)
	}
	took := time.Since(began)
	use := s.end()
	r.stop.Store(true)
	wg.Wait() // each call is bounded by o.timeout
	for _, c := range conns {
		r.tally.r.Notified += c.notifications
		r.tally.r.Reconnects += c.reconnects
		c.close()
	}
	out := r.tally.finish(took)
	out.setProcess(use)
	return out, nil
}

func openConns(o *options) ([]*conn, error) {
	conns := make([]*conn, o.callers)
	for i := range conns {
		c, err := newConn(o.url, o.modern)
		if err != nil {
			return nil, err
		}
		if i == 0 || o.perCall {
			if err := c.open(o.timeout); err != nil {
				return nil, fmt.Errorf("cannot open session %d: %w", i, err)
			}
		} else {
			c.session = conns[0].session
		}
		conns[i] = c
	}
	return conns, nil
}

func (r *run) work(number int, c *conn) {
	maker := newCaller(r.o.spec, r.o.modern, number)
	sharedIDs := !r.o.modern && !r.o.perCall
	var latencies []int64
	for sequence := int64(1); !r.stop.Load(); sequence++ {
		if r.o.calls > 0 && r.left.Add(-1) < 0 {
			break
		}
		id := sequence
		if sharedIDs {
			id = r.ids.Add(1)
		}
		request := maker.next(id, sequence)
		began := time.Now()
		m, err := c.roundTrip("tools/call", r.o.spec.tool, request, r.o.timeout)
		took := time.Since(began)
		v := good
		if err == nil {
			v = maker.check(m, id)
		}
		if err != nil {
			time.Sleep(afterError)
		}
		// Faults count in the warm-up too; only speed needs a warm server.
		switch {
		case err != nil:
			r.tally.failed(err)
		case v != good:
			r.tally.verdict(v, m)
		case r.counting.Load():
			latencies = append(latencies, int64(took))
		}
	}
	r.tally.add(latencies)
}
