package fault

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpbridge/test/internal/rig"
)

// sigstop is SIGSTOP on Linux; other systems have no constant for it.
const sigstop = syscall.Signal(19)

// ladder is the longest time in which a server is ended: 2 seconds for the end of its input, 3 for a polite signal, and
// what the machine takes.
const ladder = 8 * time.Second

// tribe is a server that is more than one process, or hard to end.
type tribe struct {
	name  string
	entry object
	tool  object // what it is called with: name and arguments
	least int    // processes it has
}

// tribes are the kinds the acceptance names, those from npm apart.
func tribes(t *testing.T) []tribe {
	raw, dir := fixture(t), t.TempDir()
	return []tribe{
		{"shells", object{"command": "sh", "args": []string{"-c", fmt.Sprintf(`sh -c "%s"; true`, raw)}}, echoing, 2},
		{"stubborn", server(t, "-stubborn"), echoing, 1},
		{"stubborn-shells", object{"command": "sh", "args": []string{"-c", fmt.Sprintf(`sh -c "%s -stubborn; true"; true`, raw)}}, echoing, 3},
		{"daemon", server(t, "-daemon", filepath.Join(dir, "daemon")), echoing, 2},
		{"stubborn-with-daemon", server(t, "-stubborn", "-daemon", filepath.Join(dir, "daemon")), echoing, 2},
	}
}

var echoing = object{"name": "echo", "arguments": `{"text":"x"}`}

// npx starts the server of npm that is pinned for the tests, as people have it in their configuration.
func npx(t *testing.T) []tribe {
	shop.Node(t)
	dir := shop.Peer(t, "@modelcontextprotocol/server-everything")
	command, err := exec.LookPath("npx")
	if err != nil {
		rig.Skip(t, "npx is not in PATH")
	}
	entry := object{"command": command, "args": []string{"-y", "@modelcontextprotocol/server-everything"},
		"cwd": strings.TrimSuffix(dir, filepath.FromSlash("/node_modules/@modelcontextprotocol/server-everything"))}
	return []tribe{{"npx", entry, object{"name": "echo", "arguments": `{"message":"x"}`}, 2}}
}

// home is a bridge with tribes that run.
type home struct {
	*rig.House
	tenant *rig.Tenant
	tribes []tribe
	trees  map[string][]process
	all    []process // with the guard
}

// settle starts a bridge and all its servers, and looks at what runs.
func settle(t *testing.T, tribes []tribe, more object) *home {
	t.Helper()
	entries := object{}
	for _, one := range tribes {
		entries[one.name] = object{}.with(one.entry).with(more)
	}
	h := &home{House: house(t, entries, nil), tribes: tribes, trees: map[string][]process{}}
	h.tenant = h.Start(t)
	for _, one := range tribes {
		before := household(h.tenant.Pid)
		h.use(t, one)
		h.trees[one.name] = added(before, household(h.tenant.Pid))
		if n := len(h.trees[one.name]); n < one.least {
			t.Fatalf("%s is %d processes, want at least %d: %v", one.name, n, one.least, h.trees[one.name])
		}
	}
	h.all = household(h.tenant.Pid)
	t.Cleanup(func() { // whatever the test has found
		for _, p := range h.all {
			if p.there() {
				kill(t, p.pid)
			}
		}
	})
	return h
}

// use calls the server, which starts it if need be.
func (h *home) use(t *testing.T, one tribe) {
	t.Helper()
	c := modern{newClient(t, h.URL(one.name))}
	tool := one.tool
	a := c.call(t.Context(), "1", tool["name"].(string), tool["arguments"].(string))
	if a.kind != result {
		t.Fatalf("%s: %v\n%s", one.name, a, h.tenant.Log())
	}
}

// added is what is in after and not in before, the guard and processes that have ended apart.
func added(before, after []process) []process {
	known := map[int]string{}
	for _, p := range before {
		known[p.pid] = p.start
	}
	var list []process
	for _, p := range after {
		if known[p.pid] != p.start && p.args != guardName && !p.zombie() {
			list = append(list, p)
		}
	}
	return list
}

// guard is the process that watches over the bridge's children.
func (h *home) guard(t *testing.T) process {
	t.Helper()
	for _, p := range h.all {
		if p.args == guardName && p.ppid == h.tenant.Pid {
			return p
		}
	}
	t.Fatalf("the bridge has no guard among %v", h.all)
	return process{}
}

