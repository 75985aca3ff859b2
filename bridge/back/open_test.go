package back_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/mcp"
	"mcpbridge/procman"
)

// refuse answers every request with an error.
func refuse(c *child, r request) {
	if len(r.ID) > 0 {
		c.fail(r, mcp.CodeInternal)
	}
}

// The order of tries, as the package comment has it (VER-20, design decision 17).
func TestOrderOfTries(t *testing.T) {
	probe, hello := mcp.Discover, mcp.Initialize
	for _, tc := range []struct {
		name   string
		server func(*child, request)
		pin    mcp.Era
		want   mcp.Era
		got    mcp.Era // EraUnknown: it cannot be opened
		sent   []string
		later  []string // of a second opening
	}{
		{"modern front, modern server", modern, 0, mcp.Modern, mcp.Modern, []string{probe}, []string{probe}},
		{"modern front, legacy server", legacy, 0, mcp.Modern, mcp.Legacy, []string{probe, hello, mcp.Initialized}, []string{hello, mcp.Initialized}},
		{"modern front, dual server", dual, 0, mcp.Modern, mcp.Modern, []string{probe}, []string{probe}},
		{"legacy front, legacy server", legacy, 0, mcp.Legacy, mcp.Legacy, []string{hello, mcp.Initialized}, []string{hello, mcp.Initialized}},
		{"legacy front, modern server", modern, 0, mcp.Legacy, mcp.Modern, []string{hello, probe}, []string{probe}},
		{"legacy front, dual server", dual, 0, mcp.Legacy, mcp.Legacy, []string{hello, mcp.Initialized}, []string{hello, mcp.Initialized}},
		{"modern front, neither", refuse, 0, mcp.Modern, 0, []string{probe, hello}, []string{probe, hello}},
		{"legacy front, neither", refuse, 0, mcp.Legacy, 0, []string{hello, probe}, []string{hello, probe}},
		{"pinned legacy", dual, mcp.Legacy, mcp.Modern, mcp.Legacy, []string{hello, mcp.Initialized}, []string{hello, mcp.Initialized}},
		{"pinned modern", dual, mcp.Modern, mcp.Legacy, mcp.Modern, []string{probe}, []string{probe}},
		{"pinned modern, legacy server", legacy, mcp.Modern, mcp.Modern, 0, []string{probe}, []string{probe}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(serve(tc.server))
				defer r.end(t)
				r.verdict.Pin(tc.pin)
				for i, sent := range [][]string{tc.sent, tc.later} {
					c, err := r.open(t, tc.want)
					if (err == nil) != (tc.got != 0) || err == nil && c.Facts().Era != tc.got {
						t.Fatalf("opening %d: error %v, want era %v", i+1, err, tc.got)
					}
					synctest.Wait()
					if got := strings.Join(r.machine.child(i+1).methods(), " "); got != strings.Join(sent, " ") {
						t.Errorf("opening %d: sent %s, want %v", i+1, got, sent)
					}
					if err := r.Halt(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// Links of one server share what was found out (VER-07).
func TestVerdictIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := newRig(serve(legacy))
		defer one.end(t)
		two := newRig(serve(legacy), func(cfg *back.StdioConfig) { cfg.Verdict = one.verdict })
		defer two.end(t)
		one.mustOpen(t, mcp.Modern, mcp.Legacy)
		two.mustOpen(t, mcp.Modern, mcp.Legacy)
		synctest.Wait()
		if got := two.machine.methods()[0]; got != mcp.Initialize {
			t.Errorf("the second link asks %s first", got)
		}
	})
}

// A verdict that has become wrong corrects itself (VER-07): the server was replaced by one of the other era.
func TestVerdictCorrectsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *child) procman.Exit {
			if c.n == 1 {
				return serve(legacy)(c)
			}
			return serve(modern)(c)
		})
		defer r.end(t)
		r.mustOpen(t, mcp.Modern, mcp.Legacy)
		_ = r.Halt(t.Context())
		r.mustOpen(t, mcp.Modern, mcp.Modern)
		_ = r.Halt(t.Context())
		r.mustOpen(t, mcp.Modern, mcp.Modern)
		synctest.Wait()
		if got := r.machine.child(3).methods(); len(got) != 1 || got[0] != mcp.Discover {
			t.Errorf("after the correction it was sent %v", got)
		}
	})
}

