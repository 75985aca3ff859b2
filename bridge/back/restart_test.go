package back_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/mcp"
	"mcpbridge/procman"
)

// server is what several links of one configured server share.
type server struct {
	machine *machine
	breaker *procman.Breaker
	verdict *back.Verdict
}

func newServer(script func(*child) procman.Exit) *server {
	return &server{machine: &machine{script: script}, breaker: procman.NewBreaker(0, 0, 0), verdict: &back.Verdict{}}
}

// back is that of one more link.
func (s *server) back(change ...func(*back.StdioConfig)) *rig {
	return newRig(nil, append(change, func(cfg *back.StdioConfig) {
		cfg.Spawner, cfg.Policy.Breaker, cfg.Verdict = s.machine, s.breaker, s.verdict
	})...)
}

// held wants an opening to be refused within a second because the server may not be started now.
func held(t *testing.T, r *rig, want mcp.Era) (text string, retry time.Duration) {
	t.Helper()
	began := time.Now()
	_, err := r.open(t, want)
	var h interface{ RetryAfter() time.Duration }
	if took := time.Since(began); took > time.Second || !errors.As(err, &h) {
		t.Fatalf("after %v: %v, want a refusal that says when", took, err)
	}
	return err.Error(), h.RetryAfter()
}

// mute lets a process live and say nothing.
func mute(c *child) procman.Exit {
	for {
		if _, ok := c.read(); !ok {
			return procman.Exit{}
		}
	}
}

// A living server that refuses every handshake is not started again for each request: not by one link, and not by one link
// after the other either (case 24).
func TestRefusingServerIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(serve(refuse))
		one := s.back()
		defer one.end(t)
		for range 60 {
			_, err := one.open(t, mcp.Legacy)
			if err == nil || !strings.Contains(err.Error(), "refused initialize") {
				t.Fatalf("error %v", err)
			}
			time.Sleep(time.Second)
		}
		if n := s.machine.starts(); n > 7 { // 0, 0.5, 1.5, 3.5, 7.5, then the breaker: two more
			t.Errorf("%d processes in a minute", n)
		}
		for _, c := range s.machine.all() {
			if !isOver(c) {
				t.Errorf("process %d still runs", c.n)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newServer(serve(refuse))
		for range 30 {
			r := s.back()
			_, err := r.open(t, mcp.Modern)
			if err == nil || !strings.Contains(err.Error(), "refused initialize") {
				t.Fatalf("error %v", err)
			}
			r.end(t)
		}
		if n := s.machine.starts(); n != 5 {
			t.Errorf("%d processes, want five", n)
		}
		r := s.back()
		defer r.end(t)
		if text, retry := held(t, r, mcp.Modern); retry != 30*time.Second || !strings.Contains(text, "failed 5 times within 1m, at last: ") {
			t.Errorf("%s; retry after %v", text, retry)
		}
	})
}

// Who asks while a stubborn process that was refused is being ended has the reason within a second, and does not end its
// back-off.
func TestRefusingStubbornServerIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newServer(func(c *child) procman.Exit {
			c.harden()
			for {
				q, ok := c.read()
				if !ok {
					<-c.killed
					return exits(137)
				}
				refuse(c, q)
			}
		}).back()
		defer r.end(t)
		if _, err := r.open(t, mcp.Legacy); err == nil {
			t.Fatal("opened")
		}
		if text, retry := held(t, r, mcp.Legacy); !strings.Contains(text, "refused initialize") || retry != time.Second {
			t.Errorf("%s; retry after %v", text, retry)
		}
		time.Sleep(4*time.Second + 100*time.Millisecond) // the rest of the ladder
		if state, st := r.Status(); state != procman.Backoff || time.Until(st.NextStart) > 500*time.Millisecond {
			t.Errorf("state %v, next start in %v", state, time.Until(st.NextStart))
		}
	})
}

