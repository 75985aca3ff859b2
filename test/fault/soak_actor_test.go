package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// actor is one of the clients of the soak, one after the other.
type actor struct {
	*soak
	rand *rand.Rand
	name string
	n    int // calls so far
}

// act does one thing that clients do.
func (a *actor) act() {
	name := a.names[a.rand.IntN(len(a.names))]
	switch dice := a.rand.IntN(10); {
	case dice < 4:
		a.visit(name)
	case dice < 7:
		a.several(name, modern{a.client[name]})
	case dice < 9:
		a.vanish(name)
	default:
		a.comeBack()
	}
}

// begin opens a session, which may fail.
func (a *actor) begin(name string) *visit {
	s, opened := a.client[name].initialize(context.Background())
	a.tally.add(name, opened)
	if s == nil {
		return nil
	}
	a.tally.session()
	return &visit{s, name, opened.began}
}

// visit opens a session, uses it, and is not seen again, or only after a while.
func (a *actor) visit(name string) {
	v := a.begin(name)
	if v == nil {
		return
	}
	if a.rand.IntN(3) == 0 {
		defer a.stream(v.session)()
	}
	a.several(name, v)
	if a.rand.IntN(3) == 0 {
		a.mu.Lock()
		a.old = append(a.old, v)
		a.mu.Unlock()
	}
}

// stream opens a GET stream and returns what cuts it.
func (a *actor) stream(s *session) (cut func()) {
	ctx, cancel := context.WithCancel(context.Background())
	resp, err := s.get(ctx)
	if err != nil {
		a.tally.problem("a stream got no answer: " + err.Error())
		return cancel
	}
	return func() {
		cancel()
		resp.Body.Close()
	}
}

// several calls a few times.
func (a *actor) several(name string, c caller) {
	for range 1 + a.rand.IntN(4) {
		a.echo(name, c)
	}
	if a.rand.IntN(2) == 0 {
		a.n++
		a.note(name, c, c.call(context.Background(), fmt.Sprint(a.n), "sleep", `{"ms":200}`))
	}
}

func (a *actor) echo(name string, c caller) {
	a.n++
	a.note(name, c, echo(context.Background(), c, fmt.Sprint(a.n), fmt.Sprintf("%s call %d at %s", a.name, a.n, name)))
}

// note counts an answer. A session may be unknown once it was not used for the idle time, and not before.
func (a *actor) note(name string, c caller, got answer) {
	if v, ok := c.(*visit); ok {
		end := got.began.Add(got.took)
		lay := end.Sub(v.last)
		v.last = got.began
		if got.kind == failure && got.status == http.StatusNotFound {
			a.tally.expire()
			if lay < soakIdle {
				a.tally.problem(fmt.Sprintf("%s: a session used %v before is gone: %v", name, lay, got))
			}
			return
		}
	}
	a.tally.add(name, got)
}

// vanish leaves in the middle of a call.
func (a *actor) vanish(name string) {
	var c caller = modern{a.client[name]}
	if a.rand.IntN(2) == 0 {
		v := a.begin(name)
		if v == nil {
			return
		}
		c = v
	}
	ctx, leave := context.WithTimeout(context.Background(), time.Duration(10+a.rand.IntN(100))*time.Millisecond)
	defer leave()
	a.n++
	a.note(name, c, c.call(ctx, fmt.Sprint(a.n), "sleep", `{"ms":5000}`))
}

// comeBack uses a session that was left some time ago; it may have expired.
func (a *actor) comeBack() {
	a.mu.Lock()
	if len(a.old) == 0 {
		a.mu.Unlock()
		return
	}
	i := a.rand.IntN(len(a.old))
	v := a.old[i]
	a.old = slices.Delete(a.old, i, i+1)
	a.mu.Unlock()
	a.echo(v.server, v)
}

// tally counts what became of the calls of all actors.
type tally struct {
	mu       sync.Mutex
	sessions int
	expired  int
	left     int
	steady   outcome
	frail    outcome
	problems []string // what must not happen
}

// outcome counts the calls of one half of the servers.
type outcome struct {
	results  int
	failures map[string]int // by reason
}

func (y *tally) add(server string, a answer) {
	y.mu.Lock()
	defer y.mu.Unlock()
	half := &y.steady
	if frail(server) {
		half = &y.frail
	}
	switch a.kind {
	case result:
		half.results++
	case failure:
		if half.failures == nil {
			half.failures = map[string]int{}
		}
		half.failures[a.reason]++
		if half == &y.steady && a.reason != "overload" {
			y.problems = append(y.problems, server+" failed: "+a.String())
		}
	case wrong:
		y.problems = append(y.problems, server+": "+a.String())
	case left:
		y.left++
	}
}

func (y *tally) session() { y.count(&y.sessions) }
func (y *tally) expire()  { y.count(&y.expired) }

func (y *tally) count(n *int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	*n++
}

func (y *tally) problem(text string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.problems = append(y.problems, text)
}

// judge wants no wrong answer, and enough of everything that the run says something.
func (y *tally) judge(t *testing.T, sessions int) {
	t.Helper()
	t.Logf("%d sessions, %d found expired, %d calls left; steady servers %+v, frail ones %+v", y.sessions, y.expired, y.left, y.steady, y.frail)
	const shown = 20
	for i, p := range y.problems {
		if i == shown {
			t.Errorf("and %d more problems", len(y.problems)-shown)
			break
		}
		t.Error(p)
	}
	if y.sessions < sessions {
		t.Errorf("%d sessions were opened, want at least %d", y.sessions, sessions)
	}
	if y.left == 0 || y.expired == 0 || y.frail.failures["back_terminated"] == 0 || y.frail.results == 0 {
		t.Error("nobody left, no session expired, or no server crashed: this shows little")
	}
	if refused := y.steady.failures["overload"]; refused > y.steady.results/10 {
		t.Errorf("%d calls of steady servers were refused and %d served", refused, y.steady.results)
	}
}
