package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/test/internal/rig"
)

// dying are the last words of a server that cannot start, with a value that nobody may see.
const (
	lastWords = "ImportError: No module named nosuch"
	secret    = "s3cr3t-0f-th3-s3rv3r"
)

// doomed is a server that exits at once.
func doomed(t *testing.T, pidFile string) object {
	return server(t, "-pidfile", pidFile, "-say", lastWords+" "+secret, "-exit", "3").with(object{"env": object{"API_TOKEN": secret}})
}

// knock asks a server that cannot be started, as a client of either era in turn.
func knock(t *testing.T, c *client, n int) answer {
	if n%2 == 0 {
		return echo(t.Context(), modern{c}, fmt.Sprint(n), "x")
	}
	_, a := c.initialize(t.Context())
	return a
}

// Acceptance 4, case 22, case 24: a server that exits at once is tried a few times and then left alone; every caller
// learns the reason within a second; /readyz and status show it; callers cost neither memory nor descriptors; the server
// beside it feels nothing.
func TestCrashLoop(t *testing.T) {
	needProc(t)
	const (
		rounds  = 200
		atOnce  = 4
		breaker = 5 // of the default policy
	)
	pidFile := filepath.Join(t.TempDir(), "pids")
	h := house(t, object{"dead": doomed(t, pidFile).with(object{"required": true}), "fine": server(t)}, nil)
	b := h.Start(t)
	dead, fine := newClient(t, h.URL("dead")), modern{newClient(t, h.URL("fine"))}
	began := time.Now()

	crowd := func(from int) {
		var wg sync.WaitGroup
		for k := range atOnce {
			wg.Go(func() {
				for n := from + k; n < from+rounds; n += atOnce {
					if a := knock(t, dead, n); a.kind != failure || !strings.Contains(a.text, lastWords) || strings.Contains(a.text, secret) {
						t.Errorf("caller %d got %v, want the reason", n, a)
					} else if a.took > time.Second {
						t.Errorf("caller %d has the reason after %v", n, a.took)
					}
				}
			})
		}
		wg.Wait()
	}
	crowd(0)
	wantResult(t, echo(t.Context(), fine, "1", "neighbour"))
	dead.http.CloseIdleConnections()
	files, memory := usage(t, b.Pid)
	crowd(rounds)
	wantResult(t, echo(t.Context(), fine, "2", "neighbour"))
	dead.http.CloseIdleConnections()
	eventually(t, patience, "descriptors back to where they were", func() bool { return descriptors(t, b.Pid) <= files })
	if _, now := usage(t, b.Pid); now > memory+shadow*4<<20 {
		t.Errorf("resident memory grew from %d to %d bytes over %d callers", memory, now, rounds)
	}

	// One start more for each pause of the breaker, and those that were under way when it opened.
	if n, most := len(pids(t, pidFile)), breaker+atOnce+int(time.Since(began)/(30*time.Second)); n > most {
		t.Errorf("%d processes were started for %d callers, want at most %d", n, 2*rounds, most)
	}
	wantCrashLoop(t, h)
	if strings.Contains(b.Log(), secret) {
		t.Error("the log shows the secret of a server")
	}
}

func wantCrashLoop(t *testing.T, h *rig.House) {
	t.Helper()
	if code, r := readyz(t, h); code != 503 || r.Ready || r.Servers["dead"].Ready || r.Servers["dead"].State != "crash-loop" || !r.Servers["fine"].Ready {
		t.Errorf("/readyz answers %d %+v", code, r)
	}
	if resp := get(t, h, "/healthz"); resp.StatusCode != 200 {
		t.Errorf("/healthz answers %d", resp.StatusCode)
	} else {
		resp.Body.Close()
	}
	s := statusOf(t, h)
	if one := s.server(t, "dead"); one.State != "crash-loop" || one.Ready || !strings.Contains(one.Problem, lastWords) {
		t.Errorf("status says %s", one.raw)
	} else if strings.Contains(one.raw, secret) {
		t.Errorf("status shows the secret of a server: %s", one.raw)
	}
	if one := s.server(t, "fine"); one.State != "running" || !one.Ready {
		t.Errorf("status says of the neighbour %s", one.raw)
	}
	if out, errOut, code := h.Run(t, "status"); code != 0 || !strings.Contains(out, "crash-loop") {
		t.Errorf("status prints, with exit code %d, %s%s", code, out, errOut)
	}
}

