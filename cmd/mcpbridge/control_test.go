package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"mcpbridge/admin"
	"mcpbridge/bridge/mask"
	"mcpbridge/telemetry"
)

var _ admin.LogSource = (*telemetry.ServerLog)(nil)

// household is a bridge as the commands see it: three servers with one in trouble, and whatever a test sets.
type household struct {
	status admin.Status
	log    *telemetry.ServerLog

	mu      sync.Mutex
	reload  error
	drained chan struct{} // nil: at once
}

func (h *household) Status() admin.Status { return h.status }

func (h *household) Restart(_ context.Context, name string) error {
	if name != "files" && name != "中文" {
		return fmt.Errorf("cannot restart %q: %w", name, admin.ErrUnknownServer)
	}
	return nil
}

func (h *household) Reload(context.Context) (admin.Reloaded, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reload != nil {
		return admin.Reloaded{}, h.reload
	}
	return admin.Reloaded{Added: []string{"a", "b"}, Removed: []string{"c"}, Unchanged: []string{"d"}, NeedsRestart: []string{"listen"}}, nil
}

func (h *household) Drain(ctx context.Context) error {
	select {
	case <-h.drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *household) Logs(name string) (admin.LogSource, error) {
	if name != "files" {
		return nil, fmt.Errorf("cannot show the log of %q: %w", name, admin.ErrUnknownServer)
	}
	return h.log, nil
}

var noon = time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)

func exit(text string, ago time.Duration) *admin.Exit {
	return &admin.Exit{Text: text, At: noon.Add(-ago)}
}

// troubled is a status with all that can be told.
func troubled() admin.Status {
	next := noon.Add(12 * time.Second)
	later := noon.Add(90 * time.Second)
	return admin.Status{
		Bridge: admin.Bridge{Version: "1.2.3", Pid: 4242, StartedAt: noon.Add(-50 * time.Hour), Uptime: (50 * time.Hour).Seconds(), Listening: []string{"127.0.0.1:8420", "/run/b.sock"},
			Sessions: 12, Processes: 4, ProcessLimit: 64, MemoryBytes: 31 << 20, Goroutines: 99, ConfigFile: "/etc/mcpbridge/config.json", Draining: true,
			LastReload: &admin.ReloadOutcome{At: noon.Add(-5 * time.Minute), Error: "config.json:3:7: unknown key \"comand\"; did you mean \"command\"?\nconfig.json:9:1: oops"}},
		Servers: []admin.Server{
			{Name: "files", State: "running", Ready: true, Sessions: 12, Calls: 12345, CallsFailed: 3, Restarts: 1, LastExit: exit("exit status 1", 4*time.Hour),
				Processes: []admin.Process{{Pid: 101, Uptime: 59, MemoryBytes: 40 << 20, State: "running"}, {State: "idle"}, {Pid: 202, Uptime: 3661, MemoryBytes: 2 << 20, State: "running"}}},
			{Name: "中文", State: "idle", Ready: true},
			{Name: "crashing 😀", State: "crash-loop", Required: true, Restarts: 7, Waiting: 1, Problem: "server \"x\" ended: exit status 127\n  sh: \x1b[31mfoo\x1b[0m: not found",
				LastError: "it does not speak stdio", LastExit: exit("exit status 127 "+strings.Repeat("long ", 30)+"\nsecond line", 3*time.Second),
				Processes: []admin.Process{{State: "backoff", NextStart: &later}, {State: "backoff", NextStart: &next}, {State: "starting", Pid: 303, Uptime: 0.4, MemoryBytes: 3 << 30}}},
			{Name: "bad\x1b[2Jname", State: "broken", Problem: "it has no command"},
		},
	}
}

// keepHouse serves a household on a socket in dir.
func keepHouse(dir string, h *household) (path string, stop func() error, err error) {
	path = filepath.Join(dir, "b.sock")
	l, err := admin.Listen(path)
	if err != nil {
		return "", nil, err
	}
	h.log = telemetry.NewServerLog(filepath.Join(dir, "state", "logs"), "files", 1, 1, mask.Masker{})
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	go func() { end <- admin.Serve(ctx, l, h) }()
	return path, func() error { cancel(); h.log.Close(); return <-end }, nil
}

