package daemon

import (
	"context"
	"sync"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/config"
)

// start runs what an endpoint does beside requests. It is called once.
func (e *endpoint) start(d *Daemon) {
	ctx, stop := context.WithCancel(d.life)
	e.stopJobs = stop
	e.jobs.Go(func() { e.pool.Run(ctx) })
	e.jobs.Go(func() { e.sessions.Run(ctx) })
	if !e.eager() || e.exclusive() { // an exclusive link is some session's: a spare process waits for it
		return
	}
	if l, err := e.pool.Shared(e.key(mcp.Modern, bridge.Local, e.profile(nil)), e.opening(e.profile(nil))); err == nil {
		l.Wake()
	}
}

// eager reports whether the server is to run before anybody asks.
func (e *endpoint) eager() bool { return e.cfg.Lazy != nil && !*e.cfg.Lazy }

// refuse has new requests refused and streams closed that would never end by themselves.
func (e *endpoint) refuse() { e.once.Do(func() { close(e.leaving) }) }

// settle waits until no request is under way, or ctx ends.
func (e *endpoint) settle(ctx context.Context) {
	select {
	case <-e.inflight.empty():
	case <-ctx.Done():
	}
}

// retire ends an endpoint that is served no more, after what is under way.
func (e *endpoint) retire(ctx context.Context) {
	e.refuse()
	e.parked.Drain()
	ctx, stop := context.WithTimeout(ctx, retireTime)
	defer stop()
	e.settle(ctx)
	_ = e.pool.Drain(ctx) // end reports what would not end
	if err := e.end(); err != nil {
		e.log.log.Warn().Err(err).Msg("server was taken out of service, but not all of it ended")
		return
	}
	e.log.log.Info().Msg("server is out of service")
}

// end ends everything of an endpoint. What is open gets its error first.
func (e *endpoint) end() error {
	e.refuse()
	e.parked.Close()
	err := e.pool.Close()
	e.sessions.Close()
	if e.stopJobs != nil {
		e.stopJobs()
	}
	e.jobs.Wait()
	if e.file != nil {
		e.file.Close()
	}
	if e.remote != nil {
		e.remote.Close()
	}
	return err
}

// gate counts what is under way.
type gate struct {
	mu   sync.Mutex
	n    int
	wait chan struct{} // closed at the next moment nothing is under way, nil if nobody waits
}

func (g *gate) enter() {
	g.mu.Lock()
	g.n++
	g.mu.Unlock()
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n--; g.n == 0 && g.wait != nil {
		close(g.wait)
		g.wait = nil
	}
}

// empty returns a channel that is closed when nothing is under way.
func (g *gate) empty() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n == 0 {
		done := make(chan struct{})
		close(done)
		return done
	}
	if g.wait == nil {
		g.wait = make(chan struct{})
	}
	return g.wait
}

// ending is how a process ended.
type ending struct {
	text string
	at   time.Time
}

// spares is how many processes are kept ahead of use. An eager server whose links belong to sessions runs as a spare.
func spares(s *config.Server, exclusive bool) int {
	if exclusive && s.Lazy != nil && !*s.Lazy {
		return max(s.Spare, 1)
	}
	return s.Spare
}
