//go:build !unix

package survive

import "syscall"

// There are no such signals here: settle skips the tests.
const (
	nothing = syscall.Signal(0)
	hangup  = syscall.Signal(1)
)
