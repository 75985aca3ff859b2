package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// era is how the clients speak, and what the server behind the bridge speaks.
type era struct {
	name, mode string
	backend    []string // flags of the raw server
}

var eras = []era{
	{"legacy", "legacy", nil},
	{"modern", "modern", []string{"-dual"}},
	{"modern over a legacy server", "modern", nil},
}

func perSecond(f figures) float64 { return f.PerSecond }
func p50(f figures) float64       { return f.P50 }
func p99(f figures) float64       { return f.P99 }
func peakRSS(f figures) float64   { return f.PeakRSS }

// floors are the two things a bridge cannot avoid, and the bridge.
type floors struct{ direct, http, bridge []figures }

// seriesRate is S: what both floors one after the other allow, calls a second.
func (f floors) seriesRate() float64 {
	return 1 / (1/median(f.direct, perSecond) + 1/median(f.http, perSecond))
}

// seriesLatency is L, in milliseconds.
func (f floors) seriesLatency() float64 { return median(f.direct, p50) + median(f.http, p50) }

func (b *bench) measure(e era, s shape) (floors, error) {
	var f floors
	for range b.rounds {
		d, err := b.direct(s)
		if err != nil {
			return f, err
		}
		h, err := b.over(e, s, b.rawHTTP)
		if err != nil {
			return f, err
		}
		m, err := b.over(e, s, b.bridged(e))
		if err != nil {
			return f, err
		}
		f.direct, f.http, f.bridge = append(f.direct, d), append(f.http, h), append(f.bridge, m)
	}
	return f, nil
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "MISSED"
}

// latency prints small calls: p50 of one caller against L, rate of many against S,
// and p99 of the most against that of raw HTTP.
func (b *bench) latency() error {
	fmt.Println("| 100 B echo | callers | direct/s | raw-http/s | S | bridge/s | of S | p50 ms | of L | p99 ms | of raw-http's | bad | budget |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, e := range eras {
		for _, callers := range []int{1, 16, 64, 256} {
			f, err := b.measure(e, shape{callers: callers, size: 100, tool: "echo"})
			if err != nil {
				return err
			}
			rate := median(f.bridge, perSecond) / f.seriesRate()
			lat := median(f.bridge, p50) / f.seriesLatency()
			tail := median(f.bridge, p99) / median(f.http, p99)
			bad := countBad(f.bridge)
			ok := bad == 0
			switch callers {
			case 1:
				ok = ok && lat <= 1.2
			case 256:
				ok = ok && rate >= .8 && tail <= 2
			default:
				ok = ok && rate >= .8
			}
			fmt.Printf("| %s | %d | %.0f | %.0f | %.0f | %.0f | %.0f %% | %.3f | %.2f | %.2f | %.2f | %d | %s |\n", e.name, callers,
				median(f.direct, perSecond), median(f.http, perSecond), f.seriesRate(), median(f.bridge, perSecond), 100*rate,
				median(f.bridge, p50), lat, median(f.bridge, p99), tail, bad, met(ok))
		}
	}
	return nil
}

// payload prints large arguments (echo) and large results (blob).
func (b *bench) payload() error {
	fmt.Println("| payload | tool | callers | direct/s | raw-http/s | S | bridge/s | of S | bridge peak MiB | of payload x callers | bad | budget |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, e := range eras {
		for _, s := range []shape{
			{4, 64 << 10, "echo"}, {4, 64 << 10, "blob"},
			{4, 1 << 20, "echo"}, {4, 1 << 20, "blob"},
			{2, 16 << 20, "echo"}, {2, 16 << 20, "blob"},
		} {
			f, err := b.measure(e, s)
			if err != nil {
				return err
			}
			rate := median(f.bridge, perSecond) / f.seriesRate()
			peak := most(f.bridge, peakRSS)
			memory := peak / (float64(s.callers) * float64(s.size) / (1 << 20))
			bad := countBad(f.bridge)
			// A small payload is not what a process's own memory is made of.
			ok := bad == 0 && rate >= .7 && (memory <= 6 || s.size < 1<<20)
			fmt.Printf("| %s %s | %s | %d | %.1f | %.1f | %.1f | %.1f | %.0f %% | %.0f | %.1f | %d | %s |\n", e.name, sizeName(s.size), s.tool, s.callers,
				median(f.direct, perSecond), median(f.http, perSecond), f.seriesRate(), median(f.bridge, perSecond), 100*rate, peak, memory, bad, met(ok))
		}
	}
	return nil
}

func sizeName(n int) string {
	if n < 1<<20 {
		return strconv.Itoa(n>>10) + " KiB"
	}
	return strconv.Itoa(n>>20) + " MiB"
}

