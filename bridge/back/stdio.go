package back

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
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
	Secrets []string
}

// Stdio is the back of a server that runs as a child process. It implements bridge.Back. A connection never shares its
// process with another: a process that has lost its connection is ended before the next one is opened.
type Stdio struct {
	cfg StdioConfig
	sup *procman.Supervisor
	wg  sync.WaitGroup

	mu   sync.Mutex
	used procman.Process // the process of the last connection
}

// NewStdio returns a back whose process is not started yet.
func NewStdio(cfg StdioConfig) *Stdio {
	cfg.Limits = cfg.Limits.WithDefaults()
	if cfg.Verdict == nil {
		cfg.Verdict = &Verdict{}
	}
	return &Stdio{cfg: cfg, sup: procman.NewSupervisor(cfg.Spec, cfg.Policy, cfg.Spawner, cfg.Events)}
}

// Open implements bridge.Back.
func (s *Stdio) Open(ctx context.Context, o bridge.OpenOptions) (*bridge.Conn, error) {
	a := &attempt{back: s, o: o}
	var missing []mcp.Era
	var failed []error
	for _, e := range s.cfg.Verdict.order(o.Want) {
		err := a.try(ctx, e)
		if err == nil {
			s.cfg.Verdict.learn(e, missing)
			return a.conn, nil
		}
		failed = append(failed, err)
		var no *refusal
		if !errors.As(err, &no) {
			break // no verdict: the server could not be asked
		}
		missing = append(missing, e)
	}
	a.drop(ctx)
	return nil, s.explain(failed)
}

// explain joins what went wrong, without secrets.
func (s *Stdio) explain(failed []error) error {
	var parts []string
	for _, err := range failed {
		parts = append(parts, err.Error())
	}
	return errors.New(s.mask(strings.Join(parts, "; then ")))
}

func (s *Stdio) mask(text string) string {
	for _, secret := range s.cfg.Secrets {
		if len(secret) >= 6 {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}

// process returns a running process that no connection has used.
func (s *Stdio) process(ctx context.Context) (procman.Process, error) {
	s.mu.Lock()
	used := s.used
	s.mu.Unlock()
	if used != nil {
		select {
		case <-used.Done():
		default:
			if err := s.sup.Halt(ctx); err != nil {
				return nil, fmt.Errorf("cannot end the server's last process: %w", err)
			}
		}
	}
	p, err := s.sup.Start(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.used = p
	s.mu.Unlock()
	return p, nil
}

// Halt implements bridge.Back.
func (s *Stdio) Halt(ctx context.Context) error { return s.sup.Halt(ctx) }

// Close implements bridge.Back.
func (s *Stdio) Close(ctx context.Context) error {
	err := s.sup.Close(ctx)
	s.wg.Wait()
	return err
}

// Status tells what the supervisor knows about the process.
func (s *Stdio) Status() (procman.State, procman.Status) { return s.sup.State() }
