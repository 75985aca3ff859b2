package main

import (
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// status is what a server exits with that has come to the end of its life.
const status = 7

// trouble is how the server misbehaves beside the protocol.
type trouble struct {
	say       string
	exit      int
	wait      time.Duration
	life      time.Duration
	daemon    string
	leave     string
	container string
	stubborn  bool
}

// begin does what comes before the first message.
func (m trouble) begin() {
	if m.say != "" {
		fmt.Fprintln(os.Stderr, m.say)
	}
	if m.exit >= 0 {
		os.Exit(m.exit)
	}
	if m.leave != "" {
		leave(m.leave)
	}
	if m.daemon != "" {
		startDaemon(m.daemon)
	}
	if m.stubborn {
		signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
		if m.container == "" {
			signal.Ignore(syscall.SIGTERM)
		}
	}
	if m.container != "" {
		relay(m.container)
	}
	if m.life > 0 {
		time.AfterFunc(time.Duration(rand.ExpFloat64()*float64(m.life)), func() { os.Exit(status) })
	}
	time.Sleep(m.wait)
}

// end does what comes after the last message.
func (m trouble) end(deaf bool) {
	if m.container != "" {
		note(m.container, "eof")
	}
	if m.stubborn || deaf {
		forever()
	}
	if m.container != "" {
		time.Sleep(time.Second)
		note(m.container, "removed")
	}
}

// forever does not return. It keeps a timer, so that the runtime does not take the program for one that is stuck.
func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

// startDaemon starts a stubborn process in a session of its own, as a server does that leaves a helper behind: through one
// that ends at once, so that the helper has no parent. Its pid is in the file when this returns.
func startDaemon(file string) {
	cmd := exec.Command(os.Args[0], "-leave", file)
	cmd.SysProcAttr = ownSession()
	if err := cmd.Run(); err != nil {
		log.Fatal(err)
	}
}

// leave is the process between a server and its daemon.
func leave(file string) {
	cmd := exec.Command(os.Args[0], "-stubborn")
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	note(file, fmt.Sprint(cmd.Process.Pid))
	os.Exit(0)
}

// relay does as a container's client: asked to end, it has the container removed first.
func relay(file string) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() {
		<-term
		note(file, "relayed")
		time.Sleep(200 * time.Millisecond)
		note(file, "removed")
		os.Exit(0)
	}()
}

func note(file, line string) {
	f := openAppend(file)
	defer f.Close()
	fmt.Fprintln(f, line)
}
