//go:build unix && !linux

package procman

import "time"

// awaitExit waits for the leader. Its status is kept: waiting without reaping is not to be had everywhere. A group that
// has members keeps its number from being used again, and one without members is not looked at for longer than it takes
// to find that out.
func (h *handle) awaitExit() { h.state, h.err = h.proc.Wait() }

// endTree ends the members of the group that outlived the leader.
func (h *handle) endTree(patience func() time.Duration) []int {
	return endGroups([]int{h.pid}, patience)
}

// killMarked does nothing: the environment of other processes is not to be read here.
func killMarked(string) {}
