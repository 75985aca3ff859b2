//go:build unix

package procman

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	guardName = "mcpbridge-guard" // argv[0] of the guard
	guardVar  = "MCPBRIDGE_GUARD" // its environment holds this as "1" and nothing of the bridge's
)

// guardRetry is the least time between the starts of two guards: one that cannot live is not started in a loop.
const guardRetry = time.Second

// guardWrite is how long a guard may take to read what it is told, before it counts as dead.
const guardWrite = time.Second

// guard is the bridge's side of its guard process, which lives as long as there are children. The guard learns of each
// child through a pipe; the end of the pipe is the end of the bridge.
type guard struct {
	armed atomic.Bool // the program calls MaybeGuard, so it may be started as a guard

	mu   sync.Mutex
	live map[int]string // guarded by mu; marker of each child by its group
	proc *guardProc     // guarded by mu; nil while there is none
}

// guardProc is one guard process.
type guardProc struct {
	pipe    *os.File
	proc    *os.Process
	started time.Time
}

// MaybeGuard must be the first thing main does. In a process that was started as a guard it does the guard's work and
// ends the process; otherwise it returns at once, and from then on children are guarded. A program that does not call it
// (a test of something else) has no guard, for a guard in it would be the program again.
func MaybeGuard() {
	if len(os.Args) > 0 && os.Args[0] == guardName && os.Getenv(guardVar) == "1" {
		runGuard(os.Stdin)
		syscall.Exit(0) // there is nothing to flush or to report
	}
	system.guard.armed.Store(true)
}

// add tells the guard of a child. The first child does not wait for the guard to start.
func (g *guard) add(group int, marker string) {
	if !g.armed.Load() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.live == nil {
		g.live = map[int]string{}
	}
	g.live[group] = marker
	if g.proc == nil {
		go g.ensure()
		return
	}
	g.tellLocked('+', group, marker)
}

// remove tells the guard that a group is done with. With the last one the guard is let go.
func (g *guard) remove(group int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.live[group]; !ok {
		return
	}
	delete(g.live, group)
	if g.proc == nil {
		return
	}
	g.tellLocked('-', group, "")
	if len(g.live) == 0 && g.proc != nil {
		g.dropLocked()
	}
}

// dropLocked closes the pipe, at which the guard ends.
func (g *guard) dropLocked() {
	_ = g.proc.pipe.Close()
	g.proc = nil
}

// tellLocked writes one line to the guard. A guard that does not take it is ended; its waiter starts another one.
func (g *guard) tellLocked(op byte, group int, marker string) {
	_ = g.proc.pipe.SetWriteDeadline(time.Now().Add(guardWrite))
	if _, err := fmt.Fprintf(g.proc.pipe, "%c %d %q\n", op, group, marker); err != nil {
		_ = g.proc.proc.Kill()
	}
}

// ensure starts a guard if there is none but children are, and tells it of them all. A guard that cannot be started
// leaves the children with what the kernel does for them; the next child tries again.
func (g *guard) ensure() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.proc != nil || len(g.live) == 0 {
		return
	}
	proc, err := startGuard()
	if err != nil {
		return
	}
	g.proc = proc
	for group, marker := range g.live {
		g.tellLocked('+', group, marker)
	}
	go g.wait(proc)
}

// wait reaps a guard. One that ended before its time is replaced.
func (g *guard) wait(p *guardProc) {
	h := handle{proc: p.proc, pid: p.proc.Pid}
	h.awaitExit()
	_, _, _ = h.reap()
	g.mu.Lock()
	lost := g.proc == p
	if lost {
		g.dropLocked()
	}
	g.mu.Unlock()
	if lost {
		time.Sleep(guardRetry - time.Since(p.started))
		g.ensure()
	}
}

// startGuard starts this program once more, in a session of its own so that no terminal reaches it.
func startGuard() (*guardProc, error) {
	exe, err := selfExecutable()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	defer null.Close()
	proc, err := os.StartProcess(exe, []string{guardName}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{guardVar + "=1", "GOMAXPROCS=1"},
		Files: []*os.File{r, null, null},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	return &guardProc{pipe: w, proc: proc, started: time.Now()}, nil
}

// guardTerm and guardLimit bound the guard's work after the bridge has died: from asking to killing, and in all.
const (
	guardTerm  = 1500 * time.Millisecond
	guardLimit = 4500 * time.Millisecond
)

// runGuard is the guard: it reads which groups there are until the pipe ends, and then ends those groups.
func runGuard(pipe io.Reader) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	groups := readGroups(pipe)
	if len(groups) == 0 {
		return
	}
	time.AfterFunc(guardLimit, func() { syscall.Exit(1) })
	list, markers := make([]int, 0, len(groups)), make([]string, 0, len(groups))
	for group, marker := range groups {
		list = append(list, group)
		if marker != "" {
			markers = append(markers, marker)
		}
	}
	endOrphans(list, markers, func() time.Duration { return guardTerm })
}

// readGroups follows the bridge's lines and returns the groups that were there at the end of the pipe.
func readGroups(pipe io.Reader) map[int]string {
	groups := map[int]string{}
	lines := bufio.NewReader(pipe)
	for {
		var op rune
		var group int
		var marker string
		if _, err := fmt.Fscanf(lines, "%c %d %q\n", &op, &group, &marker); err != nil {
			return groups
		}
		if op == '+' {
			groups[group] = marker
		} else {
			delete(groups, group)
		}
	}
}
