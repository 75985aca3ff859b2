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

func TestMain(m *testing.M) {
	procman.MaybeGuard()
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

// playStubborn takes no notice of EOF and of any signal that can be ignored, and says its number.
func playStubborn() {
	signal.Ignore(append(ignorable, os.Interrupt)...)
	say(fmt.Sprint("pid ", os.Getpid()))
	fmt.Fprintln(os.Stderr, "up")
	wait()
}

// playLauncher starts the role in TEST_START (in a session of its own with TEST_SETSID) and ends with EOF on stdin.
func playLauncher() {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), modeVar+"="+os.Getenv("TEST_START"))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if os.Getenv("TEST_SETSID") != "" {
		detach(cmd)
	}
	if err := cmd.Start(); err != nil {
		say("cannot start: " + err.Error())
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// playBridge starts the roles named in TEST_START as children and passes on the first line of each.
func playBridge() {
	for _, cmd := range strings.Split(os.Getenv("TEST_START"), ";") {
		role, start, _ := strings.Cut(cmd, ":")
		spec := roleSpec(role, os.Getenv("TEST_MARK"))
		spec.Env = append(spec.Env, "TEST_START="+start, "TEST_SETSID=1")
		if role == "sh" {
			spec.Command, spec.Args = "/bin/sh", []string{"-c", os.Args[0] + "; true"}
			spec.Env = append(spec.Env, modeVar+"=stubborn")
		}
		p, err := procman.OS().Spawn(spec)
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
