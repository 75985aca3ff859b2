package procman

import (
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// killWait is how long killed processes have to disappear.
const killWait = time.Second

// quarry describes processes that have to end.
type quarry struct {
	groups  []int                    // numbers of process groups
	markers []string                 // whole markers
	match   func(marker string) bool // in place of markers, for some of them; may be nil
	since   uint64                   // markers are looked for only in processes that started at this tick or later
}

// find looks for them among the processes that there are. It never finds the caller.
func (q quarry) find() []procStat {
	all, err := pids()
	if err != nil {
		return nil
	}
	var found []procStat
	for _, pid := range all {
		st, ok := readStat(pid)
		if ok && !st.zombie && pid != os.Getpid() && q.has(st) {
			found = append(found, st)
		}
	}
	return found
}

func (q quarry) has(st procStat) bool {
	if slices.Contains(q.groups, st.pgid) {
		return true
	}
	if len(q.markers) == 0 && q.match == nil || st.start < q.since {
		return false
	}
	marker := markOf(st.pid)
	if q.match != nil {
		return marker != "" && q.match(marker)
	}
	return slices.Contains(q.markers, marker)
}

// endAll asks the processes to end, kills those that are there after patience, and names those that are there still.
// It looks again until nothing new turns up, because they may fork meanwhile.
func endAll(q quarry, patience func() time.Duration) []int {
	left := q.hunt(unix.SIGTERM, patience)
	if len(left) > 0 {
		left = q.hunt(unix.SIGKILL, func() time.Duration { return killWait })
	}
	return left
}

// hunt signals each process found once, until there are none or patience is over; it returns those left.
func (q quarry) hunt(sig unix.Signal, patience func() time.Duration) []int {
	begin := time.Now()
	told := map[procStat]bool{}
	for {
		found := q.find()
		if len(found) == 0 {
			return nil
		}
		q.tell(found, told, sig)
		for slices.ContainsFunc(found, procStat.alive) {
			if time.Since(begin) >= patience() {
				return pidsOf(found)
			}
			time.Sleep(pollEvery)
		}
		if time.Since(begin) >= patience() { // also where new ones come faster than they end
			return pidsOf(q.find())
		}
	}
}

// tell signals the processes that have not been told before. Killing a group at one blow leaves its members no time to
// fork; a group in which a member has just been found is still the one that is meant.
func (q quarry) tell(found []procStat, told map[procStat]bool, sig unix.Signal) {
	for _, p := range found {
		if sig == unix.SIGKILL && slices.Contains(q.groups, p.pgid) && p.alive() {
			_ = unix.Kill(-p.pgid, sig)
		}
		if key := (procStat{pid: p.pid, start: p.start}); !told[key] {
			told[key] = true
			p.signal(sig)
		}
	}
}

func pidsOf(found []procStat) []int {
	list := make([]int, 0, len(found))
	for _, p := range found {
		if p.alive() {
			list = append(list, p.pid)
		}
	}
	slices.Sort(list)
	return list
}

// endOrphans is the guard's work.
func endOrphans(groups []int, markers []string, patience func() time.Duration) {
	endAll(quarry{groups: groups, markers: markers}, patience)
}

// selfExecutable is this program even when its file has been replaced or removed.
func selfExecutable() (string, error) { return "/proc/self/exe", nil }
