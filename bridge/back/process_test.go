package back_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/mcp"
	"mcpbridge/procman"
)

// until serves a legacy server up to a request of that method, and returns the request.
func until(c *child, method string) request {
	for {
		r, ok := c.read()
		if !ok || r.Method == method {
			return r
		}
		legacy(c, r)
	}
}

func masked(cfg *back.StdioConfig) {
	cfg.Secrets = []string{"hunter", "hunter2000", "short", "line one\nline two"}
}

// A server that dies before it has answered initialize fails the opening at once, with its exit status and the end of
// its stderr, secrets masked (case 22), whether it dies before or after it has read the request.
func TestDeathBeforeHandshake(t *testing.T) {
	trace := "Error: cannot find module nosuch\n    at hunter2000 short\n    line two\n\nNode.js v22"
	for _, reads := range []bool{false, true} {
		for _, want := range []mcp.Era{mcp.Modern, mcp.Legacy} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(c *child) procman.Exit {
					c.say(trace)
					if reads {
						c.read()
					}
					return exits(1)
				}, masked)
				defer r.end(t)
				began := time.Now()
				_, err := r.open(t, want)
				if d := time.Since(began); d >= 3*time.Second {
					t.Errorf("failed after %v", d)
				}
				if err == nil {
					t.Fatal("opened")
				}
				for _, part := range []string{"initialize", "exited with status 1", "nosuch", "at *** short", "    ***", "Node.js v22"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error without %q: %v", part, err)
					}
				}
				if state, _ := r.Status(); state != procman.Backoff {
					t.Errorf("state %v: it was no crash", state)
				}
			})
		}
	}
}

// What goes into an error of a server's stderr is bounded: whole lines from the end, or the beginning of the last.
func TestLastWordsAreBounded(t *testing.T) {
	line := strings.Repeat("é", 299) // 598 bytes
	for name, tc := range map[string]struct{ says, first, last string }{
		"many lines": {"first\n" + strings.Repeat(line+"\n", 4) + "last", line, "last"},
		"long line":  {"first\n" + strings.Repeat("é", 3000), "é", "é"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(c *child) procman.Exit { c.say(tc.says); return exits(1) })
				defer r.end(t)
				_, err := r.open(t, mcp.Legacy)
				_, words, _ := strings.Cut(err.Error(), "its stderr:\n")
				if len(words) < 1500 || len(words) > 2000 {
					t.Errorf("%d bytes of stderr in the error", len(words))
				}
				if !strings.HasPrefix(words, tc.first) || !strings.HasSuffix(words, tc.last) || strings.Contains(words, "\uFFFD") {
					t.Errorf("from %.20q to %q", words, words[max(0, len(words)-20):])
				}
			})
		})
	}
}

// call sends one request on an open connection in the background.
func call(t *testing.T, c *bridge.Conn, method string) <-chan string {
	t.Helper()
	got := make(chan string, 1)
	go func() {
		m, err := c.RoundTrip(t.Context(), method, nil)
		if err != nil {
			got <- "error: " + err.Error()
			return
		}
		got <- string(m.Raw)
	}()
	return got
}

// An answer without a newline, written just before a clean exit, arrives; what is still open fails with the exit, told
// in one line (case 12).
func TestLastAnswerWithoutNewline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *child) procman.Exit {
			first := until(c, mcp.ToolsList)
			until(c, mcp.PromptsList)
			c.say("one\ntwo")
			c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, first.ID))
			return exits(0)
		})
		defer r.end(t)
		c := r.mustOpen(t, mcp.Legacy, mcp.Legacy)
		answered := call(t, c, mcp.ToolsList)
		synctest.Wait()
		failed := call(t, c, mcp.PromptsList)
		if got := <-answered; !strings.Contains(got, `"tools":[]`) {
			t.Errorf("the last answer: %s", got)
		}
		got := <-failed
		if !strings.Contains(got, "status 0") || !strings.HasSuffix(got, "its last words: two") || strings.Contains(got, "\n") {
			t.Errorf("the open request: %s", got)
		}
	})
}

