//go:build !linux

package procman

import "os"

// setPipeSize does nothing: only Linux lets a pipe grow.
func setPipeSize(*os.File, int) {}
