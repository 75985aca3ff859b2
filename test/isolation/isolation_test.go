// Package isolation tests on the real program who shares a server's process with whom: a server that counts, and tells who it
// is, behind every mode of isolation and every pair of clients (issue 3, acceptance 6; translation 14 and 19, row 14; design
// section 8, link identity). With -v it prints the table.
package isolation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpbridge/test/internal/e2e"
	"mcpbridge/test/internal/rig"
)

var shop *rig.Shop

func TestMain(m *testing.M) {
	code := rig.Run(m, &shop)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// modes are the values of isolation. "" is the default: session behind legacy fronts, principal behind modern ones (design
// decision 4).
var modes = []string{"", "session", "principal", "shared", "request"}

// front is a pair of clients, both of one user on this machine, and what they must come to in each mode.
//
// Each makes two calls, in turn. What one sees is the counts it is told: 1 3 and 2 4 where both are served by one process, 1 2
// and 1 2 where each has its own, 1 1 and 1 1 where each call has its own.
type front struct {
	name string
	open [2]func(testing.TB, *e2e.Bridge) client
	want map[string]outcome
}

// outcome is what two clients see of each other.
type outcome string

const (
	together outcome = "one process: 1 3, 2 4"
	apart    outcome = "one each: 1 2, 1 2"
	each     outcome = "one a call: 1 1, 1 1"
	half     outcome = "session 1 2, modern 1 1"
)

var fronts = []front{
	{"two legacy sessions", [2]func(testing.TB, *e2e.Bridge) client{session("{}"), session("{}")},
		map[string]outcome{"": apart, "session": apart, "principal": together, "shared": together, "request": apart}},
	{"two modern clients", [2]func(testing.TB, *e2e.Bridge) client{modern("one"), modern("two")},
		map[string]outcome{"": together, "session": together, "principal": together, "shared": together, "request": each}},
	// The era is part of a link's identity.
	{"a session and a modern client", [2]func(testing.TB, *e2e.Bridge) client{session("{}"), modern("two")},
		map[string]outcome{"": apart, "session": apart, "principal": apart, "shared": apart, "request": half}},
	// So is the profile: nobody is asked what it cannot answer (translation 14.3).
	{"sessions of different profiles", [2]func(testing.TB, *e2e.Bridge) client{session(`{"sampling":{}}`), session(`{"elicitation":{}}`)},
		map[string]outcome{"": apart, "session": apart, "principal": apart, "shared": apart, "request": apart}},
	{"sessions of equal profiles", [2]func(testing.TB, *e2e.Bridge) client{session(`{"elicitation":{"form":{}}}`), session(`{"elicitation":{}}`)},
		map[string]outcome{"": apart, "session": apart, "principal": together, "shared": together, "request": apart}},
}

// client makes a call that counts.
type client func(testing.TB) count

// count is what a counter answers.
type count struct{ Pid, N int }

func session(capabilities string) func(testing.TB, *e2e.Bridge) client {
	return func(t testing.TB, b *e2e.Bridge) client {
		s := b.NewSession(t, "2025-11-25", capabilities)
		return func(t testing.TB) count { return counted(t, s.Call(t, "1", "next", "{}")) }
	}
}

// modern is a client with a name, a connection and a credential-like header of its own: nothing of that makes it another
// principal (META-07).
func modern(name string) func(testing.TB, *e2e.Bridge) client {
	return func(t testing.TB, b *e2e.Bridge) client {
		own := &e2e.Bridge{URL: b.URL, Client: &http.Client{Transport: &http.Transport{}}}
		t.Cleanup(own.Client.CloseIdleConnections)
		h, body := e2e.ModernCall("1", "next", "{}", "")
		h["X-User"] = name
		renamed := strings.Replace(string(body), `"name":"e2e"`, fmt.Sprintf(`"name":%q`, name), 1)
		return func(t testing.TB) count { return counted(t, own.Do(t, "POST", h, []byte(renamed))) }
	}
}

func counted(t testing.TB, r *e2e.Reply) (c count) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.Get(t, "result", "structuredContent")), &c); err != nil || r.Status != 200 {
		t.Fatalf("status %d: %s", r.Status, r.Body)
	}
	return c
}

// counter is an entry of the configuration: a counter in a mode.
type counter struct{ name, mode string }

// start runs a bridge before counters; more is a further setting of each, with a comma before it.
func start(t testing.TB, more string, list ...counter) *rig.House {
	t.Helper()
	entries := make([]string, len(list))
	for i, c := range list {
		isolation := ""
		if c.mode != "" {
			isolation = `, "isolation": ` + e2e.Quote(c.mode)
		}
		entries[i] = fmt.Sprintf(`%q: {"command": %s%s%s}`, c.name, e2e.Quote(shop.Build(t, "./test/fakemcp/counter")), isolation, more)
	}
	h := shop.House(t, `"limits": {"processes": 256}, "mcpServers": {`+strings.Join(entries, ",\n")+`}`)
	h.Start(t)
	return h
}

// ofEachMode are counters named by their mode.
func ofEachMode() (list []counter) {
	for _, mode := range modes {
		list = append(list, counter{label(mode), mode})
	}
	return list
}

func label(mode string) string {
	if mode == "" {
		return "default"
	}
	return mode
}

