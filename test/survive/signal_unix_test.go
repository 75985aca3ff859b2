//go:build unix

package survive

import "syscall"

const (
	nothing = syscall.Signal(0) // asks whether a process is there
	hangup  = syscall.SIGHUP
)
