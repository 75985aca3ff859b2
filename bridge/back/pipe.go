package back

import (
	"context"
	"errors"
	"io"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/framing"
	"mcpbridge/procman"
)

// exitWait is how long the end of a process is waited for after the end of its output, to explain it.
const exitWait = 500 * time.Millisecond

// pipe is the upstream over a child's stdin and stdout.
type pipe struct {
	back *Stdio
	proc procman.Process
	w    *framing.Writer
	r    *framing.Reader
}

func (s *Stdio) pipe(p procman.Process) *pipe {
	u := &pipe{back: s, proc: p, w: framing.NewWriter(p.Stdin(), s.cfg.Limits.Queue), r: framing.NewReader(p.Stdout(), s.cfg.Limits.Line)}
	s.wg.Go(u.watch)
	return u
}

// watch ends a process that does not take input any more although it lives (case 27).
func (u *pipe) watch() {
	select {
	case <-u.proc.Done():
		u.w.Abort(errors.New("server has ended"))
	case <-u.w.Done():
		u.stop()
	}
}

// stop ends the process by the ladder.
func (u *pipe) stop() {
	select {
	case <-u.proc.Done():
		return
	default:
	}
	ctx, end := context.WithTimeout(context.Background(), 15*time.Second)
	defer end()
	_ = procman.Stop(ctx, u.proc, u.back.cfg.Policy.Grace)
}

// Send implements bridge.Upstream.
func (u *pipe) Send(ctx context.Context, f framing.Frame, crowd bool) error {
	if crowd {
		return u.w.Queue(ctx, f)
	}
	return u.w.Write(ctx, f)
}

// Serve implements bridge.Upstream. The output is read to its end before the process counts as dead, so that an answer
// written just before is not lost (case 12).
func (u *pipe) Serve(r bridge.Receiver) error {
	for {
		line, _, err := u.r.Next()
		var long *framing.LineError
		switch {
		case errors.As(err, &long):
			r.Malformed(long.Prefix, err)
			continue
		case err != nil:
			return u.ended(err)
		}
		m, err := framing.Scan(line)
		if err != nil {
			r.Malformed(line, err)
			continue
		}
		r.Message(m)
	}
}

// ended explains the end of the server's output. A process that closed its output and lives on is ended too (STD-03).
func (u *pipe) ended(err error) error {
	t := time.NewTimer(exitWait)
	defer t.Stop()
	select {
	case <-u.proc.Done():
		return errors.New(u.back.mask(explainExit(u.proc.Exit())))
	case <-t.C:
	}
	u.w.Abort(errors.New("server closed its output"))
	if err == io.EOF {
		return errors.New("it closed its output")
	}
	return err
}

// explainExit is one line: how it ended and the last thing it said.
func explainExit(e procman.Exit) string {
	text := e.String()
	if n := len(e.Stderr); n > 0 && !e.Requested {
		text += "; its last words: " + e.Stderr[n-1]
	}
	return text
}

// Close implements bridge.Upstream.
func (u *pipe) Close(ctx context.Context) error {
	u.back.sup.Forgive(u.proc)
	return procman.Stop(ctx, u.proc, u.back.cfg.Policy.Grace)
}