// A process that closes its output but lives fails what is open and is ended (STD-03). The next opening waits for its end.
func TestClosedOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *child) procman.Exit {
			if c.n > 1 {
				return serve(legacy)(c)
			}
			until(c, mcp.ToolsList)
			_ = c.out.Close()
			<-c.killed
			return exits(0)
		})
		defer r.end(t)
		c := r.mustOpen(t, mcp.Legacy, mcp.Legacy)
		began := time.Now()
		if got := <-call(t, c, mcp.ToolsList); !strings.Contains(got, "closed its output") {
			t.Errorf("the open request: %s", got)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("failed after %v", d)
		}
		r.mustOpen(t, mcp.Legacy, mcp.Legacy)
		first := r.machine.child(1)
		select {
		case <-first.done:
		default:
			t.Error("the first process still runs beside the second")
		}
		if got := strings.Join(first.ladder(), " "); !strings.HasPrefix(got, "eof") || !strings.Contains(got, "terminate") {
			t.Errorf("it was ended by %s", got)
		}
	})
}

// A process that closes its input but lives is ended, and what is open fails (case 27); the back serves on.
func TestClosedInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *child) procman.Exit {
			if c.n > 1 {
				return serve(legacy)(c)
			}
			until(c, mcp.ToolsList)
			_ = c.in.Close()
			<-c.killed
			return exits(0)
		})
		defer r.end(t)
		c := r.mustOpen(t, mcp.Legacy, mcp.Legacy)
		waiting := call(t, c, mcp.ToolsList)
		synctest.Wait()
		call(t, c, mcp.PromptsList) // finds the pipe closed
		if got := <-waiting; !strings.Contains(got, "takes no input") {
			t.Errorf("the open request: %s", got)
		}
		if got := strings.Join(r.machine.child(1).ladder(), " "); got != "eof terminate" {
			t.Errorf("it was ended by %s", got)
		}
		if c := r.mustOpen(t, mcp.Legacy, mcp.Legacy); c.Err() != nil {
			t.Error(c.Err())
		}
	})
}

// A process that dies is not asked to end because its input failed a moment earlier: the way it died is told (case 22).
func TestDyingIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *child) procman.Exit {
			legacyOnce(c)
			_ = c.in.Close()
			c.sleep(100 * time.Millisecond)
			c.say("panic: no more")
			return exits(3)
		})
		defer r.end(t)
		c := r.mustOpen(t, mcp.Legacy, mcp.Legacy)
		synctest.Wait() // its input is closed
		call(t, c, mcp.ToolsList)
		<-c.Done()
		if got := c.Err().Error(); !strings.Contains(got, "status 3") || !strings.HasSuffix(got, "panic: no more") {
			t.Errorf("ended with %s", got)
		}
		if got := r.machine.child(1).ladder(); len(got) > 0 {
			t.Errorf("it was asked to end: %v", got)
		}
	})
}

// One ladder ends a process, whether it has stopped reading or closes its output while it is being ended: the request to
// end is not made twice.
func TestOneLadder(t *testing.T) {
	servers := map[string]func(*child){
		"stopped reading": func(*child) {},
		"closes its output": func(c *child) {
			for ok := true; ok; _, ok = c.read() {
			}
			_ = c.out.Close()
		},
	}
	ends := map[string]func(*testing.T, *rig, *bridge.Conn){
		"halt":  func(t *testing.T, r *rig, _ *bridge.Conn) { _ = r.Halt(t.Context()) },
		"close": func(t *testing.T, _ *rig, c *bridge.Conn) { _ = c.Close(t.Context()) },
	}
	for what, server := range servers {
		for name, end := range ends {
			t.Run(what+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(func(c *child) procman.Exit {
						legacyOnce(c)
						c.harden()
						server(c)
						<-c.killed
						return exits(0)
					})
					defer r.end(t)
					c := r.mustOpen(t, mcp.Legacy, mcp.Legacy)
					call(t, c, mcp.ToolsList) // blocks the writer of a server that does not read
					synctest.Wait()
					end(t, r, c)
					if got := strings.Join(r.machine.child(1).ladder(), " "); got != "eof terminate kill" {
						t.Errorf("it was ended by %s", got)
					}
				})
			})
		}
	}
}

func legacyOnce(c *child) {
	r, _ := c.read()
	legacy(c, r)
	c.read() // notifications/initialized
}

