package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpbridge/bridge/front"
	"mcpbridge/bridge/pool"
	"mcpbridge/bridge/session"
	"mcpbridge/config"
	"mcpbridge/procman"
)

const (
	// drain is how long open requests may go on after the bridge was asked to stop.
	drain = 3 * time.Second
	// farewell is how long answers to requests that were cut off may take to reach their clients.
	farewell = 2 * time.Second
	// headerTime and headerBytes bound what comes before a body (SEC-07).
	headerTime  = 10 * time.Second
	headerBytes = 64 << 10
	// ballast is memory that is reserved and never touched. It costs no physical memory, and lets the collector wait until
	// that much garbage has come together: with the small live heap of a bridge it would run all the time otherwise, for
	// a fifth of the CPU time of small calls.
	ballast = 12 << 20
	// idleConn is how long a kept-alive connection may lie still.
	idleConn = 2 * time.Minute
)

// Options say what to run.
type Options struct {
	Config  *config.Config
	Log     zerolog.Logger
	Version string // of the bridge, for clientInfo
	// Spawner starts children; nil means real processes.
	Spawner procman.Spawner
	// Ready is called once all listeners are open; may be nil.
	Ready func(Address)
}

// Address tells where the bridge can be reached.
type Address struct {
	Listening []string            // addresses as bound
	Endpoints map[string][]string // server name -> URLs
}

// Daemon is one running bridge.
type Daemon struct {
	opt       Options
	log       zerolog.Logger
	endpoints []*endpoint
	stopping  chan struct{}
	life      context.Context // of links and children; ends after the drain
	end       context.CancelFunc
}

// New builds the bridge. Nothing runs and nothing listens yet.
func New(opt Options) (*Daemon, error) {
	if opt.Spawner == nil {
		opt.Spawner = procman.OS()
	}
	d := &Daemon{opt: opt, log: opt.Log, stopping: make(chan struct{})}
	d.life, d.end = context.WithCancel(context.Background())
	budget := pool.NewBudget(opt.Config.Limits.Processes)
	for i := range opt.Config.Servers {
		s := &opt.Config.Servers[i]
		if s.Disabled {
			continue
		}
		if err := Usable(s); err != nil {
			d.log.Error().Str("server", s.Name).Err(err).Msg("server is left out")
			continue
		}
		d.endpoints = append(d.endpoints, d.endpoint(s, budget))
	}
	if len(d.endpoints) == 0 {
		return nil, errors.New("no server can be served; run `mcpbridge check` on the same configuration to see why")
	}
	return d, nil
}

// Usable tells why an entry cannot be served, nil if it can. One broken entry never takes the others down.
func Usable(s *config.Server) error {
	switch {
	case s.Problem != nil:
		return s.Problem
	case s.Command == "":
		return errors.New("this version does not serve entries with a url, only those with a command")
	case s.Isolation == config.IsolationRequest:
		return errors.New(`this version does not support isolation "request"; use "session", "principal" or "shared"`)
	}
	return nil
}

// Run serves until ctx ends, then drains and stops. It returns nil after an orderly stop.
func (d *Daemon) Run(ctx context.Context) error {
	defer d.end()
	reserve := make([]byte, ballast)
	defer runtime.KeepAlive(reserve)
	listeners, err := listen(d.opt.Config.Listen)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: d.routes(), ReadHeaderTimeout: headerTime, MaxHeaderBytes: headerBytes, IdleTimeout: idleConn,
		ErrorLog: serverLog(d.log)}
	failed := make(chan error, len(listeners))
	var wg sync.WaitGroup
	for _, l := range listeners {
		wg.Go(func() {
			if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("cannot serve on %s: %w", l.Addr(), err)
			}
		})
	}
	jobs, stopJobs := context.WithCancel(context.Background())
	defer stopJobs()
	d.background(jobs, &wg)
	if d.opt.Ready != nil {
		d.opt.Ready(d.address(listeners))
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	stopJobs()
	err = errors.Join(err, d.stop(srv))
	wg.Wait()
	return err
}

