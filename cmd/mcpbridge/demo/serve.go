package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"mcpbridge/bridge/mcp"
)

// Limits of the server. What happens at each is said where it is checked.
const (
	// MaxLine is the longest line read, in bytes without the newline, unless Options say otherwise.
	MaxLine = 64 << 20
	// MaxCalls bounds the requests that wait at the same time, listens included.
	MaxCalls = 1024
	// MaxListens bounds the open subscriptions/listen requests (SUB-07).
	MaxListens = 64
	// MaxBatch bounds the members of a JSON-RPC array (FRM-24).
	MaxBatch = 1000
)

// grace is how long Serve waits for a goroutine that is stuck writing to a peer that no longer reads.
const grace = 200 * time.Millisecond

// Options say which eras are spoken. The zero value speaks both.
type Options struct {
	// LegacyOnly makes a server that has never heard of 2026-07-28: its methods are unknown, its _meta keys ignored.
	LegacyOnly bool
	// ModernOnly refuses initialize and every request without per-request metadata (VER-44).
	ModernOnly bool
	// Newest is the newest legacy revision offered in the handshake; zero means the latest one.
	Newest mcp.Version
	// Version is the server's own version, shown to clients; "" means "0".
	Version string
	// MaxLine is the longest line read, in bytes without the newline; 0 means the constant MaxLine. A longer line is
	// answered -32600 without an id and skipped (FRM-07).
	MaxLine int
}

func (o Options) withDefaults() (Options, error) {
	if o.LegacyOnly && o.ModernOnly {
		return o, errors.New("cannot serve: legacy only and modern only exclude each other")
	}
	if o.Newest == "" {
		o.Newest = mcp.LatestLegacy
	}
	if o.Newest.Era() != mcp.Legacy {
		return o, fmt.Errorf("cannot serve: %q is not a legacy revision", o.Newest)
	}
	if o.Version == "" {
		o.Version = "0"
	}
	if o.MaxLine == 0 {
		o.MaxLine = MaxLine
	}
	return o, nil
}

// Serve reads one message a line from in and writes one a line to out until in ends or ctx is done.
//
// At the end of in it stops at once, also with calls open, and returns nil (STD-02). When ctx is done it first ends the
// open subscriptions properly (SUB-09, SUB-10) and returns nil. A failing read or write is returned. A Read of in that
// is blocked when ctx ends is left behind until the owner of in closes it.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opts Options) error {
	opts, err := opts.withDefaults()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := newServer(opts, out, stop)
	read := make(chan error, 1)
	go func() { read <- s.readAll(ctx, in) }()
	graceful := false
	select {
	case err = <-read:
	case <-ctx.Done():
		err = s.writeFailure(ctx)
		graceful = err == nil
	}
	s.finish(graceful, stop)
	return err
}

// finish ends what is open and waits for the goroutines of calls, but not for ever for one that is stuck in a write.
func (s *server) finish(graceful bool, stop context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.shut(graceful)
		stop(nil)
		s.running.Wait()
	}()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// readAll handles line after line. An unterminated last line is no message (FRM-03).
func (s *server) readAll(ctx context.Context, in io.Reader) error {
	lines := newLineReader(in, s.opts.MaxLine)
	for ctx.Err() == nil {
		line, err := lines.next()
		switch {
		case errors.Is(err, errTooLong):
			s.refuse(nil, invalidRequest("line of more than %d bytes", s.opts.MaxLine))
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("cannot read messages: %w", err)
		default:
			s.receive(ctx, line)
		}
	}
	return nil
}
