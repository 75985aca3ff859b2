package procman

import (
	"io"
	"os"
	"sync"
	"time"
)

// DefaultLinger is how long descendants that outlive a process which ended by itself have between being asked to end
// and being killed. After [Stop] it is Grace.Term.
const DefaultLinger = 500 * time.Millisecond

// child is a [Process] of the operating system. One goroutine waits for it, one drains its stderr; the former ends after
// the latter and closes done.
type child struct {
	handle  *handle // the platform's part
	in      io.WriteCloser
	out     *outPipe
	ring    *ring
	started time.Time
	drained chan struct{}
	done    chan struct{}
	exit    Exit // written before done is closed

	mu        sync.Mutex
	requested bool          // guarded by mu
	linger    time.Duration // guarded by mu
}

func newChild(spec Spec, h *handle, pipes stdio, started time.Time) *child {
	size := spec.StderrRing
	if size <= 0 {
		size = DefaultStderrRing
	}
	return &child{
		handle: h, in: newInPipe(pipes.in), out: &outPipe{file: pipes.out}, ring: newRing(size),
		started: started, drained: make(chan struct{}), done: make(chan struct{}), linger: DefaultLinger,
	}
}

func (c *child) Pid() int              { return c.handle.pid }
func (c *child) Stdin() io.WriteCloser { return c.in }
func (c *child) Stdout() io.Reader     { return c.out }
func (c *child) Tail() []byte          { return c.ring.tail() }
func (c *child) Done() <-chan struct{} { return c.done }

// Exit is the zero value before Done is closed.
func (c *child) Exit() Exit {
	if !ended(c) {
		return Exit{}
	}
	return c.exit
}

// Signal reaches the group or job; Kill also reaches marked descendants that left it. After the end it returns
// os.ErrProcessDone.
func (c *child) Signal(l Level) error {
	c.mu.Lock()
	c.requested = true
	c.mu.Unlock()
	return c.handle.signal(l)
}

func (c *child) expectStop(g Grace) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requested, c.linger = true, g.Term
}

func (c *child) patience() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.linger
}

// drain takes stderr until its end, whatever the child writes (STD-07).
func (c *child) drain(stderr *os.File, emit func([]byte)) {
	defer close(c.drained)
	defer stderr.Close()
	var cut *lineCutter
	if emit != nil {
		cut = &lineCutter{max: MaxStderrLine, emit: emit}
		defer cut.close()
	}
	buf := make([]byte, 8<<10)
	for {
		n, err := stderr.Read(buf)
		c.ring.write(buf[:n])
		if cut != nil {
			cut.write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// wait sees the child to its end: the leader, then what it left behind, then the leader's status, which frees its number
// and therefore comes last (case 19).
func (c *child) wait(stderr *os.File, owner *osSpawner) {
	c.handle.awaitExit()
	exit := Exit{Runtime: time.Since(c.started)}
	c.mu.Lock()
	exit.Requested = c.requested
	c.mu.Unlock()
	exit.Survivors = c.handle.endTree(c.patience)
	owner.guard.remove(c.handle.pid)
	exit.Code, exit.Signal, exit.Err = c.handle.reap()
	owner.own(c.handle.pid, false)
	c.out.ended()
	_ = stderr.SetReadDeadline(time.Now().Add(survivorWait))
	<-c.drained
	exit.Stderr = lastLines(c.ring.tail(), MaxExitLines)
	_ = c.in.Close()
	owner.launcher.release()
	c.exit = exit
	close(c.done)
}