// background starts the jobs that run beside the listeners.
func (d *Daemon) background(ctx context.Context, wg *sync.WaitGroup) {
	for _, e := range d.endpoints {
		wg.Go(func() { e.pool.Run(ctx) })
		wg.Go(func() { e.sessions.Run(ctx) })
	}
	wg.Go(func() { procman.ReapOrphans(ctx) })
	wg.Go(func() {
		ended, err := procman.Sweep(ctx, mark())
		if len(ended) > 0 || err != nil {
			d.log.Warn().Ints("pids", ended).Err(err).Msg("ended processes that an earlier run left behind")
		}
	})
}

// stop takes the bridge down: refuse new work, let open requests finish, then end sessions and servers. What still runs
// at the deadline gets its error before the connection closes (rule 3).
func (d *Daemon) stop(srv *http.Server) error {
	d.log.Info().Msg("stopping")
	close(d.stopping)
	ctx, done := context.WithTimeout(context.Background(), drain)
	defer done()
	shut := srv.Shutdown(ctx)
	err := d.endServers()
	if shut != nil {
		last, done := context.WithTimeout(context.Background(), farewell)
		defer done()
		if srv.Shutdown(last) != nil {
			_ = srv.Close()
		}
	}
	d.log.Info().Err(err).Msg("stopped")
	return err
}

func (d *Daemon) endServers() error {
	var wg sync.WaitGroup
	errs := make([]error, len(d.endpoints))
	for i, e := range d.endpoints {
		wg.Go(func() {
			errs[i] = e.pool.Close() // first: what is open gets its error
			e.sessions.Close()
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// routes maps URLs to endpoints (design section 5). Paths are compared as they come: one that is not in its plain form is
// nobody's, and is not redirected (case 94).
func (d *Daemon) routes() http.Handler {
	guard, bodies := d.guard(), front.NewBodyBudget(int64(d.opt.Config.Limits.BodyTotal))
	at := map[string]http.Handler{
		"/healthz": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }),
	}
	for _, e := range d.endpoints {
		h := front.NewHandler(front.Config{Guard: guard, Endpoint: e, Principal: trusted, Bodies: bodies, Stopping: d.stopping, Done: d.record})
		at["/servers/"+e.name+"/mcp"] = h
		if len(d.endpoints) == 1 {
			at["/mcp"] = h
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := at[r.URL.Path]; h != nil {
			h.ServeHTTP(w, r)
			return
		}
		d.notFound(w, r)
	})
}

// notFound helps a person with a mistyped URL.
func (d *Daemon) notFound(w http.ResponseWriter, _ *http.Request) {
	paths := make([]string, 0, len(d.endpoints))
	for _, e := range d.endpoints {
		paths = append(paths, "/servers/"+e.name+"/mcp")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": "there is nothing at this path", "endpoints": paths})
}

func (d *Daemon) guard() *front.Guard {
	c := d.opt.Config
	return &front.Guard{LoopbackOnly: true, AllowedHosts: c.AllowedHosts, AllowedOrigins: c.AllowedOrigins, BodyLimit: int64(c.Limits.BodyBytes)}
}

func (d *Daemon) address(listeners []net.Listener) Address {
	a := Address{Endpoints: map[string][]string{}}
	for _, l := range listeners {
		a.Listening = append(a.Listening, l.Addr().String())
	}
	base := "http://" + a.Listening[0]
	if listeners[0].Addr().Network() == "unix" {
		base = "unix://" + a.Listening[0] + " "
	}
	for _, e := range d.endpoints {
		urls := []string{base + "/servers/" + e.name + "/mcp"}
		if len(d.endpoints) == 1 {
			urls = append([]string{base + "/mcp"}, urls...)
		}
		a.Endpoints[e.name] = urls
	}
	return a
}

var _ front.Session = (*session.Session)(nil)
