package procman

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// orphanAge is how long a process must have been waiting to be reaped before it counts as nobody's. Whoever starts a
// process in this program reaps it sooner.
const orphanAge = time.Second

// ReapOrphans reaps processes that this one has inherited, where it is process 1 (of a container) or a subreaper; else it
// returns at once. It runs until ctx ends, and leaves children of [OS] alone (case 19).
func ReapOrphans(ctx context.Context) {
	if !inheritsOrphans() {
		return
	}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGCHLD)
	defer signal.Stop(ends)
	var waiting map[procStat]bool
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ends:
			if again == nil {
				again = time.After(orphanAge)
			}
		case <-again:
			again = nil
			if waiting = system.reapOrphans(waiting); len(waiting) > 0 {
				again = time.After(orphanAge)
			}
		}
	}
}

func inheritsOrphans() bool {
	var sub int32
	_ = prctlGetSubreaper(&sub)
	return os.Getpid() == 1 || sub != 0
}

// reapOrphans reaps those that were waiting the last time too, and returns those that wait now.
func (o *osSpawner) reapOrphans(before map[procStat]bool) map[procStat]bool {
	all, err := pids()
	if err != nil {
		return nil
	}
	waiting := map[procStat]bool{}
	for _, pid := range all {
		st, ok := readStat(pid)
		switch {
		case !ok || !st.zombie || st.ppid != os.Getpid() || o.owns(pid):
		case before[st]:
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		default:
			waiting[st] = true
		}
	}
	return waiting
}

func (o *osSpawner) owns(pid int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kids[pid]
}

func prctlGetSubreaper(to *int32) error {
	return unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(to)), 0, 0, 0)
}
