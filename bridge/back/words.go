package back

import (
	"cmp"
	"slices"
	"strings"

	"mcpbridge/procman"
)

const (
	// maxErrorText is how many bytes of a server's own error message go into one of ours.
	maxErrorText = 300
	// maxLastWords is how many bytes of a server's stderr, in whole lines from the end, go into an error.
	maxLastWords = 2000
	// minSecret is the length in bytes below which a secret is not masked: it would blank out ordinary words.
	minSecret = 6
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
	x := &exitError{text: s.mask(e.String()), died: !e.Requested}
	if x.died {
		for _, l := range e.Stderr {
			x.last = append(x.last, s.mask(l))
		}
	}
	return x
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

// masks returns the texts to be hidden, the longest first so that none leaves its end behind. The lines of a secret of
// several count one by one, because stderr is shown by lines.
func masks(secrets []string) []string {
	var out []string
	for _, s := range secrets {
		for _, part := range append(strings.Split(s, "\n"), s) {
			if part = strings.TrimSpace(part); len(part) >= minSecret {
				out = append(out, part)
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return out
}

// mask hides the server's secrets in a text (SEC-09).
func (s *Stdio) mask(text string) string {
	for _, secret := range s.masks {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}
