package procman

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// HeldError is why nothing is started now: the back-off has not run out, or the breaker is open. It holds what the server
// last died of (cases 22, 24, 101).
type HeldError struct {
	// Name is the server's name.
	Name string
	// Loop tells that the breaker is open.
	Loop bool
	// Since is when the rest began.
	Since time.Time
	// Until is when the next start may begin; zero if that depends on a start, or an end, that is under way.
	Until time.Time
	// Failures within Window are what opened the breaker; zero for a back-off.
	Failures int
	Window   time.Duration
	// Exit is how the last process ended, nil if Err says why it is no good. Its Stderr is the child's text: mask secrets
	// before showing it.
	Exit *Exit
	// Err is why the last start failed, or why the process was rejected; nil if Exit says it.
	Err error
}

// unknownRest is what RetryAfter says of a rest whose end is not known.
const unknownRest = time.Second

func (h *hold) told(name string) *HeldError {
	return &HeldError{Name: name, Loop: true, Since: h.since, Until: h.until, Failures: h.count, Window: h.window, Exit: h.why.exit, Err: h.why.err}
}

// Error reads "cannot start NAME yet: what happened; when it is tried again". It has nothing of the
// server's stderr, unless Err has.
func (e *HeldError) Error() string {
	return "cannot start " + e.Name + " yet: " + e.reason() + "; " + e.outlook()
}

// Unwrap returns why the last start failed, nil if it did not.
func (e *HeldError) Unwrap() error { return e.Err }

// RetryAfter is how long it makes no sense to ask again; one second if that is not known.
func (e *HeldError) RetryAfter() time.Duration {
	if e.Until.IsZero() {
		return unknownRest
	}
	return max(time.Until(e.Until), 0)
}

func (e *HeldError) reason() string {
	var what string
	switch {
	case e.Err != nil:
		what = bareError(e.Err)
	case e.Exit != nil:
		what = "it " + e.Exit.String()
	}
	if e.Loop {
		return fmt.Sprintf("it failed %d times within %s, at last: %s", e.Failures, spell(e.Window), what)
	}
	return what
}

func (e *HeldError) outlook() string {
	if e.Until.IsZero() {
		return "what comes of the process under way decides when it is tried again"
	}
	return "it is tried again in " + roundRuntime(e.RetryAfter()).String()
}

// bareError is an error without the words that its place in another one says already.
func bareError(err error) string {
	if start, ok := errors.AsType[*StartError](err); ok {
		return strings.TrimPrefix(start.Error(), "cannot start "+start.Spec.Name+": ")
	}
	return err.Error()
}

// spell leaves out the units of a duration that are zero: "1m", not "1m0s".
func spell(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
