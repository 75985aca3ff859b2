package back_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge/back"
	"mcpbridge/bridge/mcp"
	"mcpbridge/procman"
)

// warm has a back keep its process started until the returned function is called, which returns what Warm did.
func warm(t *testing.T, r *rig) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Warm(ctx) }()
	synctest.Wait()
	return func() error { cancel(); return <-done }
}

// A warm process is started, is told nothing, and is the one that Open takes, also while Warm still looks after it.
func TestWarm(t *testing.T) {
	for _, stopped := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(serve(legacy))
			defer r.end(t)
			stop := warm(t, r)
			time.Sleep(time.Hour)
			if state, _ := r.Status(); state != procman.Running || len(r.machine.methods()) != 0 {
				t.Errorf("state %v, it was sent %v", state, r.machine.methods())
			}
			if stopped {
				if err := stop(); err != nil {
					t.Error(err)
				}
				if state, _ := r.Status(); state != procman.Running {
					t.Errorf("state %v: the process is for Open", state)
				}
			}
			r.mustOpen(t, mcp.Legacy, mcp.Legacy)
			synctest.Wait()
			if n := r.machine.starts(); n != 1 {
				t.Errorf("%d processes", n)
			}
			if !stopped {
				if err := stop(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Once Open has taken it, Warm starts nothing any more.
func TestWarmEndsWithOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *child) procman.Exit { legacyOnce(c); return exits(3) })
		defer r.end(t)
		done := make(chan error, 1)
		go func() { done <- r.Warm(t.Context()) }()
		synctest.Wait()
		c := r.mustOpen(t, mcp.Legacy, mcp.Legacy)
		if err := <-done; err != nil {
			t.Error(err)
		}
		<-c.Done()
		time.Sleep(time.Hour)
		if n := r.machine.starts(); n != 1 {
			t.Errorf("%d processes", n)
		}
	})
}

// Close ends what nobody took.
func TestWarmAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(serve(legacy))
		done := make(chan error, 1)
		go func() { done <- r.Warm(t.Context()) }()
		synctest.Wait()
		r.end(t)
		<-done
		if !isOver(r.machine.child(1)) || r.machine.starts() != 1 {
			t.Errorf("%d processes, the first one over: %v", r.machine.starts(), isOver(r.machine.child(1)))
		}
		if err := r.Gone(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A server that leaves because nobody greets it is started again and again, with the back-off; it does not open the
// breaker, and Open need not wait.
func TestWarmServerThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(func(c *child) procman.Exit {
			greeted := make(chan struct{})
			time.AfterFunc(2*time.Second, func() {
				select {
				case <-greeted:
				default:
					_ = c.Signal(procman.Kill)
				}
			})
			q, ok := c.read()
			if !ok {
				return exits(4)
			}
			close(greeted)
			legacy(c, q)
			return serve(legacy)(c)
		})
		r := s.back()
		defer r.end(t)
		stop := warm(t, r)
		time.Sleep(10 * time.Minute)
		if n := s.machine.starts(); n > 30 || n < 10 {
			t.Errorf("%d starts in ten minutes, want about one in 30 s", n)
		}
		if why := s.breaker.Why(); why != "" {
			t.Error(why)
		}
		if state, st := r.Status(); state != procman.Backoff || st.Restarts != 0 {
			t.Errorf("state %v, %d restarts", state, st.Restarts)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		began := time.Now()
		r.mustOpen(t, mcp.Legacy, mcp.Legacy)
		if took := time.Since(began); took != 0 {
			t.Errorf("open after %v", took)
		}
	})
}

// absent is a spawner without a program.
type absent struct{ tries int }

func (a *absent) Spawn(procman.Spec) (procman.Process, error) {
	a.tries++
	return nil, &procman.StartError{Spec: procman.Spec{Name: "srv"}, Permanent: true, Hint: "see hunter2000", Err: fs.ErrNotExist}
}

// What cannot be started is an error at once.
func TestWarmOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := &absent{}
		r := newRig(nil, masked, func(cfg *back.StdioConfig) { cfg.Spawner = none })
		defer r.end(t)
		began := time.Now()
		err := r.Warm(t.Context())
		if err == nil || !strings.Contains(err.Error(), "not exist; see ***") || time.Since(began) != 0 || none.tries != 1 {
			t.Errorf("after %v and %d tries: %v", time.Since(began), none.tries, err)
		}
	})
}

// Nothing is warmed of a server that does not come up.
func TestWarmWaitsForTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken = errors.New("broken")
		s := newServer(func(c *child) procman.Exit {
			if c.n <= 5 {
				return procman.Exit{Code: 1, Err: broken}
			}
			return serve(legacy)(c)
		})
		for range 5 {
			r := s.back()
			_, _ = r.open(t, mcp.Legacy)
			r.end(t)
		}
		spare := s.back()
		defer spare.end(t)
		stop := warm(t, spare)
		time.Sleep(time.Hour)
		if n := s.machine.starts(); n != 5 {
			t.Fatalf("%d processes were warmed", n-5)
		}
		r := s.back()
		defer r.end(t)
		r.mustOpen(t, mcp.Legacy, mcp.Legacy)
		synctest.Wait()
		if state, _ := spare.Status(); state != procman.Running {
			t.Errorf("state %v once the server has come up", state)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
