package procman_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"mcpbridge/procman"
)

// playInit plays process 1 of a container: it gets the orphans of a tree that it stops.
func playInit() {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		say("cannot become a subreaper: " + err.Error())
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go procman.ReapOrphans(ctx)
	p, err := procman.OS().Spawn(kindSpec("daemon", os.Getenv("TEST_MARK")))
	if err != nil {
		say(err.Error())
		return
	}
	line, _ := bufio.NewReader(p.Stdout()).ReadString('\n')
	if err := procman.Stop(ctx, p, quick); err != nil {
		say(err.Error())
		return
	}
	fmt.Print(line)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// Case 19: what process 1 inherits is reaped too.
func TestOrphansAreReaped(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), modeVar+"=init", "TEST_MARK="+testMark(t), "GORACE=atexit_sleep_ms=0")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, _ := bufio.NewReader(out).ReadString('\n')
	pid := pidLine(t, line)
	eventually(t, patience, "orphan reaped", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		return os.IsNotExist(err)
	})
	_ = in.Close()
}

var platformRoles = map[string]func(){"init": playInit}
