package fault

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpbridge/test/internal/rig"
)

// soakVar names the variable with the length of the long variants.
const soakVar = "MCPBRIDGE_SOAK"

// patience is how long anything may take before a test gives up on it. It is a net, never a pause.
const patience = 15 * time.Second

var shop *rig.Shop

// atOnce is how many tests run at the same time unless the command line says otherwise: they wait for processes and
// time rather than for processors.
const atOnce = "12"

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(atOnce) // it is a number
	}
	code := rig.Run(m, &shop)
	if code == 0 {
		if err := goleak.Find(); err != nil { // no bridge and no client is left
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// object is a JSON object being written.
type object map[string]any

// members spells a configuration as a house takes it.
func members(t testing.TB, file object) string {
	t.Helper()
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(text), "{"), "}")
}

// house makes a house with these servers and further members of the file, which may be nil.
func house(t testing.TB, servers, more object) *rig.House {
	t.Helper()
	file := object{"mcpServers": servers}
	for k, v := range more {
		file[k] = v
	}
	return shop.House(t, members(t, file))
}

// server is an entry with a fixture server and these arguments.
func server(t testing.TB, args ...string) object {
	t.Helper()
	return object{"command": fixture(t), "args": append([]string{}, args...)}
}

// with is the entry with more members.
func (o object) with(more object) object {
	for k, v := range more {
		o[k] = v
	}
	return o
}

func fixture(t testing.TB) string {
	t.Helper()
	return shop.Build(t, "./test/fakemcp/raw")
}

// long reports whether the long variants are asked for, and how long they are to take.
func long(t testing.TB) (time.Duration, bool) {
	t.Helper()
	text := os.Getenv(soakVar)
	if text == "" {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("cannot read %s: %v", soakVar, err)
	}
	return d, true
}

// eventually polls until cond holds.
func eventually(t testing.TB, within time.Duration, what string, cond func() bool) {
	t.Helper()
	if !soon(within, cond) {
		t.Fatalf("not within %v: %s", within, what)
	}
}

// soon polls until cond holds, and reports whether it did in time.
func soon(within time.Duration, cond func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(within); ; <-tick.C {
		if cond() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// needProc skips where processes cannot be looked at.
func needProc(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("skipped: looks at processes through /proc, which only Linux has")
	}
}