// Case 22: the client that waits for its first answer is told at once that the server has died, how, and what it said.
func TestCase22DeathBeforeInitialize(t *testing.T) {
	t.Parallel()
	for n, era := range []string{"modern", "legacy"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			h := house(t, object{"s": doomed(t, filepath.Join(t.TempDir(), "pids"))}, nil)
			h.Start(t)
			a := knock(t, newClient(t, h.URL("s")), n)
			if a.kind != failure || !strings.Contains(a.text, "nosuch") || !strings.Contains(a.text, "status 3") || strings.Contains(a.text, secret) {
				t.Errorf("got %v, want the status and the last words, without the secret", a)
			}
			if a.took > 3*time.Second {
				t.Errorf("told after %v", a.took)
			}
		})
	}
}

// Case 24: a server that dies again and again is served again each time once its pause is over, however often.
func TestCase24NeverDeadForGood(t *testing.T) {
	t.Parallel()
	const rounds = 20
	for _, era := range []string{"modern", "legacy"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			h := house(t, object{"s": server(t).with(object{"restart": object{"initial": "10ms", "max": "200ms", "resetAfter": "50ms"}})}, nil)
			h.Start(t)
			var c caller = modern{newClient(t, h.URL("s"))}
			if era == "legacy" {
				c = newClient(t, h.URL("s")).open(t)
			}
			for n := range rounds {
				eventually(t, 2*time.Second, fmt.Sprintf("served in round %d", n), func() bool {
					a := echo(t.Context(), c, "1", fmt.Sprint("round ", n))
					if a.kind == wrong {
						t.Fatal(a)
					}
					return a.kind == result
				})
				if a := c.call(t.Context(), "3", "crash", "{}"); a.kind != failure {
					t.Fatalf("the call that kills the server got %v", a)
				}
			}
		})
	}
}

// Case 24: a command that is not there is refused without a process and works as soon as it is.
func TestCase24MissingCommandAppears(t *testing.T) {
	t.Parallel()
	command := filepath.Join(t.TempDir(), "late")
	h := house(t, object{"s": object{"command": command, "required": true, "restart": object{"initial": "50ms", "max": "500ms"}}}, nil)
	h.Start(t)
	c := newClient(t, h.URL("s"))
	for n := range 10 {
		if a := knock(t, c, n); a.kind != failure || !strings.Contains(a.text, command) || a.took > time.Second {
			t.Errorf("got %v, want the missing command", a)
		}
	}
	if code, _ := readyz(t, h); code != 503 {
		t.Errorf("/readyz answers %d", code)
	}
	text, err := os.ReadFile(fixture(t))
	if err == nil {
		err = os.WriteFile(command+".new", text, 0o700)
	}
	if err == nil {
		err = os.Rename(command+".new", command)
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Second, "served after the command appeared", func() bool { return echo(t.Context(), modern{c}, "1", "x").kind == result })
	if code, _ := readyz(t, h); code != 200 {
		t.Errorf("/readyz answers %d", code)
	}
}

// Case 101: four ways not to start, four explanations: what was to be started, what the system says, what to do. The
// caller gets them, and status shows them.
func TestCase101SpawnErrors(t *testing.T) {
	needProc(t)
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kinds := []struct {
		name  string
		entry object
		want  []string
	}{
		{"missing", object{"command": "no-such-server"}, []string{"no-such-server", "PATH"}},
		{"not-executable", object{"command": plain}, []string{plain, "chmod +x"}},
		{"folder", object{"command": dir}, []string{dir, "directory"}},
		{"exits", server(t, "-exit", "0"), []string{"status 0", "stdio"}},
	}
	entries := object{"fine": server(t)}
	for _, k := range kinds {
		entries[k.name] = k.entry
	}
	h := house(t, entries, nil)
	h.Start(t)
	said := map[string]string{}
	for _, k := range kinds {
		a := knock(t, newClient(t, h.URL(k.name)), 0)
		if a.kind != failure || a.took > 3*time.Second || !strings.Contains(a.text, k.name) {
			t.Errorf("%s: got %v", k.name, a)
		}
		if twin, ok := said[a.text]; ok {
			t.Errorf("%s and %s are explained alike", k.name, twin)
		}
		said[a.text] = k.name
		state := statusOf(t, h)
		shown := state.server(t, k.name).raw
		for _, w := range k.want {
			if !strings.Contains(a.text, w) {
				t.Errorf("%s: the caller is not told %q: %s", k.name, w, a.text)
			}
			if !strings.Contains(shown, w) {
				t.Errorf("%s: status does not say %q: %s", k.name, w, shown)
			}
		}
	}
}
