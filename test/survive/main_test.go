// Package survive tests on the real program what must outlive what: sessions their server's process, the bridge and the
// replica that made them (design decisions 6 and 7), servers a reload that is about others, and everything a faulty
// configuration file. Each test names the acceptance line, requirement or field case it holds. The tests kill, signal and
// reload a program from outside and know it by its commands, its wire and its control output only.
package survive

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
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

// legacy is the revision the sessions here speak.
const legacy = "2025-11-25"

// home is a house whose servers are counters, and their common log.
type home struct {
	*rig.House
	log    string
	client *http.Client
}

// settle makes a house. members are those of the file beside mcpServers, each with a comma behind it.
func settle(t testing.TB, members string, list ...entry) *home {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("skipped: bridges are ended and reloaded with signals here, which Windows has not; the same code is tested there in process")
	}
	h := &home{House: shop.House(t, ""), client: &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}}}
	h.log = filepath.Join(t.TempDir(), "counters.log")
	h.furnish(t, members, list...)
	t.Cleanup(h.client.CloseIdleConnections)
	return h
}

// furnish writes the configuration anew.
func (h *home) furnish(t testing.TB, members string, list ...entry) {
	t.Helper()
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = e.text(t, h.log)
	}
	h.Write(t, members+` "mcpServers": {`+strings.Join(texts, ",\n")+`}`)
}

// entry is a server of the configuration: a counter.
type entry struct {
	name  string
	more  string   // further settings, each with a comma before it
	flags []string // of the counter
}

func (e entry) text(t testing.TB, log string) string {
	t.Helper()
	args := append([]string{"-log", log}, e.flags...)
	return fmt.Sprintf(`%s: {"command": %s, "args": %s%s}`, e2e.Quote(e.name), e2e.Quote(counterBinary(t)), list(args), e.more)
}

func counterBinary(t testing.TB) string {
	t.Helper()
	return shop.Build(t, "./test/fakemcp/counter")
}

func list(texts []string) string {
	b, err := json.Marshal(texts)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// at is a client's view of an endpoint.
func (h *home) at(name string) *e2e.Bridge { return &e2e.Bridge{URL: h.URL(name), Client: h.client} }

// state is what a counter tells about itself.
type state struct {
	Pid  int
	N    int
	Mark string
	Args []string
}

// told reads the answer of a counter. It fails the test if there is none.
func told(t testing.TB, r *e2e.Reply) state {
	t.Helper()
	s, err := stateOf(r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stateOf is told for goroutines that may not end the test.
func stateOf(r *e2e.Reply) (s state, err error) {
	if r.Status != 200 || len(r.Messages) == 0 {
		return s, fmt.Errorf("status %d: %.300s", r.Status, r.Body)
	}
	var m struct {
		Result struct{ StructuredContent *state }
	}
	last := r.Messages[len(r.Messages)-1]
	if err = json.Unmarshal(last, &m); err == nil && m.Result.StructuredContent == nil {
		err = fmt.Errorf("no state in %.300s", last)
	}
	if err != nil {
		return s, err
	}
	return *m.Result.StructuredContent, nil
}

// seen is a line that a counter read, or wrote at its start.
type seen struct {
	pid  int
	text string
}

// seen returns what all counters have seen so far, in order.
func (h *home) seen(t testing.TB) (all []seen) {
	t.Helper()
	b, err := os.ReadFile(h.log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		pid, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatalf("a counter logged %q", line)
		}
		all = append(all, seen{n, text})
	}
	return all
}

// starts is how many processes have been started.
func (h *home) starts(t testing.TB) int { return len(h.find(t, 0, "start ")) }

// find returns what a process, or any if pid is 0, has seen that holds all these texts.
func (h *home) find(t testing.TB, pid int, texts ...string) (found []string) {
	t.Helper()
next:
	for _, s := range h.seen(t) {
		if pid != 0 && s.pid != pid {
			continue
		}
		for _, text := range texts {
			if !strings.Contains(s.text, text) {
				continue next
			}
		}
		found = append(found, s.text)
	}
	return found
}

// eventually waits until ok, which tells what is missing otherwise.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(e2e.Patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited %v in vain: %s", e2e.Patience, what)
		}
	}
}

// alive reports whether there is a process of that number which has not ended.
func alive(pid int) bool {
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, rest, _ := strings.Cut(string(b), ") ")
		return !strings.HasPrefix(rest, "Z")
	} else if runtime.GOOS == "linux" {
		return false
	}
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(nothing) == nil
}

// status is the part of `mcpbridge status --json` that is looked at.
type status struct {
	Bridge struct {
		Pid        int
		Sessions   int
		Processes  int
		LastReload *struct {
			OK    bool
			Error string
		}
	}
	Servers []struct {
		Name      string
		State     string
		Ready     bool
		Problem   string
		Processes []struct {
			Pid    int
			Serves string
		}
	}
}

func (h *home) status(t testing.TB, flags ...string) (s status) {
	t.Helper()
	out, complaint, code := h.Run(t, append([]string{"status", "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 {
		t.Fatalf("status --json: exit %d, %v\n%s%s", code, err, out, complaint)
	}
	return s
}
