//go:build !linux

package procman

// Memory is not known here.
func Memory(int) (size uint64, ok bool) { return 0, false }

// Resident is not known here.
func Resident(int) (size uint64, ok bool) { return 0, false }
