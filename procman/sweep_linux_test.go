package procman_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"mcpbridge/procman"
)

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

// What a bridge leaves behind that was killed together with its guard, the next one sweeps, whatever hides behind whatever.
func TestSweepTakesTheTrees(t *testing.T) {
	mark := testMark(t)
	cmd, pids := bridge(t, mark, kinds, unguardedVar+"=1")
	if len(pids) != len(kinds) {
		t.Fatalf("bridge started %v, want one of each kind", pids)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, patience, "the kernel has ended the direct child", func() bool { return !lives(pids[slices.Index(kinds, "alone")]) })
	left := slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !lives(pid) })
	if len(left) != len(kinds)-1 {
		t.Errorf("of %v only %v live: the test shows little", pids, left)
	}
	ended, err := procman.Sweep(t.Context(), mark)
	if err != nil {
		t.Error(err)
	}
	for _, pid := range left {
		if lives(pid) || !slices.Contains(ended, pid) {
			t.Errorf("process %d: lives %v, reported ended %v", pid, lives(pid), slices.Contains(ended, pid))
		}
	}
	if rest := marked(mark); len(rest) > 0 {
		t.Errorf("still there: %v", rest)
	}
}
