//go:build unix

package procman_test

import (
	"os"
	"os/exec"
	"syscall"
)

var ignorable = []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
