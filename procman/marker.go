package procman

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// A marker is "PID:START:NS:SEQ:MARK": who started the process (number, start time and name space of numbers of the
// bridge, so that a living bridge is told from one whose number was used again), which of its children it was, and
// Spec.Mark, which may hold colons.
type marker struct {
	pid   int
	start uint64
	space string
	mark  string
}

// identity is the part that stands for this process.
var identity = sync.OnceValue(func() string {
	start, space := selfIdentity()
	return strconv.Itoa(os.Getpid()) + ":" + strconv.FormatUint(start, 10) + ":" + space
})

var markerSeq atomic.Uint64 // makes markers of one process distinct

// newMarker returns the marker of the next child, "" without a mark.
func newMarker(mark string) string {
	if mark == "" {
		return ""
	}
	return identity() + ":" + strconv.FormatUint(markerSeq.Add(1), 10) + ":" + mark
}

func parseMarker(s string) (m marker, ok bool) {
	parts := strings.SplitN(s, ":", 5)
	if len(parts) != 5 {
		return marker{}, false
	}
	pid, err := strconv.Atoi(parts[0])
	if err != nil {
		return marker{}, false
	}
	start, err := strconv.ParseUint(parts[1], 10, 64)
	return marker{pid: pid, start: start, space: parts[2], mark: parts[4]}, err == nil
}
