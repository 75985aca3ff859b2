package fault

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpbridge/test/internal/rig"
)

const (
	callers = 16
	kills   = 3
	// healthy is how long a server has run when it is killed, so that nothing is held against it. It is longer than the
	// first pause of the restart policy.
	healthy = time.Second
	// recovery is what the bridge may add to a server's own start before it serves again (design 6).
	recovery = 100 * time.Millisecond
)

// crowd is a way in which several callers come to one process.
type crowd struct {
	name  string
	entry object
	join  func(t *testing.T, c *client) caller // called once for each caller
	alone bool                                 // all callers are the first one
}

func crowds() []crowd {
	legacy := func(t *testing.T, c *client) caller { return c.open(t) }
	return []crowd{
		{"one legacy session", object{}, legacy, true},
		{"legacy sessions that share", object{"isolation": "shared"}, legacy, false},
		{"modern", object{}, func(_ *testing.T, c *client) caller { return modern{c} }, false},
	}
}

// join makes the callers.
func (c crowd) callers(t *testing.T, to *client) []caller {
	t.Helper()
	list := make([]caller, callers)
	for i := range list {
		if list[i] = list[0]; i == 0 || !c.alone {
			list[i] = c.join(t, to)
		}
	}
	return list
}

// Acceptance 1, under load: callers that call without a pause lose what was in flight when the server is killed, each call
// with exactly one error, and nothing else: after its error every caller is served by its next call, in the same session.
// No answer is wrong, none stays out. The median of the kills is held against the time of the design, because the machine
// that runs the tests does other things meanwhile.
func TestKilledChildUnderLoad(t *testing.T) {
	needProc(t)
	own := ownStart(t)
	for _, c := range crowds() {
		t.Run(c.name, func(t *testing.T) {
			pidFile := filepath.Join(t.TempDir(), "pids")
			h := house(t, object{"s": server(t, "-pidfile", pidFile).with(c.entry).with(object{"restart": object{"resetAfter": healthy.String()}})}, nil)
			h.Start(t)
			list := c.callers(t, newClient(t, h.URL("s")))
			l := startLoad(t, list)
			var took []time.Duration
			for range kills {
				took = append(took, l.kill(t, pidFile))
			}
			l.finish(t)
			slices.Sort(took)
			if limit := recovery + own; took[kills/2] > limit {
				t.Errorf("served again after %v, want %v (a server's own start takes %v)", took, limit, own)
			}
			if n := len(pids(t, pidFile)); n != kills+1 {
				t.Errorf("%d processes were started, want one and one for each kill", n)
			}
		})
	}
}

// load is a crowd that calls without a pause until it is told to stop.
type load struct {
	stop    context.CancelFunc
	wg      sync.WaitGroup
	callers []*loader
}

// loader is one of them.
type loader struct {
	caller
	served atomic.Int64 // calls that were answered with a result
	since  atomic.Pointer[mark]

	mu       sync.Mutex
	failures int      // guarded by mu
	problems []string // guarded by mu; what must not happen
}

// mark asks for the first call begun after a moment that is answered with a result.
type mark struct {
	at    time.Time
	first chan answer // buffered
}

func startLoad(t *testing.T, list []caller) *load {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{stop: stop}
	t.Cleanup(func() { stop(); l.wg.Wait() })
	for i, c := range list {
		one := &loader{caller: c}
		l.callers = append(l.callers, one)
		l.wg.Go(func() { one.run(ctx, i) })
	}
	return l
}

func (l *loader) run(ctx context.Context, number int) {
	failed := false
	for n := 0; ctx.Err() == nil; n++ {
		a := l.next(ctx, number, n)
		l.mu.Lock()
		switch {
		case a.kind == left:
		case a.kind == wrong:
			l.problems = append(l.problems, a.String())
		case a.kind == failure && failed:
			l.problems = append(l.problems, "the call after a failure fails too: "+a.String())
		case a.kind == failure && a.reason != "back_terminated":
			l.problems = append(l.problems, "fails for another reason: "+a.String())
		case a.kind == failure:
			l.failures++
		}
		l.mu.Unlock()
		failed = a.kind == failure
		if a.kind == result {
			l.served.Add(1)
			if m := l.since.Load(); m != nil && a.began.After(m.at) && l.since.CompareAndSwap(m, nil) {
				m.first <- a
			}
		}
	}
}

// next makes a call. Some callers make calls that take a while, so that something is in flight at every kill.
func (l *loader) next(ctx context.Context, number, n int) answer {
	id := fmt.Sprintf(`"%d-%d"`, number, n)
	if number%4 == 3 {
		return l.call(ctx, id, "sleep", `{"ms":20}`)
	}
	return echo(ctx, l, id, fmt.Sprintf("caller %d call %d", number, n))
}

