package rig

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	startLimit = 20 * time.Second // from exec to an open port
	stopLimit  = 15 * time.Second // from the stop signal to the exit
	portTries  = 3
)

// Server is a running program that serves MCP over HTTP.
type Server struct {
	URL string // the endpoint
	cmd *exec.Cmd
	log *tail
	// gone is closed when the program has exited.
	gone chan struct{}
}

// Serve starts the bridge in front of a stdio server and returns it when it
// accepts connections. It is stopped, and its log searched for data races, when
// the test ends.
func (s *Shop) Serve(t testing.TB, backend ...string) *Server {
	t.Helper()
	bridge := s.Bridge(t)
	return Start(t, func(addr string) []string {
		return append([]string{bridge, "serve", "--listen", addr, "--"}, backend...)
	})
}

// Start runs a command that is to listen on addr and to serve MCP at /mcp.
func Start(t testing.TB, command func(addr string) []string) *Server {
	t.Helper()
	var err error
	for range portTries {
		var srv *Server
		if srv, err = start(command); err == nil {
			t.Cleanup(func() { srv.stop(t) })
			return srv
		}
	}
	t.Fatal(err)
	return nil
}

func start(command func(addr string) []string) (*Server, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	argv := command(addr)
	srv := &Server{URL: "http://" + addr + "/mcp", cmd: exec.Command(argv[0], argv[1:]...), log: &tail{}, gone: make(chan struct{})}
	srv.cmd.Stdout, srv.cmd.Stderr = srv.log, srv.log
	// The state of a developer's own bridge is none of a test's business.
	state, err := os.MkdirTemp("", "mcpbridge-state-")
	if err != nil {
		return nil, err
	}
	srv.cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state, "XDG_CONFIG_HOME="+state, "XDG_RUNTIME_DIR="+state, "GORACE=halt_on_error=0")
	// Programs a killed child leaves behind may hold the pipes open for ever.
	srv.cmd.WaitDelay = stopLimit
	if err := srv.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", strings.Join(argv, " "), err)
	}
	go func() {
		_ = srv.cmd.Wait() // how it went shows in what it served and logged
		_ = os.RemoveAll(state)
		close(srv.gone)
	}()
	if err := srv.waitListening(addr); err != nil {
		_ = srv.cmd.Process.Kill()
		<-srv.gone
		return nil, fmt.Errorf("cannot use %s: %w\n%s", strings.Join(argv, " "), err, srv.log)
	}
	return srv, nil
}

// freeAddress returns a loopback address that was free a moment ago.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (srv *Server) waitListening(addr string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(startLimit)
	for {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return c.Close()
		}
		select {
		case <-srv.gone:
			return fmt.Errorf("it exited: %v", srv.cmd.ProcessState)
		case <-deadline:
			return fmt.Errorf("it did not listen within %v", startLimit)
		case <-tick.C:
		}
	}
}

func (srv *Server) stop(t testing.TB) {
	t.Helper()
	if err := srv.cmd.Process.Signal(os.Interrupt); err != nil {
		_ = srv.cmd.Process.Kill() // Windows knows no such signal
	}
	select {
	case <-srv.gone:
	case <-time.After(stopLimit):
		_ = srv.cmd.Process.Kill()
		<-srv.gone
		t.Errorf("server did not stop within %v of the signal", stopLimit)
	}
	log := srv.log.String()
	if strings.Contains(log, "WARNING: DATA RACE") {
		t.Error("the server under test has a data race")
	}
	if t.Failed() {
		t.Logf("log of the server under test:\n%s", log)
	}
}

// Log returns the end of what the program has printed so far.
func (srv *Server) Log() string { return srv.log.String() }

// tailBytes is how much of a program's output a tail keeps.
const tailBytes = 64 << 10

// tail is a writer that keeps the end of what is written; safe for concurrent use.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	if over := len(l.b) - tailBytes; over > tailBytes {
		l.b = bytes.Clone(l.b[over:])
	}
	return len(p), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b[max(0, len(l.b)-tailBytes):])
}