// A recognised modern error never leads to a handshake, and is shown (VER-08); not even if the server falls silent, or
// dies, or forgets that it is modern, at the repetition.
func TestModernErrorNeverFallsBack(t *testing.T) {
	const mutual = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"x","data":{"supported":["2026-07-28"]}}}`
	for name, tc := range map[string]struct {
		server func(*child) procman.Exit
		says   string
	}{
		"refused": {serve(func(c *child, r request) {
			c.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32021,"message":"wants roots"}}`, r.ID)
		}), "wants roots"},
		"silent at the repetition": {serve(func(c *child, r request) {
			if string(r.ID) == "1" {
				c.send(mutual, r.ID)
			}
		}), "did not answer server/discover"},
		"dead at the repetition": {func(c *child) procman.Exit {
			r, _ := c.read()
			c.send(mutual, r.ID)
			c.read()
			return exits(7)
		}, "status 7"},
		"legacy at the repetition": {serve(func(c *child, r request) {
			if string(r.ID) == "1" {
				c.send(mutual, r.ID)
			} else {
				c.fail(r, mcp.CodeMethodNotFound)
			}
		}), "-32601"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(tc.server)
				defer r.end(t)
				_, err := r.open(t, mcp.Modern)
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("error %v, want one with %q", err, tc.says)
				}
				synctest.Wait()
				if got := strings.Join(r.machine.methods(), " "); strings.Contains(got, mcp.Initialize) {
					t.Errorf("it was sent %s", got)
				}
			})
		})
	}
}

