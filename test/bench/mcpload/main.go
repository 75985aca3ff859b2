//go:build linux

// Command mcpload puts load on an MCP server or bridge and checks every answer.
// It prints one JSON object. Its HTTP client is hand-rolled, so that it takes as
// little of the shared cores as it can.
//
//	mcpload load   -url URL [-mode legacy|modern] -c 16 -d 3s|-n 1000 [-size 100] [-tool echo|blob|sleep] [-sessions shared|worker] [-pid PID]
//	mcpload direct -c 16 -d 3s [-size 100] [-tool ...] -- COMMAND ARGS...   the stdio server alone, over pipes
//	mcpload cold   -url URL [-mode ...] -- COMMAND ARGS...                  exec to the first good tools/call
//	mcpload sessions -url URL -sessions-n 200 -pid PID                      memory of open legacy sessions
//	mcpload rss    -pid PID                                                 memory of a process tree
//
// Linux only: it reads /proc.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

// options are the command line.
type options struct {
	url      string
	modern   bool
	callers  int
	duration time.Duration
	calls    int64
	warm     time.Duration
	timeout  time.Duration
	perCall  bool // one legacy session a caller
	sessions int
	pid      int
	spec     callSpec
	command  []string
}

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	o := parse(os.Args[2:])
	var report any
	var err error
	switch os.Args[1] {
	case "load":
		report, err = load(o)
	case "direct":
		report, err = direct(o)
	case "cold":
		report, err = cold(o)
	case "sessions":
		report, err = openSessions(o)
	case "rss":
		s := startSampler(o.pid)
		r := &result{}
		r.setProcess(s.end())
		report = r
	default:
		usage()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcpload:", err)
		os.Exit(1)
	}
	b, err := json.Marshal(report)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcpload:", err)
		os.Exit(1)
	}
	fmt.Println(string(b))
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: mcpload load|direct|cold|sessions|rss [flags] [-- COMMAND ARGS...]")
	os.Exit(2)
}

func parse(args []string) *options {
	o := &options{}
	fs := flag.NewFlagSet("mcpload", flag.ExitOnError)
	fs.StringVar(&o.url, "url", "", "MCP endpoint")
	mode := fs.String("mode", "legacy", "legacy (2025-11-25) or modern (2026-07-28)")
	fs.IntVar(&o.callers, "c", 1, "concurrent callers")
	fs.DurationVar(&o.duration, "d", 3*time.Second, "how long to count")
	fs.Int64Var(&o.calls, "n", 0, "stop after this many calls (0: after -d)")
	fs.DurationVar(&o.warm, "warm", 700*time.Millisecond, "warm-up, not counted")
	fs.DurationVar(&o.timeout, "timeout", 30*time.Second, "limit for one call")
	sessions := fs.String("sessions", "shared", "legacy: one session for all callers (shared) or one each (worker)")
	fs.IntVar(&o.sessions, "sessions-n", 200, "sessions: how many to open")
	fs.IntVar(&o.pid, "pid", 0, "root of the process tree to sample")
	fs.BoolVar(&o.spec.progress, "progress", false, "send a progress token with each call")
	fs.IntVar(&o.spec.size, "size", 100, "payload bytes")
	fs.StringVar(&o.spec.tool, "tool", "echo", "echo, blob or sleep; any other name with -args")
	fs.StringVar(&o.spec.args, "args", "", "raw JSON arguments; the answer is then checked for its id only")
	fs.IntVar(&o.spec.ms, "ms", 2000, "sleep: milliseconds")
	_ = fs.Parse(args) // ExitOnError
	o.modern, o.perCall, o.command = *mode == "modern", *sessions == "worker", fs.Args()
	return o
}
