// Command run measures the bridge against its floors and prints Markdown tables.
// Everything a table compares is measured in the same run, round by round, on
// loopback; nothing runs at the same time but what one measurement needs.
//
//	go run ./test/bench/run [-rounds 3] [-d 2s] [-only latency,payload,start,memory] [-bridge FILE]
//
// Linux only, as mcpload is. See test/bench/README.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 3, "rounds; tables show medians")
	duration := flag.Duration("d", 2*time.Second, "length of one measurement")
	only := flag.String("only", "latency,payload,start,memory", "which tables")
	bridge := flag.String("bridge", "", "bridge binary to measure (default: built from the checkout)")
	flag.Parse()
	if err := run(*rounds, *duration, strings.Split(*only, ","), *bridge); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func run(rounds int, duration time.Duration, only []string, bridge string) error {
	dir, err := os.MkdirTemp("", "mcpbridge-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{rounds: rounds, duration: duration, dir: dir,
		load: filepath.Join(dir, "mcpload"), raw: filepath.Join(dir, "raw"), bridge: bridge}
	if err := b.build(); err != nil {
		return err
	}
	fmt.Printf("%s, %d cores, %s, %d rounds of %v\n", cpuName(), runtime.NumCPU(), runtime.Version(), rounds, duration)
	for _, table := range []struct {
		name  string
		print func() error
	}{
		{"latency", b.latency}, {"payload", b.payload}, {"start", b.start}, {"memory", b.memory},
	} {
		if !slices.Contains(only, table.name) {
			continue
		}
		fmt.Println()
		if err := table.print(); err != nil {
			return fmt.Errorf("%s: %w", table.name, err)
		}
	}
	return nil
}

// bench holds the programs and the settings of a run.
type bench struct {
	rounds            int
	duration          time.Duration
	dir               string
	load, raw, bridge string
}

func (b *bench) build() error {
	targets := map[string]string{b.load: "./test/bench/mcpload", b.raw: "./test/fakemcp/raw"}
	if b.bridge == "" {
		b.bridge = filepath.Join(b.dir, "mcpbridge")
		targets[b.bridge] = "./cmd/mcpbridge"
	}
	for bin, pkg := range targets {
		cmd := exec.Command("go", "build", "-trimpath", "-o", bin, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build %s: %w\n%s", pkg, err, out)
		}
	}
	return nil
}

func cpuName() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return runtime.GOARCH
}
