package procman_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpbridge/procman"
)

// modeVar makes the test binary play a server, or a bridge.
const modeVar = "PROCMAN_TEST_MODE"

// roles are what it can play. None lives longer than a minute, whatever a test forgets.
var roles = map[string]func(){
	"echo":     func() { _, _ = io.Copy(os.Stdout, os.Stdin) },
	"discard":  func() { _, _ = io.Copy(io.Discard, os.Stdin) },
	"env":      playEnv,
	"exit3":    func() { fmt.Fprint(os.Stderr, "first\nno module named nosuch"); os.Exit(3) },
	"noisy":    playNoisy,
	"last":     func() { fmt.Print(strings.Repeat("x", 60_000), "the end"); os.Exit(0) },
	"deaf":     func() { say("ready"); wait() },
	"stubborn": playStubborn,
	"lines":    func() { fmt.Fprint(os.Stderr, "one\r\n\n", strings.Repeat("y", procman.MaxStderrLine+1), "\ntail") },
	"bridge":   playBridge,
	"launcher": playLauncher,
}

// unguardedVar makes a bridge one whose children have no guard.
const unguardedVar = "PROCMAN_TEST_UNGUARDED"

func TestMain(m *testing.M) {
	if os.Getenv(unguardedVar) == "" {
		procman.MaybeGuard()
	}
	maps.Copy(roles, platformRoles)
	if role, ok := roles[os.Getenv(modeVar)]; ok {
		time.AfterFunc(time.Minute, func() { os.Exit(70) })
		role()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func say(s string) { fmt.Println(s) }

// wait waits for a minute at most, see TestMain.
func wait() { select {} }

func playEnv() {
	for _, kv := range os.Environ() {
		say(kv)
	}
}

// playNoisy writes 10 MB to stderr before it says anything.
func playNoisy() {
	line := []byte(strings.Repeat("n", 1023) + "\n")
	for range 10 << 10 {
		_, _ = os.Stderr.Write(line)
	}
	fmt.Fprintln(os.Stderr, "last line")
	say("done")
}

// playStubborn takes no notice of EOF and of any signal that can be ignored, and says its number. It writes nothing after
// that: whoever has read it may be gone, and a write into a broken pipe is the end of a program.
func playStubborn() {
	signal.Ignore(append(ignorable, os.Interrupt)...)
	fmt.Fprintln(os.Stderr, "up")
	say(fmt.Sprint("pid ", os.Getpid()))
	wait()
}

// playLauncher starts the stubborn role, as TEST_START says, and ends with EOF on stdin.
func playLauncher() {
	cmd := exec.Command(os.Args[0])
	if os.Getenv("TEST_START") == "shell" {
		cmd = exec.Command("/bin/sh", "-c", os.Args[0]+"; true")
	}
	cmd.Env = append(os.Environ(), modeVar+"=stubborn")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if os.Getenv("TEST_START") == "session" {
		detach(cmd)
	}
	if err := cmd.Start(); err != nil {
		say("cannot start: " + err.Error())
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// kinds are the trees that servers come as. In each the stubborn role is the last one, and says its number.
var kinds = []string{"alone", "shell", "shells", "launcher", "npx", "daemon"}

// kindSpec is the spec of a tree.
func kindSpec(kind, mark string) procman.Spec {
	start := map[string]string{"launcher": "process", "npx": "shell", "daemon": "session"}[kind]
	if start != "" {
		spec := roleSpec("launcher", mark)
		spec.Env = append(spec.Env, "TEST_START="+start)
		return spec
	}
	spec := roleSpec("stubborn", mark)
	switch kind {
	case "shell":
		spec.Command, spec.Args = "/bin/sh", []string{"-c", os.Args[0] + "; true"}
	case "shells":
		spec.Command, spec.Args = "/bin/sh", []string{"-c", "/bin/sh -c " + os.Args[0] + "; true"}
	}
	return spec
}

// playBridge starts trees of the kinds named in TEST_START as children and passes on the first line of each.
func playBridge() {
	for kind := range strings.SplitSeq(os.Getenv("TEST_START"), ";") {
		p, err := procman.OS().Spawn(kindSpec(kind, os.Getenv("TEST_MARK")))
		if err != nil {
			say("cannot start: " + err.Error())
			continue
		}
		line, _ := bufio.NewReader(p.Stdout()).ReadString('\n')
		fmt.Print(line)
	}
	say("ready")
	wait()
}

// roleSpec is the spec of this test binary in a role.
func roleSpec(role, mark string) procman.Spec {
	env := append(procman.BaseEnv(os.Environ()), modeVar+"="+role, "GORACE=atexit_sleep_ms=0")
	return procman.Spec{Name: "files", Command: os.Args[0], Env: env, Mark: mark}
}
