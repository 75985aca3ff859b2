package fault

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// bothEras are a caller of each era at one endpoint.
func bothEras(t *testing.T, url string) map[string]caller {
	t.Helper()
	c := newClient(t, url)
	return map[string]caller{"modern": modern{c}, "legacy": c.open(t)}
}

// Case 27: clients that leave in the middle of a call take nobody along: the others are answered, by the same bridge.
func TestCase27ClientsLeave(t *testing.T) {
	t.Parallel()
	const calls = 200
	h := house(t, object{"s": server(t, "-dual").with(object{"isolation": "shared"})}, nil)
	b := h.Start(t)
	eras := bothEras(t, h.URL("s"))
	gone, leave := context.WithCancel(t.Context())
	defer leave()
	answers := make(chan answer, calls)
	for n := range calls {
		c, ctx := eras["modern"], t.Context()
		if n%4 < 2 {
			c = eras["legacy"]
		}
		if n%2 == 0 {
			ctx = gone
		}
		go func() { answers <- c.call(ctx, fmt.Sprint(n), "sleep", fmt.Sprintf(`{"ms":%d}`, 1000+n)) }()
	}
	time.AfterFunc(300*time.Millisecond, leave)
	count := map[kind]int{}
	for range calls {
		a := <-answers
		count[a.kind]++
		if a.kind == failure || a.kind == wrong {
			t.Errorf("got %v", a)
		}
	}
	if count[left] != calls/2 || count[result] != calls/2 {
		t.Errorf("%d left and %d were answered, of %d", count[left], count[result], calls)
	}
	tenantLives(t, b)
	for era, c := range eras {
		if a := echo(t.Context(), c, `"after"`, "x"); a.kind != result {
			t.Errorf("the next %s call got %v", era, a)
		}
	}
}

// Case 27, the other side: a server that closes its input and lives on is ended; the next call gets one error or is
// served, and then one that serves is there.
func TestCase27DeafServer(t *testing.T) {
	t.Parallel()
	h := house(t, object{"s": server(t).with(object{"restart": object{"initial": "10ms"}})}, nil)
	b := h.Start(t)
	for era, c := range bothEras(t, h.URL("s")) {
		wantResult(t, c.call(t.Context(), "1", "deaf", "{}"))
		eventually(t, patience, era+" is served", func() bool {
			a := echo(t.Context(), c, "2", "x")
			if a.kind == wrong {
				t.Fatal(a)
			}
			return a.kind == result
		})
	}
	tenantLives(t, b)
}

// Case 28: calls that come while a server takes its time to start wait for that one start, longer than the era probe.
func TestCase28SlowStart(t *testing.T) {
	t.Parallel()
	const calls = 5
	start := 6 * time.Second
	if _, ok := long(t); ok {
		start = 25 * time.Second
	}
	pidFile := filepath.Join(t.TempDir(), "pids")
	h := house(t, object{"s": server(t, "-wait", start.String(), "-pidfile", pidFile)}, nil)
	h.Start(t)
	c := modern{newClient(t, h.URL("s"))}
	began := time.Now()
	answers := make(chan answer, calls)
	for n := range calls {
		go func() {
			answers <- c.askWithin(t.Context(), start+patience, fmt.Sprint(n), modernHeader("sleep"), modernCall(fmt.Sprint(n), "sleep", fmt.Sprintf(`{"ms":%d}`, n)))
		}()
	}
	for range calls {
		if a := <-answers; a.kind != result {
			t.Errorf("got %v", a)
		}
	}
	if took := time.Since(began); took < start || took > start+5*time.Second {
		t.Errorf("answered after %v, the start takes %v", took, start)
	}
	if n := len(pids(t, pidFile)); n != 1 {
		t.Errorf("%d processes were started", n)
	}
}

// Case 85: a slow call holds up nobody, neither at its own server nor at another one.
func TestCase85SlowCallBlocksNobody(t *testing.T) {
	t.Parallel()
	const quick, slow = 20, 3 * time.Second
	h := house(t, object{"a": server(t, "-dual").with(object{"isolation": "shared"}), "b": server(t)}, nil)
	h.Start(t)
	a, b := bothEras(t, h.URL("a")), bothEras(t, h.URL("b"))
	began := time.Now()
	waiting := make(chan answer, len(a))
	for _, c := range a {
		wantResult(t, echo(t.Context(), c, "1", "it runs"))
		go func() {
			waiting <- c.call(t.Context(), `"slow"`, "sleep", fmt.Sprintf(`{"ms":%d}`, slow.Milliseconds()))
		}()
	}
	for n := range quick {
		for _, eras := range []map[string]caller{a, b} {
			for era, c := range eras {
				one := echo(t.Context(), c, fmt.Sprint(10+n), fmt.Sprint("quick ", n))
				if wantResult(t, one); one.took > 500*time.Millisecond {
					t.Errorf("a quick %s call took %v", era, one.took)
				}
			}
		}
	}
	if time.Since(began) > slow {
		t.Errorf("the quick calls took longer than the slow one: this shows nothing")
	}
	for range a {
		wantResult(t, <-waiting)
	}
}
