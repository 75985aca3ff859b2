package procman

import (
	"fmt"
	"strings"
	"time"
)

// MaxExitLines is how many of the last stderr lines an [Exit] carries (case 101).
const MaxExitLines = 20

// Exit explains the end of a process (cases 22, 101).
type Exit struct {
	// Code is the exit status, -1 when a signal ended the process.
	Code int
	// Signal names the signal that ended the process ("SIGSEGV"), "" for none.
	Signal string
	// Err is set when the end could not be learnt.
	Err error
	// Runtime is from the start to the end of the direct child.
	Runtime time.Duration
	// Stderr holds the last lines of stderr, at most [MaxExitLines], in order. They are the child's text: mask secrets
	// before showing them.
	Stderr []string
	// Requested tells that the end followed [Stop] or [Process.Signal].
	Requested bool
	// Survivors are descendants that could not be ended.
	Survivors []int
}

// String says in one line how the process ended, fit for "server files ...".
func (e Exit) String() string {
	after := " after " + roundRuntime(e.Runtime).String()
	switch {
	case e.Err != nil:
		return "ended in an unknown way" + after + ": " + e.Err.Error()
	case e.Requested && e.Signal != "":
		return "was stopped with " + e.Signal + after
	case e.Requested:
		return fmt.Sprintf("was stopped (status %d)%s", e.Code, after)
	case e.Signal != "":
		return "killed by " + e.Signal + after
	case e.Code != 0:
		return "exited with status " + statusText(e.Code) + after
	default:
		return "ended by itself with status 0" + after + "; does it speak MCP over stdio?"
	}
}

// Report is String followed by the last stderr lines, one a line, indented.
func (e Exit) Report() string {
	if len(e.Stderr) == 0 {
		return e.String() + "; it wrote nothing to stderr"
	}
	return e.String() + "; the end of its stderr:\n  " + strings.Join(e.Stderr, "\n  ")
}

// statusText spells a status the way it can be looked up: Windows' exception codes are known in hexadecimal.
func statusText(code int) string {
	if uint32(code) >= 0xC0000000 {
		return fmt.Sprintf("0x%X", uint32(code))
	}
	return fmt.Sprint(code)
}

func roundRuntime(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	default:
		return d.Round(time.Millisecond)
	}
}

// lastLines returns at most n last lines of text, without ends of line and empty lines, as valid UTF-8.
func lastLines(text []byte, n int) []string {
	lines := make([]string, 0, n)
	for line := range strings.SplitSeq(strings.ToValidUTF8(string(text), "\uFFFD"), "\n") {
		if line = strings.TrimRight(line, "\r"); strings.TrimSpace(line) == "" {
			continue
		}
		lines = append(lines, line)
	}
	return lines[max(0, len(lines)-n):]
}
