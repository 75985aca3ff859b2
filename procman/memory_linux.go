package procman

import (
	"bytes"
	"os"
	"strconv"
)

// Memory returns the resident memory in bytes of a child and of all that belong to its tree: the members of its process
// group and the descendants that carry its marker. Pages they share count for each of them. ok is false if there is no such
// process. It looks at every process of the machine once, which takes milliseconds.
func Memory(pid int) (size uint64, ok bool) {
	leader, ok := readStat(pid)
	if !ok || leader.zombie {
		return 0, false
	}
	q := quarry{groups: []int{pid}}
	if mark := markOf(pid); mark != "" {
		q.markers, q.since = []string{mark}, leader.start
	}
	total, ok := Resident(pid)
	for _, st := range q.find() {
		if st.pid != pid {
			more, _ := Resident(st.pid) // 0 for one that has just ended
			total += more
		}
	}
	return total, ok
}

// Resident returns the resident memory in bytes of one process. ok is false if there is none with that number.
func Resident(pid int) (size uint64, ok bool) {
	statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := bytes.Fields(statm)
	if err != nil || len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseUint(string(fields[1]), 10, 64)
	return pages * uint64(os.Getpagesize()), err == nil && pages > 0
}
