package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// figures are what mcpload prints, as far as it is used here.
type figures struct {
	OK, Wrong, Missing, Timeouts      int
	RPCErrors, HTTPErrors, ConnErrors int
	PerSecond, P50, P99               float64
	RSS, PeakRSS, Startup, Cold       float64
}

func (f *figures) UnmarshalJSON(b []byte) error {
	var wire struct {
		OK         int     `json:"ok"`
		Wrong      int     `json:"wrong"`
		Missing    int     `json:"missing"`
		Timeouts   int     `json:"timeouts"`
		RPCErrors  int     `json:"rpc_errors"`
		HTTPErrors int     `json:"http_errors"`
		ConnErrors int     `json:"conn_errors"`
		PerSecond  float64 `json:"per_sec"`
		P50        float64 `json:"p50_ms"`
		P99        float64 `json:"p99_ms"`
		RSS        float64 `json:"rss_MiB"`
		PeakRSS    float64 `json:"peak_rss_MiB"`
		Startup    float64 `json:"startup_ms"`
		Cold       float64 `json:"cold_ms"`
	}
	err := json.Unmarshal(b, &wire)
	*f = figures(wire)
	return err
}

// bad is how many calls did not get their own answer.
func (f figures) bad() int {
	return f.Wrong + f.Missing + f.Timeouts + f.RPCErrors + f.HTTPErrors + f.ConnErrors
}

// mcpload runs the load generator.
func (b *bench) mcpload(args ...string) (figures, error) {
	cmd := exec.Command(b.load, args...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	var f figures
	if err != nil {
		return f, fmt.Errorf("mcpload %v: %w: %s", args, err, complaints.String())
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return f, fmt.Errorf("mcpload %v printed %q: %w", args, out, err)
	}
	return f, nil
}

// shape is what one measurement asks for.
type shape struct {
	callers int
	size    int // bytes
	tool    string
}

func (b *bench) flags(s shape) []string {
	return []string{"-c", strconv.Itoa(s.callers), "-size", strconv.Itoa(s.size), "-tool", s.tool, "-d", b.duration.String()}
}

// direct measures the stdio server alone.
func (b *bench) direct(s shape) (figures, error) {
	return b.mcpload(append(append([]string{"direct"}, b.flags(s)...), "--", b.raw)...)
}

// over measures a server started by start, which gets an address.
func (b *bench) over(era era, s shape, command func(addr string) []string, extra ...string) (figures, error) {
	srv, err := b.serve(command)
	if err != nil {
		return figures{}, err
	}
	defer srv.stop()
	args := append([]string{"load", "-mode", era.mode, "-url", srv.url, "-pid", strconv.Itoa(srv.cmd.Process.Pid)}, b.flags(s)...)
	return b.mcpload(append(args, extra...)...)
}

func (b *bench) rawHTTP(addr string) []string { return []string{b.raw, "-dual", "-http", addr} }

// bridged is the bridge in front of the raw server, in its default configuration.
func (b *bench) bridged(e era) func(addr string) []string {
	return func(addr string) []string {
		return append([]string{b.bridge, "serve", "--listen", addr, "--", b.raw}, e.backend...)
	}
}

// server is a program under measurement.
type server struct {
	cmd *exec.Cmd
	url string
}

func (b *bench) serve(command func(addr string) []string) (*server, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	argv := command(addr)
	srv := &server{cmd: exec.Command(argv[0], argv[1:]...), url: "http://" + addr + "/mcp"}
	srv.cmd.Env = b.environment()
	if err := srv.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", argv[0], err)
	}
	if err := waitListening(addr); err != nil {
		srv.stop()
		return nil, fmt.Errorf("cannot use %v: %w", argv, err)
	}
	return srv, nil
}

// environment keeps the state of the user's own bridge out of the measurement.
func (b *bench) environment() []string {
	state := filepath.Join(b.dir, "state")
	return append(os.Environ(), "XDG_STATE_HOME="+state, "XDG_CONFIG_HOME="+state, "XDG_RUNTIME_DIR="+state)
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(os.Interrupt)
	timer := time.AfterFunc(10*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	_ = s.cmd.Wait()
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func waitListening(addr string) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(deadline) {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// median returns the middle figure of the rounds.
func median(all []figures, of func(figures) float64) float64 {
	values := make([]float64, len(all))
	for i, f := range all {
		values[i] = of(f)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func most(all []figures, of func(figures) float64) float64 {
	high := 0.0
	for _, f := range all {
		high = max(high, of(f))
	}
	return high
}

func countBad(all []figures) int {
	n := 0
	for _, f := range all {
		n += f.bad()
	}
	return n
}