// at is a client of an endpoint, with connections of its own.
func at(t testing.TB, h *rig.House, name string) *e2e.Bridge {
	b := &e2e.Bridge{URL: h.URL(name), Client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(b.Client.CloseIdleConnections)
	return b
}

// Acceptance 6: modes by fronts, as documented.
func TestIsolation(t *testing.T) {
	fresh := func(mode string, front int) string { return fmt.Sprintf("%s-%d", label(mode), front) }
	var list []counter
	for i := range fronts {
		for _, mode := range modes {
			list = append(list, counter{fresh(mode, i), mode})
		}
	}
	h := start(t, "", list...)
	var table strings.Builder
	for _, mode := range modes {
		fmt.Fprintf(&table, "\n%-10s", label(mode))
		for i, f := range fronts {
			got := observe(t, at(t, h, fresh(mode, i)), f)
			fmt.Fprintf(&table, " | %-30s", got)
			if got != f.want[mode] {
				t.Errorf("isolation %q, %s: got %q, want %q", mode, f.name, got, f.want[mode])
			}
		}
	}
	head := fmt.Sprintf("%-10s", "")
	for _, f := range fronts {
		head += fmt.Sprintf(" | %-30s", f.name)
	}
	t.Logf("what two clients see of each other:\n%s%s", head, &table)
}

// observe has two clients call in turn. The counts and the processes must tell the same.
func observe(t testing.TB, b *e2e.Bridge, f front) outcome {
	t.Helper()
	var clients [2]client
	for i, open := range f.open {
		clients[i] = open(t, b)
	}
	var seen [2][2]count
	for round := range 2 {
		for i, c := range clients {
			seen[i][round] = c(t)
		}
	}
	one, two := seen[0], seen[1]
	numbers := fmt.Sprintf("%d %d, %d %d", one[0].N, one[1].N, two[0].N, two[1].N)
	processes := map[int]bool{}
	for _, s := range seen {
		for _, c := range s {
			processes[c.Pid] = true
		}
	}
	for _, known := range []struct {
		what      outcome
		numbers   string
		processes int
	}{{together, "1 3, 2 4", 1}, {apart, "1 2, 1 2", 2}, {each, "1 1, 1 1", 4}, {half, "1 2, 1 1", 3}} {
		if numbers == known.numbers && len(processes) == known.processes {
			return known.what
		}
	}
	return outcome(fmt.Sprintf("%d processes: %s", len(processes), numbers))
}

// Translation 14.4: whoever a process serves alone takes it along: a session that ends its own, a request its own. A shared
// process stays.
func TestOwnProcessEndsWithItsOwner(t *testing.T) {
	h := start(t, "", ofEachMode()...)
	for _, mode := range modes {
		b := at(t, h, label(mode))
		s := b.NewSession(t, "2025-11-25", "{}")
		counted(t, s.Call(t, "1", "next", "{}"))
		if r := s.Delete(t); r.Status != 204 {
			t.Errorf("%s: DELETE: %d", label(mode), r.Status)
		}
		counted(t, b.Modern(t, "1", "next", "{}"))
		want := map[string]int{"": 1, "session": 1, "principal": 2, "shared": 2, "request": 0}[mode]
		got := -1
		for deadline := time.Now().Add(e2e.Patience); got != want && time.Now().Before(deadline); {
			got = processes(t, h, label(mode))
		}
		if got != want {
			t.Errorf("%s: %d processes are left, want %d", label(mode), got, want)
		}
	}
}

// processes asks the bridge how many processes a server has.
func processes(t testing.TB, h *rig.House, name string) (n int) {
	t.Helper()
	out, complaint, code := h.Run(t, "status", "--json")
	var s struct {
		Servers []struct {
			Name      string
			Processes []struct{ Pid int }
		}
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 {
		t.Fatalf("status --json: exit %d, %v\n%s%s", code, err, out, complaint)
	}
	for _, server := range s.Servers {
		for _, p := range server.Processes {
			if server.Name == name && p.Pid != 0 {
				n++
			}
		}
	}
	return n
}

// A warm spare belongs to nobody until it is taken, and to one owner then (issue 3, pool): the same table holds with spares.
func TestIsolationWithSpares(t *testing.T) {
	h := start(t, `, "spare": 2, "maxProcesses": 32`, ofEachMode()...)
	for _, mode := range modes {
		if got, f := observe(t, at(t, h, label(mode)), fronts[0]), fronts[0]; got != f.want[mode] {
			t.Errorf("isolation %q with spares, %s: got %q, want %q", mode, f.name, got, f.want[mode])
		}
	}
}

// Isolation "request": calls at the same time have a process each, and none is left after them. The limit holds: what is beyond
// waits its turn.
func TestRequestsAtOnce(t *testing.T) {
	const callers, limit = 6, 3
	h := start(t, fmt.Sprintf(`, "maxProcesses": %d`, limit), counter{"request", "request"})
	b := at(t, h, "request")
	var pending []*e2e.Pending
	for i := range callers {
		header, body := e2e.ModernCall(fmt.Sprint(i), "sleep", `{"ms":300}`, "")
		pending = append(pending, b.Launch(t, "POST", header, body))
	}
	seen := map[int]bool{}
	for _, p := range pending {
		seen[counted(t, p.Wait(t)).Pid] = true
	}
	if len(seen) != callers {
		t.Errorf("%d calls were served by %d processes", callers, len(seen))
	}
	for deadline := time.Now().Add(e2e.Patience); processes(t, h, "request") > 0; {
		if time.Now().After(deadline) {
			t.Fatal("processes are left after the last call")
		}
	}
}
