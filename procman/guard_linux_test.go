package procman_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpbridge/procman"
)

// bridge starts this binary as a bridge with children; it returns their numbers once all run.
func bridge(t *testing.T, mark string, start []string, env ...string) (*exec.Cmd, []int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(procman.BaseEnv(os.Environ()), modeVar+"=bridge", "TEST_MARK="+mark, "TEST_START="+strings.Join(start, ";"))
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var pids []int
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		if strings.HasPrefix(lines.Text(), "pid ") {
			pids = append(pids, pidLine(t, lines.Text()))
		}
	}
	return cmd, pids
}

// guardsOf lists the guard processes of a bridge.
func guardsOf(pid int) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []int
	for _, file := range files {
		cmdline, _ := os.ReadFile(file)
		guard, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		if string(cmdline) == "mcpbridge-guard\x00" && bytes.Contains(stat, []byte(fmt.Sprintf(" %d ", pid))) && lives(guard) {
			found = append(found, guard)
		}
	}
	return found
}

// Case 18: SIGKILL of the bridge takes everything along within 5 s, trees of all kinds and the guard.
func TestDeathOfTheBridge(t *testing.T) {
	mark := testMark(t)
	cmd, pids := bridge(t, mark, kinds)
	if len(pids) != len(kinds) {
		t.Fatalf("bridge started %v, want one of each kind", pids)
	}
	if n := len(marked(mark)); n < 2*len(kinds)-1 {
		t.Fatalf("%d marked processes: these are no trees", n)
	}
	var guards []int
	eventually(t, patience, "one guard", func() bool { guards = guardsOf(cmd.Process.Pid); return len(guards) == 1 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	begin := time.Now()
	eventually(t, 5*time.Second, "tree and guard gone", func() bool {
		return !slices.ContainsFunc(pids, lives) && len(marked(mark)) == 0 && !lives(guards[0])
	})
	t.Logf("all gone after %v", time.Since(begin).Round(time.Millisecond))
}

// The guard itself may die, and signals from a terminal or from a service manager do not end it.
func TestGuardIsReplacedAndIgnoresSignals(t *testing.T) {
	mark := testMark(t)
	cmd, pids := bridge(t, mark, []string{"daemon"})
	var old []int
	eventually(t, patience, "one guard", func() bool { old = guardsOf(cmd.Process.Pid); return len(old) == 1 })
	eventually(t, patience, "guard ignores SIGINT", func() bool { return ignores(old[0], syscall.SIGINT) })
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !ignores(old[0], sig) {
			t.Errorf("the guard does not ignore %v", sig)
		}
	}
	if sid, _ := getsid(old[0]); sid != old[0] {
		t.Errorf("the guard is in session %d, want its own", sid)
	}
	for range 2 { // the second one dies young
		last := old[0]
		if err := syscall.Kill(last, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, patience, "another guard", func() bool {
			old = guardsOf(cmd.Process.Pid)
			return len(old) == 1 && old[0] != last
		})
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, 5*time.Second, "tree gone", func() bool { return !slices.ContainsFunc(pids, lives) && len(marked(mark)) == 0 })
}

func ignores(pid int, sig syscall.Signal) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "SigIgn:\t")
	mask, _ := strconv.ParseUint(strings.Fields(rest + " 0")[0], 16, 64)
	return mask&(1<<(uint(sig)-1)) != 0
}

func getsid(pid int) (int, error) {
	sid, _, errno := syscall.Syscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(sid), nil
}

// The guard goes with the last child.
func TestGuardEndsWithTheLastChild(t *testing.T) {
	p := spawn(t, roleSpec("echo", ""))
	eventually(t, patience, "a guard", func() bool { return len(guardsOf(os.Getpid())) == 1 })
	if err := procman.Stop(t.Context(), p, procman.Grace{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "no guard", func() bool { return len(guardsOf(os.Getpid())) == 0 })
}
