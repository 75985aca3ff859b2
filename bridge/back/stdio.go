package back

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mask"
	"mcpbridge/framing"
	"mcpbridge/procman"
)

// StdioConfig describes a local server behind one link.
type StdioConfig struct {
	Spec    procman.Spec
	Policy  procman.Policy
	Spawner procman.Spawner
	Limits  bridge.Limits
	Verdict *Verdict
	Events  func(procman.Event)
	// Secrets are texts that must not appear in an error, such as the values of the server's own environment (SEC-09).
	// Those of less than 6 bytes are not looked for.
	Secrets []string
}

// Stdio is the back of a server that runs as a child process. It implements bridge.Back. A connection never shares its
// process with another: a process that has lost its connection is ended before the next one is opened.
type Stdio struct {
	cfg    StdioConfig
	sup    *procman.Supervisor
	masker mask.Masker
	unused context.Context    // ends with the first Open
	use    context.CancelFunc // ends unused
	wg     sync.WaitGroup     // started under mu, waited for by Close

	mu     sync.Mutex
	used   procman.Process // guarded by mu; the process of the last connection
	closed bool            // guarded by mu
}

// NewStdio returns a back whose process is not started yet.
func NewStdio(cfg StdioConfig) *Stdio {
	cfg.Limits = cfg.Limits.WithDefaults()
	if cfg.Verdict == nil {
		cfg.Verdict = &Verdict{}
	}
	s := &Stdio{cfg: cfg, masker: mask.New(cfg.Secrets), sup: procman.NewSupervisor(cfg.Spec, cfg.Policy, cfg.Spawner, cfg.Events)}
	s.unused, s.use = context.WithCancel(context.Background())
	return s
}

// Open implements bridge.Back. Its error says what was tried and what happened, without secrets. One that comes because
// the server may not be started now, after it has failed, comes within Policy.Patience and also has the method
// RetryAfter() time.Duration.
func (s *Stdio) Open(ctx context.Context, o bridge.OpenOptions) (*bridge.Conn, error) {
	s.use()
	a := &attempt{back: s, o: o}
	a.eras, a.offer = s.cfg.Verdict.order(o.Want)
	failed := a.run(ctx)
	if failed == nil {
		s.sup.Healthy(a.proc)
		return a.conn, nil
	}
	err := s.explain(failed)
	a.drop(ctx, err)
	return nil, err
}

// Warm starts the process ahead of use and keeps one alive, until ctx ends or Open takes it; then it returns nil, and the
// process is left to Open, or to Close. Nothing is written to it. A server that leaves because nobody greets it is started
// again as the restart policy says, at most once in Policy.Max in the long run, and counts neither as crashed nor for the
// breaker; the back-off does not hold up Open. While the breaker is open nothing is started ahead. An error says that
// nothing can be: the command cannot be run, or the back is closed. It is called once, before Open.
func (s *Stdio) Warm(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.unused, stop)()
	for {
		p, err := s.sup.Ahead(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return s.explain([]error{err})
		}
		select {
		case <-p.Done():
		case <-ctx.Done():
			return nil
		}
	}
}

// process returns a running process that no connection has used.
func (s *Stdio) process(ctx context.Context) (procman.Process, error) {
	s.mu.Lock()
	used := s.used
	s.mu.Unlock()
	if used != nil && s.lingers(used) {
		if err := s.sup.Halt(ctx); err != nil {
			return nil, fmt.Errorf("cannot end the server's last process: %w", err)
		}
	}
	return s.sup.Start(ctx)
}

// lingers tells whether a process runs that nothing ends by itself. One that was rejected is being ended, and its back-off
// is to follow.
func (s *Stdio) lingers(p procman.Process) bool {
	select {
	case <-p.Done():
		return false
	default:
		state, _ := s.sup.State()
		return state != procman.Stopping
	}
}

// attach makes a connection of a process.
func (s *Stdio) attach(p procman.Process, cfg bridge.ConnConfig) (*bridge.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, procman.ErrClosed // and p is ended by Close
	}
	s.used = p
	u := &pipe{back: s, proc: p, w: framing.NewWriter(p.Stdin(), s.cfg.Limits.Queue), r: framing.NewReader(p.Stdout(), s.cfg.Limits.Line)}
	c := bridge.NewConn(u, cfg)
	s.wg.Go(func() { u.watch(c) })
	return c, nil
}

// begin starts a job that Close waits for; after Close it does nothing.
func (s *Stdio) begin(job func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wg.Go(job)
	}
}

// Halt implements bridge.Back.
func (s *Stdio) Halt(ctx context.Context) error { return s.sup.Halt(ctx) }

// Gone waits, within ctx, until no process runs. It changes nothing.
func (s *Stdio) Gone(ctx context.Context) error { return s.sup.Gone(ctx) }

// Close implements bridge.Back. It waits for the process and for all goroutines of its connections, within ctx.
func (s *Stdio) Close(ctx context.Context) error {
	s.use()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.sup.Close(ctx)
	done := make(chan struct{})
	go func() { // ends with the goroutines it waits for
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return err
	case <-ctx.Done():
		return errors.Join(err, fmt.Errorf("cannot wait for the connections of %s to end: %w", s.cfg.Spec.Name, context.Cause(ctx)))
	}
}

// Status tells what the supervisor knows about the process.
func (s *Stdio) Status() (procman.State, procman.Status) { return s.sup.State() }
