package procman_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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

// A leader that ends by itself takes its tree along, and its output still comes to an end.
func TestEndOfTheLeaderEndsTheTree(t *testing.T) {
	mark := testMark(t)
	p := spawn(t, kindSpec("daemon", mark))
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
	p := spawn(t, kindSpec("daemon", ""))
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
