//go:build unix

package procman

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// handle is a child that leads its own process group.
type handle struct {
	proc   *os.Process
	pid    int
	marker string
	state  *os.ProcessState // written by the goroutine that waits
	err    error            // as state

	mu     sync.Mutex
	reaped bool // guarded by mu; from then on the numbers may be somebody else's
}

// startProcess starts the child with its three files and nothing else of the bridge's.
func startProcess(path string, spec Spec, env []string, files []*os.File, attr *syscall.SysProcAttr) (*handle, error) {
	proc, err := os.StartProcess(path, spec.argv(), &os.ProcAttr{Dir: spec.Dir, Env: env, Files: files, Sys: attr})
	if err != nil {
		return nil, err
	}
	return &handle{proc: proc, pid: proc.Pid}, nil
}

func (l Level) signal() unix.Signal {
	if l == Kill {
		return unix.SIGKILL
	}
	return unix.SIGTERM
}

// signal reaches the group, and with Kill what left it.
func (h *handle) signal(l Level) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reaped {
		return os.ErrProcessDone
	}
	err := unix.Kill(-h.pid, l.signal())
	if err == unix.ESRCH { // the leader has joined another group
		err = unix.Kill(h.pid, l.signal())
	}
	if l == Kill {
		killMarked(h.marker)
	}
	if err != nil {
		return os.NewSyscallError("kill", err)
	}
	return nil
}

// reap waits for the leader, which has ended, and returns its status.
func (h *handle) reap() (code int, sig string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reaped = true
	if h.state == nil && h.err == nil {
		h.state, h.err = h.proc.Wait()
	}
	if h.err != nil {
		return -1, "", h.err
	}
	if ws, ok := h.state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -1, unix.SignalName(ws.Signal()), nil
	}
	return h.state.ExitCode(), "", nil
}
