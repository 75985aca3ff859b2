package procman

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// SweepGrace is how long the processes found by [Sweep] have between being asked to end and being killed.
const SweepGrace = time.Second

// Sweep ends processes that an earlier run left behind and returns their numbers in ascending order. They are those whose
// environment carries the marker of a child started with Spec.Mark equal to mark by a bridge that no longer lives; what
// belongs to a living bridge, or to one whose numbers mean something else (another container), is left alone. It takes at
// most SweepGrace and one second; ctx shortens the former. The error names what would not end.
func Sweep(ctx context.Context, mark string) ([]int, error) {
	if mark == "" {
		return nil, nil
	}
	_, space := selfIdentity()
	q := quarry{match: func(s string) bool {
		m, ok := parseMarker(s)
		return ok && m.mark == mark && m.space == space && !m.ownerLives()
	}}
	found := pidsOf(q.find())
	left := endAll(q, func() time.Duration {
		if ctx.Err() != nil {
			return 0
		}
		return SweepGrace
	})
	if len(left) > 0 {
		return without(found, left), fmt.Errorf("cannot end processes of an earlier run: still there: %v", left)
	}
	return found, nil
}

// ownerLives tells whether the bridge that made the marker still runs.
func (m marker) ownerLives() bool {
	st, ok := readStat(m.pid)
	return ok && !st.zombie && st.start == m.start
}

// selfIdentity returns when this process started and in which name space its number counts.
func selfIdentity() (start uint64, space string) {
	if st, ok := readStat(os.Getpid()); ok {
		start = st.start
	}
	link, _ := os.Readlink("/proc/self/ns/pid") // "pid:[4026531836]"
	return start, strings.Trim(strings.TrimPrefix(link, "pid:"), "[]")
}

func without(all, some []int) []int {
	rest := make([]int, 0, len(all))
	for _, n := range all {
		if !slices.Contains(some, n) {
			rest = append(rest, n)
		}
	}
	return rest
}
