package fault

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Case 19: a server that exits by itself, twenty times, leaves no zombie.
func TestCase19NoZombies(t *testing.T) {
	needProc(t)
	t.Parallel()
	const ends = 20
	pidFile := filepath.Join(t.TempDir(), "pids")
	h := house(t, object{"s": server(t, "-pidfile", pidFile).with(object{
		"restart": object{"initial": "10ms", "max": "50ms", "breaker": "100/1s"}})}, nil)
	b := h.Start(t)
	c := modern{newClient(t, h.URL("s"))}
	for n := range ends {
		eventually(t, patience, "the server serves again", func() bool { return echo(t.Context(), c, "1", "x").kind == result })
		if a := c.call(t.Context(), "2", "crash", "{}"); a.kind != failure {
			t.Fatalf("end %d: the call got %v", n, a)
		}
		eventually(t, time.Second, "what has ended is reaped", func() bool { return len(zombies(b.Pid)) == 0 })
	}
	if n := len(pids(t, pidFile)); n < ends {
		t.Errorf("only %d processes were started", n)
	}
}

// zombies are the children of a process that wait for it to reap them.
func zombies(parent int) []process {
	var list []process
	for _, p := range processes() {
		if p.ppid == parent && p.zombie() {
			list = append(list, p)
		}
	}
	return list
}

// Case 19, in a container: the bridge is process 1 of a name space of its own and inherits what its servers leave behind.
// What it inherits is reaped when it ends, and the ends of its own servers are still told.
func TestCase19ProcessOne(t *testing.T) {
	needProc(t)
	t.Parallel()
	spacious(t)
	dir := t.TempDir()
	orphans := filepath.Join(dir, "orphans")
	h := house(t, object{"s": server(t, "-daemon", orphans)}, nil)
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", shop.Bridge(t), "serve", "--config", h.Config)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_RUNTIME_DIR="+dir)
	var log strings.Builder
	cmd.Stderr, cmd.WaitDelay = &log, patience
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // too late to matter if all went well
	eventually(t, patience, "the bridge listens", func() bool {
		conn, err := net.Dial("tcp", h.Addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	bridge := onlyChild(t, cmd.Process.Pid)
	c := newClient(t, h.URL("s")).open(t)
	for n := range 3 {
		eventually(t, patience, "the server serves", func() bool { return echo(t.Context(), c, "1", fmt.Sprint(n)).kind == result })
		orphan := adopted(t, bridge.pid)
		kill(t, orphan.pid)
		eventually(t, patience, "the orphan is reaped", func() bool { return !orphan.there() })
		if a := c.call(t.Context(), "2", "crash", "{}"); a.kind != failure || !strings.Contains(a.text, "status 3") {
			t.Errorf("the call that ends the server got %v, want the status of its end", a)
		}
		eventually(t, patience, "the server is reaped", func() bool { return len(zombies(bridge.pid)) == 0 })
	}
	if p, err := os.FindProcess(bridge.pid); err != nil {
		t.Fatal(err)
	} else if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the bridge as process 1 ended with %v\n%s", err, &log)
		}
	case <-time.After(patience):
		t.Error("the bridge as process 1 does not stop")
	}
}

// spacious skips where a process may not have a name space of its own.
func spacious(t *testing.T) {
	t.Helper()
	out, err := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "true").CombinedOutput()
	if err != nil {
		t.Skipf("skipped: cannot make a process name space here: %v %s", err, out)
	}
}

func onlyChild(t *testing.T, parent int) process {
	t.Helper()
	for _, p := range processes() {
		if p.ppid == parent {
			return p
		}
	}
	t.Fatalf("process %d has no child", parent)
	return process{}
}

// adopted is the process that a server has left to the bridge.
func adopted(t *testing.T, bridge int) process {
	t.Helper()
	for _, p := range processes() {
		if p.ppid == bridge && strings.HasSuffix(p.args, " -stubborn") {
			return p
		}
	}
	t.Fatal("the bridge has not inherited what its server left behind")
	return process{}
}
