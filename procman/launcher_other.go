//go:build unix && !linux

package procman

import (
	"os"
	"syscall"
)

// launcher needs nothing here: no signal follows the thread that forked.
type launcher struct{}

func (*launcher) acquire() {}
func (*launcher) release() {}

func (*launcher) start(path string, spec Spec, env []string, files []*os.File) (*handle, error) {
	return startProcess(path, spec, env, files, &syscall.SysProcAttr{Setpgid: true})
}
