package procman

import (
	"os"
	"sync"
	"time"
)

// OS returns the spawner of real processes. There is one in a program: its guard and its forking thread belong to the
// program as a whole, and both exist only while a child does.
func OS() Spawner { return system }

// system is the one instance. It is package level because what it stands for, this process, is.
var system = &osSpawner{}

// osSpawner starts processes of the operating system.
type osSpawner struct {
	launcher launcher // the platform's way to fork
	guard    guard

	mu   sync.Mutex
	kids map[int]bool // guarded by mu; children that are ours to reap
}

// own notes that a child is ours to reap, or no longer.
func (o *osSpawner) own(pid int, ours bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kids == nil {
		o.kids = map[int]bool{}
	}
	if ours {
		o.kids[pid] = true
	} else {
		delete(o.kids, pid)
	}
}

// Spawn implements [Spawner].
func (o *osSpawner) Spawn(spec Spec) (Process, error) {
	path, err := resolve(spec)
	if err != nil {
		return nil, err
	}
	ours, theirs, perr := openPipes(spec.PipeSize)
	if perr != nil {
		return nil, explain(spec, path, perr)
	}
	marker := newMarker(spec.Mark)
	started := time.Now()
	o.launcher.acquire()
	h, serr := o.launcher.start(path, spec, childEnv(spec.Env, marker), []*os.File{theirs.in, theirs.out, theirs.err})
	theirs.close()
	if serr != nil {
		o.launcher.release()
		ours.close()
		return nil, explain(spec, path, serr)
	}
	h.marker = marker
	o.own(h.pid, true)
	o.guard.add(h.pid, marker)
	c := newChild(spec, h, ours, started)
	go c.drain(ours.err, spec.lines(h.pid))
	go c.wait(ours.err, o)
	return c, nil
}

// lines is who takes the lines of stderr of a process, nil for nobody.
func (s Spec) lines(pid int) func([]byte) {
	if s.Stderr == nil {
		return nil
	}
	return func(line []byte) { s.Stderr(pid, line) }
}

// argv is what the child sees as its arguments.
func (s Spec) argv() []string { return append([]string{s.Command}, s.Args...) }
