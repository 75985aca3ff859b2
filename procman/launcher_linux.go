package procman

import (
	"os"
	"runtime"
	"sync"
	"syscall"
)

// launcher forks all children from one thread. The kernel kills a child when the thread that forked it ends
// (PDEATHSIG), and Go ends threads as it likes, so the thread is held by a goroutine that stays as long as a child does.
type launcher struct {
	mu    sync.Mutex
	users int         // guarded by mu; children, and starts under way
	work  chan func() // guarded by mu; nil without users
}

// acquire makes sure of the thread until release.
func (l *launcher) acquire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users++; l.users == 1 {
		l.work = make(chan func())
		go serveThread(l.work)
	}
}

func (l *launcher) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users == 0 {
		close(l.work)
		l.work = nil
	}
}

// serveThread returns without unlocking, which ends the thread; by then it has no children.
func serveThread(work <-chan func()) {
	runtime.LockOSThread()
	for f := range work {
		f()
	}
}

// start starts the child. The caller holds the thread.
func (l *launcher) start(path string, spec Spec, env []string, files []*os.File) (h *handle, err error) {
	l.mu.Lock()
	work := l.work
	l.mu.Unlock()
	done := make(chan struct{})
	work <- func() {
		defer close(done)
		attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		h, err = startProcess(path, spec, env, files, attr)
	}
	<-done
	return h, err
}
