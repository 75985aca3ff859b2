package procman_test

import (
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpbridge/procman"
)

// fakeProc is a process without an operating system. It ends when its script says so.
type fakeProc struct {
	pid    int
	begun  time.Time
	onStep map[string]time.Duration // "eof", "terminate", "kill": ends that long after the step; absent: ignored

	mu    sync.Mutex
	steps []string // "eof@2s": what was done to it, when
	done  chan struct{}
	exit  procman.Exit
	over  bool
	extra error // returned by Signal(Terminate)
}

func newFakeProc(pid int, onStep map[string]time.Duration) *fakeProc {
	return &fakeProc{pid: pid, begun: time.Now(), onStep: onStep, done: make(chan struct{})}
}

// obedient ends at once when its stdin closes.
func obedient(pid int) *fakeProc { return newFakeProc(pid, map[string]time.Duration{"eof": 0}) }

func (p *fakeProc) end(e procman.Exit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.over = true
	e.Runtime = time.Since(p.begun)
	p.exit = e
	close(p.done)
}

func (p *fakeProc) crash() { p.end(procman.Exit{Code: 3}) }

func (p *fakeProc) step(name string) {
	p.mu.Lock()
	p.steps = append(p.steps, name+"@"+time.Since(p.begun).String())
	delay, ok := p.onStep[name]
	p.mu.Unlock()
	if ok {
		time.AfterFunc(delay, func() { p.end(procman.Exit{Requested: true}) })
	}
}

func (p *fakeProc) did() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.steps)
}

func (p *fakeProc) Pid() int              { return p.pid }
func (p *fakeProc) Stdin() io.WriteCloser { return fakeStdin{p} }
func (p *fakeProc) Stdout() io.Reader     { return strings.NewReader("") }
func (p *fakeProc) Tail() []byte          { return nil }
func (p *fakeProc) Done() <-chan struct{} { return p.done }

func (p *fakeProc) Exit() procman.Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

func (p *fakeProc) Signal(l procman.Level) error {
	if l == procman.Terminate && p.extra != nil {
		return p.extra
	}
	p.step(l.String())
	return nil
}

type fakeStdin struct{ p *fakeProc }

func (fakeStdin) Write(b []byte) (int, error) { return len(b), nil }
func (s fakeStdin) Close() error              { s.p.step("eof"); return nil }

// fakeSpawner hands out what its script makes and remembers when.
type fakeSpawner struct {
	make func(n int) (procman.Process, error) // n counts from 1

	mu    sync.Mutex
	begun time.Time
	at    []time.Duration
}

func newFakeSpawner(make func(n int) (procman.Process, error)) *fakeSpawner {
	return &fakeSpawner{make: make, begun: time.Now()}
}

func (s *fakeSpawner) Spawn(procman.Spec) (procman.Process, error) {
	s.mu.Lock()
	s.at = append(s.at, time.Since(s.begun))
	n := len(s.at)
	s.mu.Unlock()
	return s.make(n)
}

func (s *fakeSpawner) times() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.at)
}

// recorder keeps events.
type recorder struct {
	mu     sync.Mutex
	events []procman.Event
}

func (r *recorder) add(e procman.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, e := range r.events {
		names = append(names, e.Name)
	}
	return names
}

func (r *recorder) last() procman.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[len(r.events)-1]
}

// named returns the events of one name.
func (r *recorder) named(name string) []procman.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.events), func(e procman.Event) bool { return e.Name != name })
}
