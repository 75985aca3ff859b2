package procman

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// awaitExit returns when the leader has ended, and leaves it unreaped: its number stays taken, so that the group can
// still be signalled. It waits through the poller where a process can be polled (Linux 5.10), else in a thread.
func (h *handle) awaitExit() {
	fd, err := unix.PidfdOpen(h.pid, unix.PIDFD_NONBLOCK)
	if err == nil && pollExit(os.NewFile(uintptr(fd), "pidfd")) {
		return
	}
	for {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, h.pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return
		}
	}
}

// pollExit waits until the process of a pidfd has ended; false means that it cannot tell.
func pollExit(f *os.File) bool {
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	var failed error
	err = conn.Read(func(fd uintptr) bool {
		var over bool
		over, failed = hasExited(int(fd))
		return over || failed != nil
	})
	return err == nil && failed == nil
}

func hasExited(pidfd int) (bool, error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PIDFD, pidfd, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
		if err != unix.EINTR {
			return info.Signo != 0, err // without an end there is no signal in info
		}
	}
}

// endTree ends what the leader left behind, members of its group and marked descendants, and names what would not end.
// The leader is not reaped yet.
func (h *handle) endTree(patience func() time.Duration) []int {
	leader, ok := readStat(h.pid)
	if !ok { // no /proc: nothing can be seen, so nothing can be asked first
		_ = unix.Kill(-h.pid, unix.SIGKILL)
		return nil
	}
	q := quarry{groups: []int{h.pid}}
	if h.marker != "" {
		q.markers, q.since = []string{h.marker}, leader.start
	}
	return endAll(q, patience)
}

// killMarked kills the processes that carry the marker.
func killMarked(marker string) {
	if marker == "" {
		return
	}
	for _, p := range (quarry{markers: []string{marker}}).find() {
		p.signal(unix.SIGKILL)
	}
}
