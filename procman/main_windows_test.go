package procman_test

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

var ignorable []os.Signal

func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS}
}