// The commands as people type them, against a bridge and without one.
func TestControlScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/control",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"expand": expandFile},
		Setup: func(env *testscript.Env) error {
			// The paths of sockets are short, that of the script's folder may not be.
			dir, err := os.MkdirTemp("", "house")
			if err != nil {
				return err
			}
			h := &household{status: troubled(), drained: make(chan struct{})}
			close(h.drained)
			path, stop, err := keepHouse(dir, h)
			if err != nil {
				return err
			}
			for i := range 5 {
				h.log.Line("", fmt.Appendf(nil, "line %d", i+1))
			}
			h.log.Close()
			env.Defer(func() {
				if err := stop(); err != nil {
					t.Error(err)
				}
				_ = os.RemoveAll(dir)
			})
			for key, value := range map[string]string{"SOCKET": filepath.ToSlash(path), "STATE": filepath.ToSlash(filepath.Join(dir, "state")), "XDG_CONFIG_HOME": filepath.Join(env.WorkDir, "config"),
				"AppData": filepath.Join(env.WorkDir, "config"), "XDG_RUNTIME_DIR": filepath.Join(dir, "none"), "XDG_STATE_HOME": filepath.Join(dir, "nothing"), "HOME": dir} {
				env.Setenv(key, value)
			}
			return nil
		},
	})
}

// expandFile replaces the variables in a file of the script.
func expandFile(ts *testscript.TestScript, _ bool, args []string) {
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

// inHouse starts a household; command runs a command line there until ctx ends.
func inHouse(t *testing.T, h *household) (path string, stop func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "house")
	if err != nil {
		t.Fatal(err)
	}
	path, end, err := keepHouse(dir, h)
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	t.Cleanup(stop)
	return path, stop
}

func command(ctx context.Context, out, errOut io.Writer, args ...string) error {
	cmd := newRootCommand()
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	return cmd.ExecuteContext(ctx)
}

// page is output that a test waits for.
type page struct {
	mu    sync.Mutex
	text  strings.Builder
	grown chan struct{}
}

func newPage() *page { return &page{grown: make(chan struct{}, 1)} }

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.grown <- struct{}{}:
	default:
	}
	return p.text.Write(b)
}

func (p *page) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(20 * time.Second)
	for !strings.Contains(p.String(), text) {
		select {
		case <-p.grown:
		case <-late:
			t.Fatalf("%q did not come; there is %q", text, p.String())
		}
	}
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// logs -f shows lines as they come; Ctrl-C ends it without an error, and so does the end of the bridge, with a word.
func TestLogsFollow(t *testing.T) {
	for _, how := range []string{"ctrl-c", "bridge stops"} {
		h := &household{}
		path, stop := inHouse(t, h)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		out, errOut, end := newPage(), newPage(), make(chan error, 1)
		go func() { end <- command(ctx, out, errOut, "logs", "files", "-f", "--control", path) }()
		for i := range 5 {
			line := fmt.Sprintf("line %d\n", i)
			h.log.Line("", []byte(strings.TrimSpace(line)))
			out.await(t, line)
		}
		want := ""
		if how == "ctrl-c" {
			leave()
		} else {
			stop()
			want = "mcpbridge: the log ends here: the bridge stops, or the entry of the server has changed; run this again to go on\n"
		}
		if err := <-end; err != nil || errOut.String() != want {
			t.Errorf("%s: %v, %q", how, err, errOut.String())
		}
	}
}

// Without a bridge logs -f follows the files of the last one, so that the next one is seen.
func TestLogsFollowWithoutBridge(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "c.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"stateDir": %q, "mcpServers": {}}`, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	log := telemetry.NewServerLog(filepath.Join(dir, "logs"), "files", 1, 1, mask.Masker{})
	defer log.Close()
	log.Line("", []byte("old"))
	waitForFile(t, filepath.Join(dir, "logs", "files.log"))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	out, errOut, end := newPage(), newPage(), make(chan error, 1)
	go func() {
		end <- command(ctx, out, errOut, "logs", "files", "-f", "--config", file, "--control", filepath.Join(dir, "none.sock"))
	}()
	out.await(t, "old\n")
	log.Line("", []byte("new"))
	out.await(t, "new\n")
	leave()
	if err := <-end; err != nil || errOut.String() != "mcpbridge: no bridge runs; this is what the last one kept\n" {
		t.Errorf("%v, %q", err, errOut.String())
	}
}