// kill ends the server in the middle of the load and returns how long it took until the first call begun after that was
// answered. It waits until all callers are served again.
func (l *load) kill(t *testing.T, pidFile string) time.Duration {
	t.Helper()
	const between = 20 // calls of each, so that the server is well before it dies
	target := make([]int64, len(l.callers))
	for i, c := range l.callers {
		target[i] = c.served.Load() + between
	}
	uptime := time.Now().Add(healthy)
	eventually(t, patience, "all callers are served", func() bool {
		for i, c := range l.callers {
			if c.served.Load() < target[i] {
				return false
			}
		}
		return time.Now().After(uptime)
	})
	list := pids(t, pidFile)
	kill(t, list[len(list)-1])
	m := &mark{time.Now(), make(chan answer, len(l.callers))}
	for _, c := range l.callers {
		c.since.Store(m)
	}
	var first time.Duration
	for range l.callers {
		select {
		case a := <-m.first:
			if first == 0 {
				first = a.began.Add(a.took).Sub(m.at)
			}
		case <-time.After(patience):
			t.Fatal("not all callers are served after the server was killed")
		}
	}
	return first
}

func (l *load) finish(t *testing.T) {
	t.Helper()
	l.stop()
	l.wg.Wait()
	failures := 0
	for i, c := range l.callers {
		failures += c.failures
		for _, p := range c.problems {
			t.Errorf("caller %d: %s", i, p)
		}
		if c.failures > kills {
			t.Errorf("caller %d had %d failures in %d kills", i, c.failures, kills)
		}
	}
	if failures == 0 {
		t.Error("no call failed: the server was not killed under load")
	}
}

// Acceptance 1, with calls that wait: each of them gets exactly one error, at once, and the session with its open stream
// goes on.
func TestKilledChildFailsWhatWaits(t *testing.T) {
	needProc(t)
	own := ownStart(t)
	for _, c := range crowds() {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			pidFile, seen := filepath.Join(dir, "pids"), filepath.Join(dir, "seen")
			h := house(t, object{"s": server(t, "-pidfile", pidFile, "-log", seen).with(c.entry)}, nil)
			h.Start(t)
			list := c.callers(t, newClient(t, h.URL("s")))
			var stream <-chan struct{}
			if s, ok := list[0].(*session); ok {
				stream = s.listen(t)
			}
			started := time.Now()
			answers := make(chan answer, callers)
			for i, one := range list {
				go func() { answers <- one.call(t.Context(), fmt.Sprint(100+i), "sleep", `{"ms":60000}`) }()
			}
			eventually(t, patience, "all calls are at the server", func() bool {
				text, _ := os.ReadFile(seen)
				return strings.Count(string(text), "tools/call") == callers && time.Since(started) > healthy
			})
			running := pids(t, pidFile)
			kill(t, running[len(running)-1])
			killed := time.Now()
			for range callers {
				if a := <-answers; a.kind != failure || a.reason != "back_terminated" {
					t.Errorf("a call in flight got %v, want one error back_terminated", a)
				} else if d := a.began.Add(a.took).Sub(killed); d > time.Second {
					t.Errorf("a call in flight got its error after %v", d)
				}
			}
			again := make(chan answer, callers)
			for i, one := range list {
				go func() { again <- echo(t.Context(), one, fmt.Sprint(i), fmt.Sprint("again ", i)) }()
			}
			for range callers {
				if a := <-again; a.kind != result || a.took > recovery+own+time.Second {
					t.Errorf("the next call got %v", a)
				}
			}
			if n := len(pids(t, pidFile)); n != len(running)+1 {
				t.Errorf("%d processes were started after the kill, want 1", n-len(running))
			}
			select {
			case <-stream:
				t.Error("the stream of the session has ended")
			default:
			}
		})
	}
}

// ownStart is how long the fixture server takes from exec to its answer to initialize, without a bridge: the longest of a few.
func ownStart(t *testing.T) time.Duration {
	t.Helper()
	var longest time.Duration
	for range 5 {
		began := time.Now()
		cmd := exec.Command(fixture(t))
		cmd.Stdin = strings.NewReader(hello + "\n")
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Since(began))
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}
	return longest
}

// tenantLives fails the test if the bridge has exited.
func tenantLives(t testing.TB, b *rig.Tenant) {
	t.Helper()
	if b.Gone() {
		t.Errorf("the bridge has exited\n%s", b.Log())
	}
}
