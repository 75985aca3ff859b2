package back

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/framing"
	"mcpbridge/procman"
)

// exitWait is how long a process whose pipes have failed has to end by itself, so that its end can be explained. What it
// leaves behind is given procman.DefaultLinger of that.
const exitWait = time.Second

// errEnded is what writing to a process that is gone gives.
var errEnded = errors.New("server has ended")

// pipe is the upstream over a child's stdin and stdout.
type pipe struct {
	back    *Stdio
	proc    procman.Process
	w       *framing.Writer
	r       *framing.Reader
	blame   atomic.Pointer[exitError] // why the pipe ends the process, nil while it does not
	closing atomic.Bool               // Close was called
}

// watch ends a process that does not take input any more although it lives (case 27), and sees the connection to its end.
func (u *pipe) watch(c *bridge.Conn) {
	select {
	case <-u.proc.Done():
	case <-u.w.Done():
		u.abandon()
	}
	u.w.Abort(errEnded)
	<-u.w.Done()
	<-c.Done()
}

// abandon ends a process whose input has failed, unless it ends by itself or is being ended: a second request to end makes
// some servers drop what they are saving.
func (u *pipe) abandon() {
	if u.blame.Load() == nil && u.dies() || u.stopping() {
		return
	}
	u.reject("it takes no input any more")
}

// reject ends the process as one that has failed, unless it is being ended.
func (u *pipe) reject(why string) {
	u.blame.CompareAndSwap(nil, &exitError{text: why})
	if !u.stopping() {
		u.back.sup.Reject(u.proc, u.blame.Load())
	}
}

func (u *pipe) stopping() bool {
	state, _ := u.back.Status()
	return u.closing.Load() || state == procman.Stopping || state == procman.Closed
}

// dies waits for the end of a process that is likely to end by itself.
func (u *pipe) dies() bool {
	t := time.NewTimer(exitWait)
	defer t.Stop()
	select {
	case <-u.proc.Done():
		return true
	case <-t.C:
		return false
	}
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
		if u.r.Drained() {
			runtime.Gosched() // whoever was just given an answer goes first, before a read that will wait
		}
	}
}

// ended explains the end of the server's output. A process that closed its output and lives on is ended too (STD-03).
func (u *pipe) ended(err error) error {
	if u.dies() {
		if why := u.blame.Load(); why != nil {
			return why
		}
		return u.back.explainExit(u.proc.Exit())
	}
	text := "it closed its output"
	if err != io.EOF {
		text = "its output cannot be read: " + err.Error()
	}
	u.reject(text) // here, because the writer may hang in a pipe that nobody reads
	u.w.Abort(errEnded)
	return u.blame.Load()
}

// Close implements bridge.Upstream.
func (u *pipe) Close(ctx context.Context) error {
	u.closing.Store(true)
	u.back.sup.Forgive(u.proc)
	return procman.Stop(ctx, u.proc, u.back.cfg.Policy.Grace)
}