// waitForFile waits until a file has something in it.
func waitForFile(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("there is no %s", path)
		}
	}
}

// Ctrl-C ends the waiting of drain and says what stays.
func TestDrainIsLeft(t *testing.T) {
	path, _ := inHouse(t, &household{})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	out, errOut, end := newPage(), newPage(), make(chan error, 1)
	go func() { end <- command(ctx, out, errOut, "drain", "--control", path) }()
	errOut.await(t, "mcpbridge: waiting until nothing is open; new work is refused from now on\n")
	leave()
	if err := <-end; err == nil || err.Error() != "stopped waiting; new work stays refused" || out.String() != "" {
		t.Errorf("%v, %q", err, out.String())
	}
}

// A reload that the file prevents exits with 3 and says where; one that fails otherwise exits with 1.
func TestReloadExitCodes(t *testing.T) {
	h := &household{}
	path, _ := inHouse(t, h)
	for _, tt := range []struct {
		err  error
		code int
		says string
	}{
		{fmt.Errorf("%w: c.json:3:7: syntax error", admin.ErrConfig), exitConfig, "mcpbridge: the configuration has errors; everything goes on as before: c.json:3:7: syntax error\n"},
		{errors.New("the bridge is stopping"), exitFailure, "mcpbridge: the bridge is stopping\n"},
	} {
		h.mu.Lock()
		h.reload = tt.err
		h.mu.Unlock()
		var out, errOut strings.Builder
		if code := run([]string{"reload", "--control", path}, strings.NewReader(""), &out, &errOut); code != tt.code || errOut.String() != tt.says || out.Len() > 0 {
			t.Errorf("%d, %q, %q", code, errOut.String(), out.String())
		}
	}
}

// A watched status is shown at once and again every two seconds, until Ctrl-C or an error.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithTimeout(t.Context(), 3*watchTime+time.Millisecond)
		defer leave()
		var at []time.Duration
		begun := time.Now()
		if err := watch(ctx, func() error { at = append(at, time.Since(begun)); return nil }); err != nil {
			t.Error(err)
		}
		if fmt.Sprint(at) != "[0s 2s 4s 6s]" {
			t.Errorf("%v", at)
		}
		broken := errors.New("broken")
		if err := watch(t.Context(), func() error { return broken }); err != broken {
			t.Errorf("%v", err)
		}
		if err := watch(ctx, func() error { return ctx.Err() }); err != nil {
			t.Errorf("an error that Ctrl-C caused: %v", err)
		}
	})
}

// A watched table begins in the corner of a cleared screen; others send nothing to the terminal.
func TestStatusOnTerminal(t *testing.T) {
	for _, clear := range []bool{true, false} {
		var out strings.Builder
		if err := showStatus(false, clear)(&out, troubled()); err != nil {
			t.Fatal(err)
		}
		rest := strings.TrimPrefix(out.String(), "\x1b[H\x1b[2J")
		if (rest != out.String()) != clear || strings.Contains(rest, "\x1b") {
			t.Errorf("clear %v: %q", clear, out.String())
		}
	}
}

// A bridge that serves nothing has no table.
func TestStatusOfNothing(t *testing.T) {
	var out strings.Builder
	b := admin.Bridge{Version: "devel", Pid: 1, Listening: []string{"127.0.0.1:1"}, Sessions: 1, ProcessLimit: 64,
		LastReload: &admin.ReloadOutcome{OK: true}}
	if err := showStatus(false, false)(&out, admin.Status{Bridge: b}); err != nil {
		t.Fatal(err)
	}
	want := "mcpbridge devel, pid 1, up 0s, 1 session, 0 of 64 processes, -\nlistening on 127.0.0.1:1\nno servers\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0s", 0: "0s", 59*time.Second + 999*time.Millisecond: "59s", time.Minute: "1m00s", time.Hour - time.Second: "59m59s",
		time.Hour: "1h00m", 24*time.Hour - time.Second: "23h59m", 24 * time.Hour: "1d00h", 50 * time.Hour: "2d02h", 1000 * 24 * time.Hour: "1000d00h"} {
		if got := span(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}