// start prints exec to the first good call against the server's own start.
func (b *bench) start() error {
	fmt.Println("| start | bridge to first good call, ms | server alone to first answer, ms | difference | budget 15 ms |")
	fmt.Println("|---|---|---|---|---|")
	for _, e := range eras {
		var cold, alone []figures
		for range max(b.rounds, 7) {
			addr, err := freeAddress()
			if err != nil {
				return err
			}
			command := b.bridged(e)(addr)
			c, err := b.mcpload(append([]string{"cold", "-mode", e.mode, "-url", "http://" + addr + "/mcp", "--"}, command...)...)
			if err != nil {
				return err
			}
			a, err := b.mcpload("direct", "-d", "50ms", "-warm", "1ms", "--", b.raw)
			if err != nil {
				return err
			}
			cold, alone = append(cold, c), append(alone, a)
		}
		bridge := median(cold, func(f figures) float64 { return f.Cold })
		server := median(alone, func(f figures) float64 { return f.Startup })
		fmt.Printf("| %s | %.1f | %.1f | %.1f | %s |\n", e.name, bridge, server, bridge-server, met(bridge-server <= 15))
	}
	return nil
}

// memory prints what stays resident: idle, with many servers, with open sessions, with waiting calls.
func (b *bench) memory() error {
	fmt.Println("| resident memory of the bridge | MiB | budget |")
	fmt.Println("|---|---|---|")
	if err := b.manyServers(); err != nil {
		return err
	}
	shared, err := b.config("shared.json", `{"mcpServers": {"raw": {"command": %q, "isolation": "shared"}}}`, b.raw)
	if err != nil {
		return err
	}
	srv, err := b.serve(shared)
	if err != nil {
		return err
	}
	defer srv.stop()
	url, pid := srv.url[:len(srv.url)-len("/mcp")]+"/servers/raw/mcp", strconv.Itoa(srv.cmd.Process.Pid)
	one, many, err := b.sessions(url, pid)
	if err != nil {
		return err
	}
	floor, err := b.connectionFloor()
	if err != nil {
		return err
	}
	waiting, err := b.mcpload("load", "-url", url, "-c", "1000", "-n", "1000", "-tool", "sleep", "-ms", "2000", "-pid", pid)
	if err != nil {
		return err
	}
	more := many - one
	fmt.Printf("| one server, idle | %.1f | 12: %s |\n", one, met(one <= 12))
	fmt.Printf("| 200 legacy sessions on a shared link, more than one | %.1f | 3: %s |\n", more, met(more <= 3))
	fmt.Printf("| 200 such clients at raw-http, which keeps no sessions, more than one | %.1f | |\n", floor)
	fmt.Printf("| 1000 calls waiting 2 s, %d answered | %.1f | 48: %s |\n", waiting.OK, waiting.PeakRSS, met(waiting.PeakRSS <= 48 && waiting.OK == 1000))
	return nil
}

// sessions returns what is resident in MiB with one open session, and with two hundred.
func (b *bench) sessions(url, pid string) (one, many float64, err error) {
	few, err := b.mcpload("sessions", "-url", url, "-sessions-n", "1", "-pid", pid)
	if err != nil {
		return 0, 0, err
	}
	lots, err := b.mcpload("sessions", "-url", url, "-sessions-n", "200", "-pid", pid)
	return few.RSS, lots.RSS, err
}

// connectionFloor is what the connections of 200 clients cost a bare HTTP server.
func (b *bench) connectionFloor() (float64, error) {
	srv, err := b.serve(b.rawHTTP)
	if err != nil {
		return 0, err
	}
	defer srv.stop()
	one, many, err := b.sessions(srv.url, strconv.Itoa(srv.cmd.Process.Pid))
	return many - one, err
}

// manyServers prints what a bridge with 20 configured servers holds before any was started.
func (b *bench) manyServers() error {
	entries := make([]string, 20)
	for i := range entries {
		entries[i] = fmt.Sprintf("\"s%d\": {\"command\": %q}", i, b.raw)
	}
	twenty, err := b.config("twenty.json", `{"mcpServers": {%s}}`, strings.Join(entries, ", "))
	if err != nil {
		return err
	}
	srv, err := b.serve(twenty)
	if err != nil {
		return err
	}
	defer srv.stop()
	idle, err := b.mcpload("rss", "-pid", strconv.Itoa(srv.cmd.Process.Pid))
	if err != nil {
		return err
	}
	fmt.Printf("| 20 configured servers, none started | %.1f | 16: %s |\n", idle.RSS, met(idle.RSS <= 16))
	return nil
}

// config writes a configuration and returns the command that serves it.
func (b *bench) config(name, format string, a ...any) (func(addr string) []string, error) {
	file := filepath.Join(b.dir, name)
	if err := os.WriteFile(file, fmt.Appendf(nil, format, a...), 0o600); err != nil {
		return nil, err
	}
	return func(addr string) []string {
		return []string{b.bridge, "serve", "--config", file, "--listen", addr}
	}, nil
}
