package daemon

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"mcpbridge/admin"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/pool"
	"mcpbridge/procman"
)

var _ admin.Backend = (*Daemon)(nil)

// serveControl answers on the control socket until ctx ends. A bridge without one serves all the same.
func (d *Daemon) serveControl(ctx context.Context) {
	if d.opt.Control == "" {
		return
	}
	l, err := admin.Listen(d.opt.Control)
	if err != nil {
		d.log.Warn().Err(err).Msg("no control socket: `mcpbridge status` and the like will not reach this bridge; give it one of its own with the setting control")
		return
	}
	if err := admin.Serve(ctx, l, d); err != nil {
		d.log.Warn().Err(err).Msg("control socket")
	}
}

// Status implements admin.Backend.
func (d *Daemon) Status() admin.Status {
	t := d.table.Load()
	s := admin.Status{Bridge: d.bridgeStatus()}
	for _, b := range t.broken {
		s.Servers = append(s.Servers, admin.Server{Name: b.server.Name, State: "broken", Required: b.server.Required, Problem: b.why.Error()})
	}
	for _, e := range t.endpoints {
		s.Servers = append(s.Servers, d.serverStatus(t, e))
		s.Bridge.Sessions += e.sessions.Len()
	}
	return s
}

func (d *Daemon) bridgeStatus() admin.Bridge {
	b := admin.Bridge{Version: d.opt.Version, Pid: os.Getpid(), StartedAt: d.began, Uptime: time.Since(d.began).Seconds(),
		Listening: d.at.Listening, Draining: d.refusing(), Processes: d.budget.Used(), ProcessLimit: d.table.Load().cfg.Limits.Processes,
		Goroutines: runtime.NumGoroutine(), ConfigFile: d.opt.File}
	if mem, ok := procman.Resident(os.Getpid()); ok {
		b.MemoryBytes = mem
	}
	if r := d.last.Load(); r != nil {
		b.LastReload = &admin.ReloadOutcome{At: r.at, OK: r.err == nil}
		if r.err != nil {
			b.LastReload.Error = r.err.Error()
		}
	}
	return b
}

func (d *Daemon) serverStatus(t *table, e *endpoint) admin.Server {
	s := admin.Server{Name: e.name, Required: e.cfg.Required, Isolation: e.isolation, Sessions: e.sessions.Len(),
		Calls: e.calls.Load(), CallsFailed: e.failed.Load(), Restarts: int(e.restarts.Load()), Waiting: e.pool.Waiting(), Parked: e.parked.Open()}
	if e.remote != nil {
		s.Remote = e.cfg.ShownURL()
	}
	for _, path := range t.paths(e) {
		s.URLs = append(s.URLs, d.base+e.escaped(path))
	}
	for _, entry := range e.pool.Entries() {
		s.Processes = append(s.Processes, e.processStatus(entry))
	}
	s.State, s.Ready, s.Problem = e.condition()
	if x := e.lastExit.Load(); x != nil {
		s.LastExit = &admin.Exit{Text: x.text, At: x.at}
	}
	return s
}

// supervised is a back that runs a process.
type supervised interface {
	Status() (procman.State, procman.Status)
}

func (e *endpoint) processStatus(entry pool.Entry) admin.Process {
	p := admin.Process{Serves: entry.Kind, State: "idle"}
	if b, ok := entry.Back.(supervised); ok {
		state, st := b.Status()
		p.State, p.Pid, p.Restarts = state.String(), st.Pid, st.Restarts
		if st.Pid != 0 {
			p.StartedAt, p.Uptime = st.Since, time.Since(st.Since).Seconds()
			p.MemoryBytes, _ = procman.Memory(st.Pid)
		}
		if !st.NextStart.IsZero() {
			p.NextStart = &st.NextStart
		}
	}
	if entry.Link == nil {
		return p
	}
	p.Calls = entry.Link.Use().Calls
	if c := entry.Link.Live(); c != nil {
		if _, remote := entry.Back.(*back.RemoteLink); remote {
			p.State = stateConnected
		}
		p.Era, p.Version = c.Facts().Era.String(), string(c.Facts().Version)
	}
	return p
}

// telling is the order in which states say something about a server.
var telling = []string{"crash-loop", "backoff", "starting", "running", "stopping"}

// condition is the state of a server as a whole, whether it can be used, and if not why.
func (e *endpoint) condition() (state string, ready bool, problem string) {
	if e.remote != nil {
		return e.remoteCondition()
	}
	if err := e.missing(); err != nil { // first: that it was tried in vain says less
		return "missing", false, err.Error()
	}
	if why := e.breaker.Why(); why != "" {
		return "crash-loop", false, e.log.mask.Text(why)
	}
	best, up, held := len(telling), false, false
	for _, entry := range e.pool.Entries() {
		if b, ok := entry.Back.(supervised); ok {
			state, _ := b.Status()
			up = up || state == procman.Running || state == procman.Starting
			held = held || state == procman.Backoff || state == procman.CrashLoop
			if i := slices.Index(telling, state.String()); i >= 0 {
				best = min(best, i)
			}
		}
	}
	if best == len(telling) {
		return "idle", true, ""
	}
	return telling[best], up || !held, ""
}

// Restart implements admin.Backend: the processes of a server end, the next message starts new ones. Sessions go on.
func (d *Daemon) Restart(ctx context.Context, name string) error {
	e := d.table.Load().endpoint(name)
	if e == nil {
		return fmt.Errorf("cannot restart %q: %w", name, admin.ErrUnknownServer)
	}
	e.log.log.Info().Msg("restart asked for")
	e.breaker.Reset() // whoever asks has mended it, or wants to see
	if e.remote != nil {
		e.remote.Forget()
	}
	return e.pool.Halt(ctx)
}

// Drain implements admin.Backend: new work is refused, what is under way goes on until it is done or ctx ends. The bridge
// then waits to be stopped.
func (d *Daemon) Drain(ctx context.Context) error {
	if d.draining.CompareAndSwap(false, true) {
		d.log.Info().Msg("draining: new work is refused")
	}
	for _, e := range d.table.Load().endpoints {
		e.refuse()
	}
	for _, e := range d.table.Load().endpoints {
		e.settle(ctx)
	}
	return context.Cause(ctx)
}

// Logs implements admin.Backend.
func (d *Daemon) Logs(name string) (admin.LogSource, error) {
	e := d.table.Load().endpoint(name)
	switch {
	case e == nil:
		return nil, fmt.Errorf("cannot show the log of %q: %w", name, admin.ErrUnknownServer)
	case e.remote != nil:
		return nil, fmt.Errorf("cannot show the log of %q: %w", name, errNoOutput)
	case e.file == nil:
		return nil, fmt.Errorf("cannot show the log of %q: this bridge keeps no logs of servers, because it has no state directory", name)
	}
	return e.file, nil
}