// A server that closes its output, or its input, in every session counts as one that crashes in every session.
func TestBrokenPipesCountAsCrashes(t *testing.T) {
	for name, breaks := range map[string]func(*child) error{
		"output": func(c *child) error { return c.out.Close() },
		"input":  func(c *child) error { return c.in.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(func(c *child) procman.Exit {
					legacyOnce(c)
					_ = breaks(c)
					<-c.killed
					return exits(0)
				})
				r := s.back(func(cfg *back.StdioConfig) { cfg.Policy.Grace.EOF = -1 })
				defer r.end(t)
				for range 60 {
					if c, err := r.open(t, mcp.Legacy); err == nil {
						synctest.Wait()
						_ = c.Notify(t.Context(), mcp.RootsListChanged, nil)
						<-c.Done()
					}
					time.Sleep(time.Second)
				}
				if n := s.machine.starts(); n > 10 || n < 5 {
					t.Errorf("%d processes in a minute", n)
				}
			})
		})
	}
}

func (m *machine) all() []*child {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*child(nil), m.kids...)
}

func isOver(c *child) bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// A server that never answers counts when the time for its start is up, and one that closes its output without having said
// anything when that is seen, although both live.
func TestLivingFailuresCount(t *testing.T) {
	closes := func(c *child) procman.Exit {
		c.read()
		_ = c.out.Close()
		<-c.killed
		return exits(0)
	}
	for name, script := range map[string]func(*child) procman.Exit{"mute": mute, "closes its output": closes} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(script)
				var links sync.WaitGroup
				for range 5 {
					r := s.back()
					links.Go(func() {
						if _, err := r.open(t, mcp.Legacy); err == nil {
							t.Error("opened")
						}
						r.end(t)
					})
				}
				links.Wait()
				if s.breaker.Why() == "" {
					t.Error("five failures, and the breaker is closed")
				}
			})
		})
	}
}

// What nobody wants opened any more is no failure: the link is closed, or whoever asked has gone.
func TestCutShortCountsNothing(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(mute)
			for i := range 12 {
				r := s.back()
				if i%2 == 0 {
					link := bridge.NewLink(t.Context(), bridge.LinkConfig{Name: "srv", Want: mcp.Legacy, Params: []byte(ownParams), Back: r})
					failed := make(chan error, 1)
					go func() { _, err := link.Conn(context.WithoutCancel(t.Context())); failed <- err }()
					time.Sleep(after)
					if err := link.Close(t.Context()); err != nil {
						t.Error(err)
					}
					<-failed
					continue
				}
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(after, stop)
				if _, err := r.Open(ctx, r.options(mcp.Modern)); err == nil {
					t.Error("opened")
				}
				r.end(t)
			}
			if why := s.breaker.Why(); why != "" {
				t.Errorf("it counted: %s", why)
			}
		})
	}
}

// The refusal tells the end of the server's stderr as the failures did, secrets masked (cases 22 and 101, SEC-09).
func TestHeldTellsLastWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(func(c *child) procman.Exit { c.say("Error: nosuch\n at hunter2000"); return exits(1) })
		for range 5 {
			r := s.back(masked)
			_, _ = r.open(t, mcp.Legacy)
			r.end(t)
		}
		r := s.back(masked)
		defer r.end(t)
		text, retry := held(t, r, mcp.Legacy)
		if want := "exited with status 1 after 0s; it is tried again in 30s; the end of its stderr:\nError: nosuch\n at ***"; !strings.HasSuffix(text, want) || retry != 30*time.Second {
			t.Errorf("%s\nretry after %v", text, retry)
		}
		if state, status := r.Status(); state != procman.CrashLoop || status.Held == nil {
			t.Errorf("state %v, held %v", state, status.Held)
		}
	})
}

// A secret at the place where the text is cut does not show in part either.
func TestHeldCutsNoSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(func(c *child) procman.Exit { c.say(strings.Repeat("x", 1996) + "hunter2000"); return exits(1) })
		r := s.back(masked)
		defer r.end(t)
		var err error
		for range 4 {
			_, err = r.open(t, mcp.Legacy)
		}
		if err == nil || !strings.Contains(err.Error(), "tried again in") || strings.Contains(err.Error(), "hunt") {
			t.Errorf("error %v", err)
		}
	})
}

