package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// House is a folder in which bridges run one after the other: with one configuration file, one state directory and one
// control socket, at one address.
type House struct {
	Dir    string
	Addr   string // host:port, free when the house was made
	Config string // path of the configuration file
	bridge string
	env    []string
}

// House makes a house around a configuration: the members of the file but `listen`, without the outer braces.
func (s *Shop) House(t testing.TB, members string) *House {
	t.Helper()
	addr, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "mb") // short: the path of a socket may have about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &House{Dir: dir, Addr: addr, Config: filepath.Join(dir, "mcp.json"), bridge: s.Bridge(t)}
	h.env = append(os.Environ(), "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_RUNTIME_DIR="+dir, "GORACE=halt_on_error=0 atexit_sleep_ms=0")
	h.Write(t, members)
	return h
}

// Write replaces the configuration at once, as an editor does.
func (h *House) Write(t testing.TB, members string) {
	t.Helper()
	h.WriteRaw(t, fmt.Sprintf("{\"listen\": %q,\n%s}", h.Addr, members))
}

// WriteRaw replaces the whole text of the configuration file.
func (h *House) WriteRaw(t testing.TB, text string) {
	t.Helper()
	next := h.Config + ".new"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, h.Config); err != nil {
		t.Fatal(err)
	}
}

// URL is the endpoint of a server.
func (h *House) URL(server string) string { return "http://" + h.Addr + "/servers/" + server + "/mcp" }

// Tenant is a bridge that runs in a house.
type Tenant struct {
	House *House
	Pid   int
	srv   *Server
}

// Start runs a bridge until it listens. It is stopped when the test ends, if it still runs.
func (h *House) Start(t testing.TB, flags ...string) *Tenant {
	t.Helper()
	argv := append([]string{"serve", "--config", h.Config}, flags...)
	srv := &Server{URL: "http://" + h.Addr, cmd: exec.Command(h.bridge, argv...), log: &tail{}, gone: make(chan struct{})}
	srv.cmd.Stdout, srv.cmd.Stderr, srv.cmd.Env, srv.cmd.WaitDelay = srv.log, srv.log, h.env, stopLimit
	if err := srv.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = srv.cmd.Wait() // how it went shows in what it served and logged
		close(srv.gone)
	}()
	if err := srv.waitListening(h.Addr); err != nil {
		_ = srv.cmd.Process.Kill()
		<-srv.gone
		t.Fatalf("cannot start a bridge: %v\n%s", err, srv.log)
	}
	tenant := &Tenant{House: h, Pid: srv.cmd.Process.Pid, srv: srv}
	t.Cleanup(func() {
		if !tenant.Gone() {
			srv.stop(t)
		}
	})
	return tenant
}

// Gone reports whether the bridge has exited.
func (r *Tenant) Gone() bool {
	select {
	case <-r.srv.gone:
		return true
	default:
		return false
	}
}

// Signal sends the bridge a signal.
func (r *Tenant) Signal(t testing.TB, sig os.Signal) {
	t.Helper()
	if err := r.srv.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the bridge as a crash does and waits for that.
func (r *Tenant) Kill(t testing.TB) {
	t.Helper()
	r.Signal(t, os.Kill)
	<-r.srv.gone
}

// Stop ends the bridge in order and returns its exit code.
func (r *Tenant) Stop(t testing.TB) int {
	t.Helper()
	r.Signal(t, syscall.SIGTERM)
	select {
	case <-r.srv.gone:
	case <-time.After(stopLimit):
		t.Fatalf("the bridge did not stop within %v\n%s", stopLimit, r.srv.log)
	}
	if strings.Contains(r.Log(), "WARNING: DATA RACE") {
		t.Error("the bridge has a data race")
	}
	return r.srv.cmd.ProcessState.ExitCode()
}

// Log returns the end of what the bridge has printed so far.
func (r *Tenant) Log() string { return r.srv.log.String() }

// Run runs another command of the program in the house, such as `status --json`, and returns what it printed and its exit code.
func (h *House) Run(t testing.TB, args ...string) (out, errOut string, code int) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), startLimit)
	defer stop()
	cmd := exec.CommandContext(ctx, h.bridge, append(args, "--config", h.Config)...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &o, &e, h.env
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("cannot run %v: %v", args, err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}
