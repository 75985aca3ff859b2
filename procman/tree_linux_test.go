package procman_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpbridge/procman"
)

// testMark is a mark that no other process on the machine has, and that is cleaned up after the test.
func testMark(t *testing.T) string {
	mark := fmt.Sprintf("procman-test-%d-%d-%s", os.Getpid(), time.Now().UnixNano(), t.Name())
	t.Cleanup(func() {
		for _, pid := range marked(mark) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return mark
}

// marked lists the living processes with the mark.
func marked(mark string) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var found []int
	for _, file := range files {
		env, err := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && bytes.Contains(env, []byte(procman.MarkVar+"=")) && bytes.Contains(env, []byte(":"+mark+"\x00")) && lives(pid) {
			found = append(found, pid)
		}
	}
	return found
}

// lives tells whether a process runs; one that waits to be reaped does not.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	rest := stat[bytes.LastIndexByte(stat, ')')+1:]
	return !bytes.HasPrefix(rest, []byte(" Z")) && !bytes.HasPrefix(rest, []byte(" X"))
}

// eventually polls until cond holds.
func eventually(t *testing.T, within time.Duration, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(within); !cond(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

func pidLine(t *testing.T, line string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), "pid "))
	if err != nil {
		t.Fatalf("no pid in %q", line)
	}
	return pid
}

var quick = procman.Grace{EOF: 50 * time.Millisecond, Term: 100 * time.Millisecond, Kill: patience}

// STD-01: whatever hides behind whatever, it is gone when Stop returns.
func TestStopTakesTheTree(t *testing.T) {
	tests := []struct {
		name string
		spec func(mark string) procman.Spec
	}{
		{"behind a shell", func(mark string) procman.Spec {
			spec := roleSpec("stubborn", mark)
			spec.Command, spec.Args = "/bin/sh", []string{"-c", os.Args[0] + "; true"}
			return spec
		}},
		{"by itself", func(mark string) procman.Spec { return roleSpec("stubborn", mark) }},
		{"without a mark, in the group", func(string) procman.Spec {
			spec := roleSpec("launcher", "")
			spec.Env = append(spec.Env, "TEST_START=stubborn")
			return spec
		}},
		{"in a session of its own", func(mark string) procman.Spec {
			spec := roleSpec("launcher", mark)
			spec.Env = append(spec.Env, "TEST_START=stubborn", "TEST_SETSID=1")
			return spec
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mark := testMark(t)
			p := spawn(t, tt.spec(mark))
			pid := pidLine(t, firstLine(t, p))
			if err := procman.Stop(t.Context(), p, quick); err != nil {
				t.Errorf("stop: %v", err)
			}
			if lives(pid) {
				t.Errorf("process %d survived", pid)
			}
			if left := marked(mark); len(left) > 0 {
				t.Errorf("survivors %v", left)
			}
		})
	}
}

// A leader that ends by itself takes its tree along, and its output still comes to an end.
func TestEndOfTheLeaderEndsTheTree(t *testing.T) {
	mark := testMark(t)
	spec := roleSpec("launcher", mark)
	spec.Env = append(spec.Env, "TEST_START=stubborn", "TEST_SETSID=1")
	p := spawn(t, spec)
	out := bufio.NewReader(p.Stdout())
	line, _ := out.ReadString('\n')
	pid := pidLine(t, line)
	if err := syscall.Kill(p.Pid(), syscall.SIGSEGV); err != nil {
		t.Fatal(err)
	}
	if exit := awaitEnd(t, p); lives(pid) || exit.Requested {
		t.Errorf("process %d lives: %v, exit %+v", pid, lives(pid), exit)
	}
	if _, err := out.ReadString('\n'); err == nil {
		t.Error("the output has no end")
	}
}

