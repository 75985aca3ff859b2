package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"mcpbridge/bridge/front"
	"mcpbridge/bridge/pool"
	"mcpbridge/bridge/session"
	"mcpbridge/config"
	"mcpbridge/procman"
)

const (
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
	// Load reads the configuration again for a reload; nil if there is nothing to read.
	Load func() (*config.Config, error)
	// File is the configuration file, watched for changes; "" for none.
	File string
	// Loaded is the Fingerprint of the file when Config was read from it.
	Loaded string
	// StateDir is where keys, session facts and the logs of servers are kept. "" keeps nothing: sessions then end with the bridge.
	StateDir string
	// Control is the path of the control socket, "" for none.
	Control string
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
//
// What is served is a table that a reload replaces as a whole; everything else lives as long as the daemon.
type Daemon struct {
	opt      Options
	log      zerolog.Logger
	budget   *pool.Budget
	bodies   *front.BodyBudget
	sessions *session.Cap
	state    *state
	began    time.Time

	table    atomic.Pointer[table]
	trim     trimmer
	at       Address // written before the first request, as is base
	base     string  // of URLs
	stopping chan struct{}
	draining atomic.Bool
	life     context.Context // of links and children; ends after the drain
	end      context.CancelFunc
	jobs     sync.WaitGroup // of endpoints, also of those on their way out

	reload sync.Mutex   // one at a time
	seen   atomic.Value // string: fingerprint of what was loaded last, whether or not it was good
	last   atomic.Pointer[reloaded]

	turn    sync.Mutex // whoever replaces the table, or begins to stop
	stopped bool       // guarded by turn
}

// New builds the bridge. No server runs and nothing listens yet.
func New(opt Options) (*Daemon, error) {
	if opt.Spawner == nil {
		opt.Spawner = procman.OS()
	}
	d := &Daemon{opt: opt, log: opt.Log, stopping: make(chan struct{}), began: time.Now(),
		budget: pool.NewBudget(opt.Config.Limits.Processes), bodies: front.NewBodyBudget(int64(opt.Config.Limits.BodyTotal)),
		sessions: session.NewCap(opt.Config.Limits.Sessions)}
	if problems := problemsOf(opt.Config); problems != nil && len(problems) == len(enabled(opt.Config)) {
		return nil, errors.New("no server can be served; run `mcpbridge check` on the same configuration to see why")
	}
	var err error
	if d.state, err = d.openState(); err != nil {
		return nil, err
	}
	d.life, d.end = context.WithCancel(context.Background())
	d.seen.Store(opt.Loaded)
	d.table.Store(d.build(opt.Config, nil, nil))
	return d, nil
}

// Run serves until ctx ends, then drains and stops. It returns nil after an orderly stop.
func (d *Daemon) Run(ctx context.Context) error {
	defer d.end()
	defer d.state.close()
	reserve := make([]byte, ballast)
	defer runtime.KeepAlive(reserve)
	listeners, err := listen(d.opt.Config.Listen)
	if err != nil {
		return err
	}
	d.at = d.address(listeners)
	srv := &http.Server{Handler: d, ReadHeaderTimeout: headerTime, MaxHeaderBytes: headerBytes, IdleTimeout: idleConn,
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
		d.opt.Ready(d.at)
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
	for _, e := range d.table.Load().endpoints {
		e.start(d)
	}
	wg.Go(func() { d.serveControl(ctx) })
	wg.Go(func() { d.watch(ctx) })
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
	d.refuseWork()
	ctx, done := context.WithTimeout(context.Background(), d.table.Load().cfg.Limits.Shutdown)
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

// refuseWork has new requests refused and streams that would never end by themselves closed.
func (d *Daemon) refuseWork() {
	d.turn.Lock()
	defer d.turn.Unlock()
	if !d.stopped {
		d.stopped = true
		close(d.stopping)
	}
	for _, e := range d.table.Load().endpoints {
		e.refuse()
	}
}

// endServers ends all servers, those that a reload has taken out of the table too.
func (d *Daemon) endServers() error {
	var wg sync.WaitGroup
	all := d.table.Load().endpoints
	errs := make([]error, len(all))
	for i, e := range all {
		wg.Go(func() { errs[i] = e.end() })
	}
	d.end() // ends the drains of others
	wg.Wait()
	d.jobs.Wait()
	return errors.Join(errs...)
}

func (d *Daemon) address(listeners []net.Listener) Address {
	a := Address{Endpoints: map[string][]string{}}
	for _, l := range listeners {
		a.Listening = append(a.Listening, l.Addr().String())
	}
	d.base = "http://" + a.Listening[0]
	if listeners[0].Addr().Network() == "unix" {
		d.base = "unix://" + a.Listening[0] + " "
	}
	t := d.table.Load()
	for _, e := range t.endpoints {
		for _, path := range t.paths(e) {
			a.Endpoints[e.name] = append(a.Endpoints[e.name], d.base+e.escaped(path))
		}
	}
	return a
}

var _ front.Session = (*session.Session)(nil)