// A server that leaves over the probe, or closes its output over it, is none that fails (VER-24).
func TestProbeIsNoFailure(t *testing.T) {
	for name, leave := range map[string]func(*child) procman.Exit{
		"exits": func(*child) procman.Exit { return exits(1) },
		"closes its output": func(c *child) procman.Exit {
			_ = c.out.Close()
			<-c.killed
			return exits(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(func(c *child) procman.Exit {
					for {
						q, ok := c.read()
						if !ok {
							return procman.Exit{}
						}
						if q.Method == mcp.Discover {
							return leave(c)
						}
						legacy(c, q)
					}
				})
				for range 10 {
					s.verdict = &back.Verdict{} // nothing is known
					r := s.back()
					r.mustOpen(t, mcp.Modern, mcp.Legacy)
					if state, st := r.Status(); state != procman.Running || st.Restarts != 0 {
						t.Errorf("state %v, %d restarts", state, st.Restarts)
					}
					r.end(t)
				}
				if why := s.breaker.Why(); why != "" {
					t.Error(why)
				}
			})
		})
	}
}

// A tool that crashes the server in one session after the other holds no new session up.
func TestCrashingToolHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(func(c *child) procman.Exit { until(c, mcp.ToolsCall); return exits(3) })
		for i := range 20 {
			r := s.back()
			c, err := r.open(t, mcp.Legacy)
			if err != nil {
				t.Fatalf("session %d: %v", i+1, err)
			}
			if got := <-call(t, c, mcp.ToolsCall); !strings.Contains(got, "status 3") {
				t.Errorf("the call: %s", got)
			}
			<-c.Done()
			r.end(t)
		}
	})
}

// Case 24 over two hours, with real handshakes: ten links, old and new clients, ask every second for a server that exits
// at once. A try takes one process, or two where the first one ends on the probe (VER-24).
func TestTwoHoursOfCrashLoop(t *testing.T) {
	const links, life, pause = 10, 2 * time.Hour, 30 * time.Second
	synctest.Test(t, func(t *testing.T) {
		var mended atomic.Bool
		s := newServer(func(c *child) procman.Exit {
			if mended.Load() {
				return serve(legacy)(c)
			}
			c.say("no module named nosuch")
			return exits(1)
		})
		var served atomic.Int32
		var wg sync.WaitGroup
		var all []*bridge.Link
		for i := range links {
			want := []mcp.Era{mcp.Legacy, mcp.Modern}[i%2]
			link := bridge.NewLink(t.Context(), bridge.LinkConfig{Name: "srv", Want: want, Params: []byte(ownParams), Back: s.back()})
			all = append(all, link)
			wg.Go(func() {
				if complain(t, link, life+pause+2*time.Second) {
					served.Add(1)
				}
			})
		}
		time.Sleep(life)
		tries := links + 4 + int(life/pause) + 1
		if n := s.machine.starts(); n > 2*tries || n < tries/2 {
			t.Errorf("%d processes in %d tries at most", n, tries)
		}
		mended.Store(true)
		wg.Wait()
		if n := served.Load(); n != links {
			t.Errorf("%d of %d links are served within a pause", n, links)
		}
		for _, l := range all {
			if err := l.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// complain asks for a link every second until it is open, and reports whether that came about. Every answer comes within a
// second and has the reason.
func complain(t *testing.T, l *bridge.Link, patience time.Duration) bool {
	end := time.Now().Add(patience)
	for time.Now().Before(end) {
		began := time.Now()
		c, err := l.Conn(t.Context())
		if took := time.Since(began); took > time.Second {
			t.Errorf("an answer after %v", took)
		}
		if err == nil && c.Err() == nil {
			return true
		}
		if err != nil && (err.HTTPStatus() != 503 || err.Retry < 1 || !strings.Contains(fmt.Sprint(err), "nosuch")) {
			t.Errorf("status %d, retry %d: %v", err.HTTPStatus(), err.Retry, err)
		}
		time.Sleep(time.Second)
	}
	return false
}