// A server that ends after it was asked to says so, without last words.
func TestHaltFailsOpenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *child) procman.Exit {
			c.say("bye")
			return serve(func(c *child, q request) {
				if q.Method != mcp.ToolsList {
					legacy(c, q)
				}
			})(c)
		})
		defer r.end(t)
		c := r.mustOpen(t, mcp.Legacy, mcp.Legacy)
		waiting := call(t, c, mcp.ToolsList)
		synctest.Wait()
		if err := r.Halt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-waiting; !strings.Contains(got, "was stopped") || strings.Contains(got, "bye") {
			t.Errorf("the open request: %s", got)
		}
	})
}

// Close is bounded by its context, also when the process cannot be ended.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		r := newRig(func(c *child) procman.Exit {
			legacyOnce(c)
			<-released
			return exits(0)
		})
		r.mustOpen(t, mcp.Legacy, mcp.Legacy)
		ctx, stop := contextFor(t, 2*time.Second)
		defer stop()
		began := time.Now()
		if err := r.Close(ctx); err == nil {
			t.Error("no error although the process lives")
		}
		if d := time.Since(began); d != 2*time.Second {
			t.Errorf("Close took %v", d)
		}
		close(released)
	})
}

// The last line of stderr of a server that crashes with requests open is in their error, masked.
func TestCrashTellsLastLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(c *child) procman.Exit {
			until(c, mcp.ToolsList)
			c.say("first\npanic: hunter")
			return exits(2)
		}, masked)
		defer r.end(t)
		c := r.mustOpen(t, mcp.Legacy, mcp.Legacy)
		got := <-call(t, c, mcp.ToolsList)
		if !strings.Contains(got, "exited with status 2") || !strings.HasSuffix(got, "its last words: panic: ***") {
			t.Errorf("the open request: %s", got)
		}
	})
}

// Real processes.

func realBack(t *testing.T, role string, secrets ...string) *back.Stdio {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), roleVar+"="+role, "TOKEN=hunter2000")
	s := back.NewStdio(back.StdioConfig{
		Spec:    procman.Spec{Name: role, Command: exe, Env: env},
		Policy:  procman.Policy{Grace: procman.Grace{EOF: 200 * time.Millisecond, Term: 5 * time.Second}},
		Spawner: procman.OS(), Secrets: secrets,
	})
	t.Cleanup(func() {
		ctx, stop := contextFor(t, 20*time.Second)
		defer stop()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func openReal(t *testing.T, s *back.Stdio) (*bridge.Conn, error) {
	t.Helper()
	return s.Open(t.Context(), bridge.OpenOptions{Want: mcp.Legacy, Params: []byte(ownParams),
		Conn: bridge.ConnConfig{Name: "real", Handler: &note{}}})
}

func TestRealDeathBeforeHandshake(t *testing.T) {
	began := time.Now()
	_, err := openReal(t, realBack(t, "nosuch", "hunter2000"))
	if d := time.Since(began); d > 3*time.Second {
		t.Errorf("failed after %v", d)
	}
	for _, part := range []string{"status 1", "No module named 'nosuch'", "token is ***"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error without %q: %v", part, err)
		}
	}
}

// writeUntilClosed finds out that a server has closed its input, which only a write can.
func writeUntilClosed(t *testing.T, c *bridge.Conn) {
	t.Helper()
	for began := time.Now(); c.Notify(t.Context(), mcp.RootsListChanged, nil) == nil; {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the server still takes input")
		}
		runtime.Gosched()
	}
}

// Cases 12 and 27 and STD-03 with pipes of the operating system.
func TestRealEnds(t *testing.T) {
	for role, says := range map[string]string{"last": "status 0", "mute": "closed its output", "deaf": "takes no input"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			s := realBack(t, role)
			c, err := openReal(t, s)
			if err != nil {
				t.Fatal(err)
			}
			if role == "deaf" {
				writeUntilClosed(t, c)
			} else if got := <-call(t, c, mcp.ToolsList); !strings.Contains(got, `"tools":[]`) {
				t.Errorf("the answer: %s", got)
			}
			select {
			case <-c.Done():
			case <-time.After(10 * time.Second):
				t.Fatal("the connection did not end")
			}
			if !strings.Contains(c.Err().Error(), says) {
				t.Errorf("ended with %v, want %q", c.Err(), says)
			}
		})
	}
}
