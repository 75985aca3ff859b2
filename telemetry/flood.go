package telemetry

import (
	"fmt"
	"time"
)

// flood counts what came in the second under way. A second begins with the first line after the one before.
type flood struct {
	start       time.Time
	lines       int
	bytes       int
	left        int // lines left out
	leftInBytes int
}

// admit reports whether a line of n bytes may pass, and counts it.
func (f *flood) admit(now time.Time, n int) bool {
	if f.lines == 0 {
		f.start = now
	}
	if f.left > 0 || f.lines+1 > FloodLines || f.bytes+n > FloodBytes {
		f.left++
		f.leftInBytes += n
		return false
	}
	f.lines++
	f.bytes += n
	return true
}

// settle ends the second if it is over, or if it is the last one, and returns what has to be said of it: "" if nothing was
// left out.
func (f *flood) settle(now time.Time, last bool) (note string) {
	if !last && now.Sub(f.start) < time.Second {
		return ""
	}
	if f.left > 0 {
		note = fmt.Sprintf("mcpbridge: %d lines of %d bytes left out: the server wrote more than %d lines or %d bytes in a second",
			f.left, f.leftInBytes, FloodLines, FloodBytes)
	}
	*f = flood{}
	return note
}
