package back

import (
	"errors"
	"strings"
	"time"

	"mcpbridge/procman"
)

const (
	// maxErrorText is how many bytes of a server's own error message go into one of ours.
	maxErrorText = 300
	// maxLastWords is how many bytes of a server's stderr, in whole lines from the end, go into an error.
	maxLastWords = 2000
)

// exitError explains the end of a server. Its text is one line, for the many calls that fail with it.
type exitError struct {
	text string
	last []string // its last lines of stderr, masked
	died bool     // it ended by itself
}

func (e *exitError) Error() string {
	if n := len(e.last); n > 0 {
		return e.text + "; its last words: " + cut(e.last[n-1], maxErrorText)
	}
	return e.text
}

// long is the explanation for who wanted to open the server: the last line alone often says nothing.
func (e *exitError) long() string {
	if said := lastWords(e.last); said != "" {
		return e.text + "; the end of its stderr:\n" + said
	}
	if e.died {
		return e.text + "; it wrote nothing to stderr"
	}
	return e.text
}

// explainExit says how a process ended. An end that was asked for needs no last words.
func (s *Stdio) explainExit(e procman.Exit) error {
	x := &exitError{text: s.masker.Text(e.String()), died: !e.Requested}
	if x.died {
		x.last = s.masked(e.Stderr)
	}
	return x
}

// openError is why a server could not be opened, without secrets, when it may not be started now.
type openError struct {
	text string
	held *procman.HeldError
}

func (e *openError) Error() string { return e.text }

// RetryAfter is how long it makes no sense to try again.
func (e *openError) RetryAfter() time.Duration { return e.held.RetryAfter() }

// explain joins what went wrong, the last in full, without secrets.
func (s *Stdio) explain(failed []error) error {
	var parts []string
	for i, err := range failed {
		if i == len(failed)-1 {
			parts = append(parts, s.inFull(err))
		} else {
			parts = append(parts, err.Error())
		}
	}
	text := s.masker.Text(strings.Join(parts, "; then "))
	if held, ok := errors.AsType[*procman.HeldError](failed[len(failed)-1]); ok {
		return &openError{text: text, held: held}
	}
	return errors.New(text)
}

// inFull is an error with more of the server's last words than one line.
func (s *Stdio) inFull(err error) string {
	if f, ok := errors.AsType[*failure](err); ok && f.long != "" {
		return f.long
	}
	if held, ok := errors.AsType[*procman.HeldError](err); ok && held.Exit != nil {
		if said := lastWords(s.masked(held.Exit.Stderr)); said != "" {
			return err.Error() + "; the end of its stderr:\n" + said
		}
	}
	return err.Error()
}

// masked hides secrets line by line, before lines are cut.
func (s *Stdio) masked(lines []string) []string {
	var out []string
	for _, l := range lines {
		out = append(out, s.masker.Text(l))
	}
	return out
}

// lastWords joins the last lines that fit into maxLastWords, at least one, which is cut if it does not.
func lastWords(lines []string) string {
	size, from := 0, len(lines)
	for from > 0 && size+len(lines[from-1]) < maxLastWords {
		from--
		size += len(lines[from]) + 1
	}
	if from == len(lines) && from > 0 {
		return cut(lines[from-1], maxLastWords)
	}
	return strings.Join(lines[from:], "\n")
}

// lines cuts text that is still being written into lines that say something.
func lines(text []byte) []string {
	var out []string
	for l := range strings.SplitSeq(strings.ToValidUTF8(string(text), "\uFFFD"), "\n") {
		if l = strings.TrimRight(l, "\r"); strings.TrimSpace(l) != "" {
			out = append(out, l)
		}
	}
	return out[max(0, len(out)-procman.MaxExitLines):]
}

// cut shortens a text to at most n bytes, between characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}
