//go:build unix && !linux

package procman

import (
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// killWait is how long killed processes have to disappear.
const killWait = time.Second

// endGroups asks the groups to end, kills those that have not after patience, and names those that still have members.
func endGroups(groups []int, patience func() time.Duration) []int {
	groups = signalGroups(groups, unix.SIGTERM)
	groups = awaitGroups(groups, patience)
	groups = signalGroups(groups, unix.SIGKILL)
	return awaitGroups(groups, func() time.Duration { return killWait })
}

// signalGroups signals groups and returns those that have members which may be signalled.
func signalGroups(groups []int, sig unix.Signal) []int {
	return slices.DeleteFunc(slices.Clone(groups), func(g int) bool { return unix.Kill(-g, sig) != nil })
}

// awaitGroups waits until the groups are empty and returns those that are not.
func awaitGroups(groups []int, patience func() time.Duration) []int {
	begin := time.Now()
	for {
		groups = signalGroups(groups, 0)
		if len(groups) == 0 || time.Since(begin) >= patience() {
			return groups
		}
		time.Sleep(pollEvery)
	}
}

// endOrphans is the guard's work; there are no markers to be read here.
func endOrphans(groups []int, _ []string, patience func() time.Duration) {
	endGroups(groups, patience)
}

func selfExecutable() (string, error) { return os.Executable() }