// The revision a server names is offered in the handshake of the bridge's own, also when the verdict is remembered
// (VER-11); a client's own handshake passes as it is.
func TestNamedRevisionIsOffered(t *testing.T) {
	server := serve(func(c *child, r request) {
		if r.Method == mcp.Discover {
			c.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"x","data":{"supported":["2025-03-26","2025-06-18"]}}}`, r.ID)
			return
		}
		legacy(c, r)
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(server)
		defer r.end(t)
		for i := range 2 {
			c := r.mustOpen(t, mcp.Modern, mcp.Legacy)
			if v := c.Facts().Version; v != mcp.V20250618 {
				t.Errorf("opening %d at %s, want 2025-06-18", i+1, v)
			}
			_ = r.Halt(t.Context())
		}
		if c := r.mustOpen(t, mcp.Legacy, mcp.Legacy); c.Facts().Version != mcp.V20251125 {
			t.Errorf("a client's handshake was changed to %s", c.Facts().Version)
		}
		if want := strings.Replace(ownParams, "2025-11-25", "2025-06-18", 1); string(r.machine.child(1).requests()[1].Params) != want {
			t.Errorf("sent %s, want %s", r.machine.child(1).requests()[1].Params, want)
		}
	})
}

// A server that exits on the probe is started again at once, and its end counts for nothing (VER-24).
func TestExitOnProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := newRig(func(c *child) procman.Exit {
			for {
				q, ok := c.read()
				if !ok {
					return procman.Exit{}
				}
				if q.Method == mcp.Discover {
					return exits(1)
				}
				legacy(c, q)
			}
		})
		defer r.end(t)
		r.mustOpen(t, mcp.Modern, mcp.Legacy)
		synctest.Wait()
		if d := time.Since(began); d != 0 {
			t.Errorf("it took %v, so the end was followed by a back-off", d)
		}
		if state, st := r.Status(); state != procman.Running || st.Restarts != 0 || r.machine.starts() != 2 {
			t.Errorf("state %v, %d restarts, %d starts", state, st.Restarts, r.machine.starts())
		}
		if got := r.machine.child(2).methods(); len(got) != 2 || got[0] != mcp.Initialize {
			t.Errorf("the second process was sent %v", got)
		}
	})
}

// A server that refuses the handshake and exits over it is probed in a process of its own (VER-24 the other way round).
func TestExitAfterRefusal(t *testing.T) {
	for _, late := range []bool{false, true} { // before or after it has read the probe
		synctest.Test(t, func(t *testing.T) {
			r := newRig(func(c *child) procman.Exit {
				for {
					q, ok := c.read()
					if !ok {
						return procman.Exit{}
					}
					modern(c, q)
					if q.Method == mcp.Initialize {
						if late {
							c.read()
						}
						return exits(1)
					}
				}
			})
			defer r.end(t)
			r.mustOpen(t, mcp.Legacy, mcp.Modern)
		})
	}
}

// A silent server costs the probe timeout once, not again until the verdict has aged (VER-23, VER-26).
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(serve(func(c *child, q request) {
			if q.Method != mcp.Discover {
				legacy(c, q)
			}
		}))
		defer r.end(t)
		for i, want := range []time.Duration{5 * time.Second, 0} {
			began := time.Now()
			r.mustOpen(t, mcp.Modern, mcp.Legacy)
			if d := time.Since(began); d != want {
				t.Errorf("opening %d took %v, want %v", i+1, d, want)
			}
			_ = r.Halt(t.Context())
		}
	})
}

// A server that is slow to start is served whatever it speaks, in one process, by one of five concurrent callers or all
// (case 28). The probe it slept through says nothing about it.
func TestSlowStart(t *testing.T) {
	for name, tc := range map[string]struct {
		server func(*child, request)
		era    mcp.Era
		pin    mcp.Era
	}{
		"legacy": {legacy, mcp.Legacy, 0}, "modern": {modern, mcp.Modern, 0}, "pinned modern": {modern, mcp.Modern, mcp.Modern},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(c *child) procman.Exit {
					c.sleep(25 * time.Second)
					return serve(tc.server)(c)
				})
				r.verdict.Pin(tc.pin)
				link := bridge.NewLink(t.Context(), bridge.LinkConfig{Name: "srv", Want: mcp.Modern, Params: []byte(ownParams), Back: r})
				began := time.Now()
				var wg sync.WaitGroup
				for range 5 {
					wg.Go(func() {
						c, err := link.Conn(t.Context())
						if err != nil {
							t.Errorf("not served: %v", err)
							return
						}
						if e := c.Facts().Era; e != tc.era {
							t.Errorf("opened as %v", e)
						}
					})
				}
				wg.Wait()
				if d := time.Since(began); d < 25*time.Second || d > 26*time.Second {
					t.Errorf("served after %v, want 25 s", d)
				}
				if n := r.machine.starts(); n != 1 {
					t.Errorf("%d processes", n)
				}
				if err := link.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The silence of a server that was only starting is not remembered: it may be of both eras (VER-07, decision 17).
func TestSlowSilenceIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *child) procman.Exit {
			if c.n == 1 {
				c.sleep(25 * time.Second)
			}
			return serve(dual)(c)
		})
		defer r.end(t)
		r.mustOpen(t, mcp.Modern, mcp.Legacy)
		_ = r.Halt(t.Context())
		r.mustOpen(t, mcp.Modern, mcp.Modern)
	})
}

// A slow server that exits on the probe it finds waiting is opened in a second process (case 28 with VER-24).
func TestSlowStartAndExitOnProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *child) procman.Exit {
			c.sleep(12 * time.Second)
			for {
				q, ok := c.read()
				if !ok {
					return procman.Exit{}
				}
				if q.Method == mcp.Discover {
					return exits(1)
				}
				legacy(c, q)
			}
		})
		defer r.end(t)
		r.mustOpen(t, mcp.Modern, mcp.Legacy)
		if n := r.machine.starts(); n != 2 {
			t.Errorf("%d processes, want 2", n)
		}
		if _, st := r.Status(); st.Restarts != 0 {
			t.Errorf("%d restarts counted", st.Restarts)
		}
	})
}

// A start that takes too long says what was waited for and what the server has said (case 22, case 28), at once, however
// long the server takes to end.
func TestStartTimeout(t *testing.T) {
	for want, asks := range map[mcp.Era]string{mcp.Legacy: mcp.Initialize, mcp.Modern: mcp.Initialize} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(func(c *child) procman.Exit {
				c.say("fetching package hunter22")
				c.harden()
				<-c.killed
				return exits(137)
			}, func(cfg *back.StdioConfig) { cfg.Secrets = []string{"hunter22"} })
			defer r.end(t)
			began := time.Now()
			_, err := r.open(t, want)
			if d := time.Since(began); d != time.Minute {
				t.Errorf("gave up after %v", d)
			}
			if err == nil || !strings.Contains(err.Error(), "did not answer "+asks) || !strings.Contains(err.Error(), "fetching package ***") {
				t.Errorf("error %v", err)
			}
			synctest.Wait()
			time.Sleep(10 * time.Second)
			if got := strings.Join(r.machine.child(1).ladder(), " "); got != "eof terminate kill" {
				t.Errorf("the server was ended by %s", got)
			}
		})
	}
}

// Close while opening ends the opening and the process, and leaves nothing behind.
func TestCloseWhileOpening(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(func(c *child) procman.Exit {
				for {
					if _, ok := c.read(); !ok {
						return procman.Exit{}
					}
				}
			})
			link := bridge.NewLink(t.Context(), bridge.LinkConfig{Name: "srv", Want: mcp.Modern, Params: []byte(ownParams), Back: r})
			failed := make(chan error, 1)
			go func() {
				_, err := link.Conn(context.WithoutCancel(t.Context()))
				failed <- err
			}()
			time.Sleep(after)
			if err := link.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-failed; err == nil {
				t.Error("the opening did not fail")
			}
			if n := r.machine.starts(); n == 1 {
				select {
				case <-r.machine.child(1).done:
				default:
					t.Error("the process still runs")
				}
			}
			if _, err := r.open(t, mcp.Modern); !errors.Is(err, procman.ErrClosed) && !strings.Contains(err.Error(), "closed") {
				t.Errorf("opened after Close: %v", err)
			}
		})
	}
}