// wantGone waits until none of the processes is left, also none that waits for the bridge to reap it (case 19).
func (h *home) wantGone(t *testing.T, within time.Duration, list []process) {
	t.Helper()
	var left []process
	if !soon(within, func() bool {
		left = nil
		for _, p := range list {
			now, ok := look(p.pid)
			if ok && now.start == p.start && (!now.zombie() || now.ppid == h.tenant.Pid && !h.tenant.Gone()) {
				left = append(left, p)
			}
		}
		return len(left) == 0
	}) {
		t.Errorf("still there after %v: %v", within, left)
	}
}

// wantNothing wants an empty household of the bridge, whatever it was seen to have.
func (h *home) wantNothing(t *testing.T) {
	t.Helper()
	for _, p := range household(h.tenant.Pid) {
		if p.lives() {
			t.Errorf("left by the bridge: %v", p)
		}
	}
}

// Acceptance 3, case 18: nothing of a process tree is left when a server is stopped, and when the bridge is stopped,
// killed, or killed together with its guard and started again.
func TestTreesLeaveNothing(t *testing.T) {
	needProc(t)
	for _, kinds := range []struct {
		name string
		list func(*testing.T) []tribe
	}{{"fixtures", tribes}, {"npx", npx}} {
		for _, way := range []struct {
			name string
			end  func(*testing.T, []tribe)
		}{
			{"restart", restartEach},
			{"idle", waitIdle},
			{"SIGTERM", stopBridge},
			{"SIGKILL", killBridge},
			{"SIGKILL with the guard", killBoth},
		} {
			t.Run(kinds.name+"/"+way.name, func(t *testing.T) { way.end(t, kinds.list(t)) })
		}
	}
}

// restartEach stops all of them; one that is not asked to stop feels nothing, and the next call starts them again.
func restartEach(t *testing.T, tribes []tribe) {
	t.Parallel()
	bystander := tribe{"bystander", server(t), echoing, 1}
	h := settle(t, append(tribes, bystander), nil)
	var wg sync.WaitGroup
	for _, one := range tribes {
		wg.Go(func() {
			if out, errOut, code := h.Run(t, "restart", one.name); code != 0 {
				t.Errorf("restart of %s exits with %d: %s%s", one.name, code, out, errOut)
			}
			h.wantGone(t, time.Second, h.trees[one.name])
		})
	}
	wg.Wait()
	for _, p := range h.trees[bystander.name] {
		if !p.lives() {
			t.Errorf("restart of others has ended %v", p)
		}
	}
	for _, one := range tribes {
		h.use(t, one)
	}
	h.all = append(h.all, household(h.tenant.Pid)...)
	if code := h.tenant.Stop(t); code != 0 {
		t.Errorf("the bridge exits with %d", code)
	}
	h.wantNothing(t)
}

// waitIdle has servers stopped that nobody uses. The guard goes with the last of them.
func waitIdle(t *testing.T, tribes []tribe) {
	t.Parallel()
	h := settle(t, tribes, object{"idleStop": "2s"})
	h.wantGone(t, 2*time.Second+2*ladder, h.all)
	tenantLives(t, h.tenant)
	h.use(t, tribes[0])
}

// stopBridge is SIGTERM: everything is gone when the bridge is.
func stopBridge(t *testing.T, tribes []tribe) {
	t.Parallel()
	h := settle(t, tribes, nil)
	if code := h.tenant.Stop(t); code != 0 {
		t.Errorf("the bridge exits with %d", code)
	}
	h.wantGone(t, time.Second, h.all) // the guard sees the end a moment later
	h.wantNothing(t)
}

// killBridge is SIGKILL, with no bridge that comes after (case 18). It does not run beside tests that start bridges, which
// would clean up.
func killBridge(t *testing.T, tribes []tribe) {
	h := settle(t, tribes, nil)
	h.guard(t)
	h.tenant.Kill(t)
	h.wantGone(t, 5*time.Second, h.all)
	h.wantNothing(t)
}

// killBoth leaves nobody who could clean up but the next bridge.
func killBoth(t *testing.T, tribes []tribe) {
	h := settle(t, tribes, nil)
	h.tenant.Signal(t, sigstop) // it would start another guard
	kill(t, h.guard(t).pid)
	h.tenant.Kill(t)
	left := 0
	for _, one := range tribes {
		for _, p := range h.trees[one.name] {
			if p.lives() {
				left++
			}
		}
	}
	if left == 0 && len(tribes) > 1 {
		t.Error("nothing is left to clean up: this shows nothing")
	}
	next := h.Start(t)
	h.wantGone(t, 5*time.Second, h.all)
	h.wantNothing(t)
	if code := next.Stop(t); code != 0 {
		t.Errorf("the next bridge exits with %d", code)
	}
}