// What no means of ours can find, an unmarked process in a session of its own, holds the pipes open. Neither Done nor a
// reader waits for it, and what it had written is not lost.
func TestSurvivorHoldsNobodyUp(t *testing.T) {
	spec := roleSpec("launcher", "")
	spec.Env = append(spec.Env, "TEST_START=stubborn", "TEST_SETSID=1")
	p := spawn(t, spec)
	eventually(t, patience, "survivor runs", func() bool { return bytes.Contains(p.Tail(), []byte("up")) })
	if err := procman.Stop(t.Context(), p, procman.Grace{EOF: patience}); err != nil {
		t.Fatal(err)
	}
	late := time.Now().Add(300 * time.Millisecond)
	eventually(t, patience, "reader comes late", func() bool { return time.Now().After(late) })
	pid := pidLine(t, readAll(t, p))
	if !lives(pid) {
		t.Error("the survivor is gone: the test shows nothing")
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// A child does not die with a thread of the bridge: PDEATHSIG follows the thread that forked.
func TestChildrenOutliveThreads(t *testing.T) {
	var procs []procman.Process
	for range 4 {
		p := spawn(t, roleSpec("deaf", ""))
		firstLine(t, p)
		procs = append(procs, p)
		var threads sync.WaitGroup
		for range 50 {
			threads.Go(runtime.LockOSThread) // ends with the thread still locked, which ends the thread
		}
		threads.Wait()
	}
	for _, p := range procs {
		select {
		case <-p.Done():
			t.Errorf("process %d ended: %v", p.Pid(), p.Exit())
		default:
		}
	}
}

func TestSignalName(t *testing.T) {
	p := spawn(t, roleSpec("deaf", ""))
	firstLine(t, p)
	if err := syscall.Kill(p.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	exit := awaitEnd(t, p)
	if exit.Signal != "SIGKILL" || exit.Code != -1 || !strings.HasPrefix(exit.String(), "killed by SIGKILL after ") {
		t.Errorf("exit %+v: %s", exit, exit)
	}
}

// Case 19: a process that has ended is reaped without anybody asking.
func TestNoZombies(t *testing.T) {
	var pids []int
	for range 20 {
		p := spawn(t, roleSpec("exit3", ""))
		awaitEnd(t, p)
		pids = append(pids, p.Pid())
	}
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && bytes.Contains(stat, []byte(fmt.Sprintf(" Z %d ", os.Getpid()))) {
			t.Errorf("process %d is a zombie", pid)
		}
	}
}

// bridge starts this binary as a bridge with children; it returns their numbers once all run.
func bridge(t *testing.T, mark, start string) (*exec.Cmd, []int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(procman.BaseEnv(os.Environ()), modeVar+"=bridge", "TEST_MARK="+mark, "TEST_START="+start)
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

// Case 18: SIGKILL of the bridge takes everything along within 5 s: a stubborn child, one behind a shell, one that made a
// session of its own, and the guard.
func TestDeathOfTheBridge(t *testing.T) {
	mark := testMark(t)
	cmd, pids := bridge(t, mark, "stubborn;sh;launcher:stubborn")
	if len(pids) != 3 {
		t.Fatalf("bridge started %v, want three", pids)
	}
	if n := len(marked(mark)); n < 5 {
		t.Fatalf("%d marked processes, want three children and two grandchildren", n)
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
	cmd, pids := bridge(t, mark, "launcher:stubborn")
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

func TestSweep(t *testing.T) {
	mark := testMark(t)
	own := spawn(t, roleSpec("stubborn", mark))
	firstLine(t, own)
	orphan := orphaned(t, fmt.Sprintf("%d:1:%s:1:%s", os.Getpid(), pidSpace(t), mark)) // same number, another start
	stranger := orphaned(t, fmt.Sprintf("%d:1:%s:1:%s", os.Getpid(), pidSpace(t), mark+"x"))
	elsewhere := orphaned(t, fmt.Sprintf("%d:1:1:1:%s", os.Getpid(), mark))
	ended, err := procman.Sweep(t.Context(), mark)
	if err != nil || !slices.Equal(ended, []int{orphan}) {
		t.Errorf("swept %v, %v; want %d only", ended, err, orphan)
	}
	for what, pid := range map[string]int{"child of a living bridge": own.Pid(), "child of another installation": stranger, "child of another container": elsewhere} {
		if !lives(pid) {
			t.Errorf("%s was ended", what)
		}
	}
	if ended, err := procman.Sweep(t.Context(), mark); err != nil || len(ended) > 0 {
		t.Errorf("second sweep found %v, %v", ended, err)
	}
}

func pidSpace(t *testing.T) string {
	link, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(strings.TrimPrefix(link, "pid:"), "[]")
}

// orphaned starts a stubborn process with a marker that says that somebody else started it.
func orphaned(t *testing.T, marker string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{modeVar + "=stubborn", procman.MarkVar + "=" + marker}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waited := make(chan struct{})
	line, _ := bufio.NewReader(out).ReadString('\n')
	go func() { _ = cmd.Wait(); close(waited) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-waited })
	return pidLine(t, line)
}

// TryWrite takes what fits and never blocks.
func TestTryWrite(t *testing.T) {
	spec := roleSpec("deaf", "")
	spec.PipeSize = 128 << 10
	p := spawn(t, spec)
	firstLine(t, p)
	in := p.Stdin().(interface{ TryWrite([]byte) (int, error) })
	block := make([]byte, 48<<10)
	total := 0
	for {
		n, err := in.TryWrite(block)
		if err != nil {
			t.Fatal(err)
		}
		if total += n; n == 0 {
			break
		}
	}
	if total != spec.PipeSize {
		t.Errorf("the pipe took %d bytes, want %d", total, spec.PipeSize)
	}
	_ = p.Signal(procman.Kill)
	awaitEnd(t, p)
	if _, err := in.TryWrite(block); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after the end: %v", err)
	}
}

// A try costs no memory: the message path calls it for every message.
func TestTryWriteAllocatesNothing(t *testing.T) {
	p := spawn(t, roleSpec("deaf", ""))
	in := p.Stdin().(interface{ TryWrite([]byte) (int, error) })
	msg := []byte("{}\n")
	if n := testing.AllocsPerRun(100, func() { _, _ = in.TryWrite(msg) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Neither the pipes of one child nor the guard's reach another child: each would keep a pipe open for ever (case 18).
func TestNoFilesLeakIntoChildren(t *testing.T) {
	spawn(t, roleSpec("deaf", ""))
	p := spawn(t, roleSpec("deaf", ""))
	firstLine(t, p)
	given := pipesOf(t, os.Getpid(), true) // what the test itself was started with is not ours to judge
	for fd, target := range pipesOf(t, p.Pid(), false) {
		if fd > 2 && given[fd] != target {
			t.Errorf("descriptor %d is %s", fd, target)
		}
	}
}

// pipesOf lists the pipes a process has open, or only those that its children would get.
func pipesOf(t *testing.T, pid int, inherited bool) map[int]string {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", pid)
	fds, err := os.ReadDir(dir + "fd")
	if err != nil {
		t.Fatal(err)
	}
	pipes := map[int]string{}
	for _, fd := range fds {
		n, _ := strconv.Atoi(fd.Name())
		target, _ := os.Readlink(dir + "fd/" + fd.Name())
		info, _ := os.ReadFile(dir + "fdinfo/" + fd.Name())
		_, flags, _ := strings.Cut(string(info), "flags:\t")
		mode, _ := strconv.ParseUint(strings.Fields(flags + " 0")[0], 8, 64)
		if strings.HasPrefix(target, "pipe:") && (!inherited || mode&syscall.O_CLOEXEC == 0) {
			pipes[n] = target
		}
	}
	return pipes
}
