package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"mcpbridge/admin"
	"mcpbridge/telemetry"
)

// maxExitRunes is the length at which the last column is cut; `status --json` has all of it.
const maxExitRunes = 60

// printStatus prints a status for people: a line about the bridge, a table of the servers, and what is wrong with them.
func printStatus(w io.Writer, s admin.Status) {
	now := s.Bridge.StartedAt.Add(seconds(s.Bridge.Uptime)) // by the bridge's clock
	printBridge(w, s.Bridge, now)
	if len(s.Servers) == 0 {
		fmt.Fprintln(w, "no servers")
		return
	}
	rows := [][]string{{"NAME", "STATE", "PID", "UPTIME", "RESTARTS", "SESSIONS", "CALLS", "MEMORY", "LAST EXIT"}}
	for _, one := range s.Servers {
		rows = append(rows, serverRow(one, now))
	}
	fmt.Fprintln(w)
	printTable(w, rows)
	printProblems(w, s.Servers, now)
}

func printBridge(w io.Writer, b admin.Bridge, now time.Time) {
	fmt.Fprintf(w, "mcpbridge %s, pid %d, up %s, %s, %d of %d processes, %s\n", telemetry.Printable(b.Version), b.Pid, span(seconds(b.Uptime)),
		count(b.Sessions, "session", "sessions"), b.Processes, b.ProcessLimit, bytesText(b.MemoryBytes))
	fmt.Fprintf(w, "listening on %s\n", telemetry.Printable(strings.Join(b.Listening, ", ")))
	if b.ConfigFile != "" {
		fmt.Fprintf(w, "configuration %s\n", telemetry.Printable(b.ConfigFile))
	}
	if b.Draining {
		fmt.Fprintln(w, "draining: new work is refused")
	}
	if r := b.LastReload; r != nil && !r.OK {
		fmt.Fprintf(w, "the last reload, %s ago, failed; everything goes on as before:\n", span(now.Sub(r.At)))
		indent(w, r.Error)
	}
}

// serverRow is the line of one server.
func serverRow(s admin.Server, now time.Time) []string {
	var pids []int
	var up float64
	var memory uint64
	for _, p := range s.Processes {
		if p.Pid != 0 {
			pids, up, memory = append(pids, p.Pid), max(up, p.Uptime), memory+p.MemoryBytes
		}
	}
	uptime := "-"
	if len(pids) > 0 {
		uptime = span(seconds(up))
	}
	calls := strconv.FormatInt(s.Calls, 10)
	if s.CallsFailed > 0 {
		calls += fmt.Sprintf(" (%d failed)", s.CallsFailed)
	}
	return []string{telemetry.Printable(s.Name), telemetry.Printable(s.State), pidText(pids), uptime, strconv.Itoa(s.Restarts),
		strconv.Itoa(s.Sessions), calls, bytesText(memory), exitText(s.LastExit, now)}
}

// pidText names the first process and counts the others.
func pidText(pids []int) string {
	switch len(pids) {
	case 0:
		return "-"
	case 1:
		return strconv.Itoa(pids[0])
	}
	return fmt.Sprintf("%d +%d", pids[0], len(pids)-1)
}

func exitText(x *admin.Exit, now time.Time) string {
	if x == nil {
		return "-"
	}
	text, _, _ := strings.Cut(x.Text, "\n")
	text = telemetry.Printable(text)
	if r := []rune(text); len(r) > maxExitRunes {
		text = string(r[:maxExitRunes-1]) + "…"
	}
	return fmt.Sprintf("%s, %s ago", text, span(now.Sub(x.At)))
}

// printProblems says what keeps servers from working, below the table because it takes room.
func printProblems(w io.Writer, servers []admin.Server, now time.Time) {
	for _, s := range servers {
		var lines []string
		if s.Problem != "" {
			lines = append(lines, s.Problem)
		}
		if s.LastError != "" && s.LastError != s.Problem {
			lines = append(lines, s.LastError)
		}
		if next := nextStart(s); next != nil {
			lines = append(lines, "next start in "+span(next.Sub(now)))
		}
		if s.Waiting > 0 {
			lines = append(lines, "waiting for a process: "+count(s.Waiting, "request", "requests"))
		}
		if len(lines) > 0 {
			fmt.Fprintf(w, "\n%s:\n", telemetry.Printable(s.Name))
			indent(w, strings.Join(lines, "\n"))
		}
	}
}

// nextStart is the first time at which a process of the server is started again, nil if none waits for that.
func nextStart(s admin.Server) (first *time.Time) {
	for _, p := range s.Processes {
		if p.NextStart != nil && (first == nil || p.NextStart.Before(*first)) {
			first = p.NextStart
		}
	}
	return first
}

func indent(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(w, "  %s\n", telemetry.Printable(strings.TrimSuffix(line, "\n")))
	}
}
