package telemetry

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Printable makes text one line that does nothing to a terminal: control sequences, such as those for colour, are taken out,
// other control characters and those that turn the direction of writing are spelled out, invalid UTF-8 becomes U+FFFD.
// Tabs stay.
func Printable(text string) string {
	text = strings.TrimSuffix(text, "\r")
	first := strings.IndexFunc(text, odd)
	if first < 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(text[:first])
	for i := first; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\x1b':
			size = sequence(text[i:])
		case r == utf8.RuneError:
			b.WriteRune(utf8.RuneError)
		case !odd(r):
			b.WriteString(text[i : i+size])
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += size
	}
	return b.String()
}

// odd reports whether a character needs a look. U+FFFD is among them since that is how invalid bytes look.
func odd(r rune) bool {
	switch {
	case r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0, r == utf8.RuneError:
		return true
	}
	return r == 0x2028 || r == 0x2029 || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// sequence is the length of the control sequence text begins with (ECMA-48, 5.4 and 5.6).
func sequence(text string) int {
	if len(text) < 2 {
		return len(text)
	}
	switch text[1] {
	case '[':
		return controlSequence(text)
	case ']', 'P', 'X', '^', '_':
		return controlString(text)
	}
	if text[1] < 0x20 || text[1] >= 0x7f {
		return 1
	}
	return 2
}

// controlSequence ends with its first byte from "@" to "~".
func controlSequence(text string) int {
	for i := 2; i < len(text); i++ {
		switch c := text[i]; {
		case c >= 0x40 && c < 0x7f:
			return i + 1
		case c < 0x20 || c >= 0x7f:
			return i // no sequence after all
		}
	}
	return len(text)
}

// controlString ends with BEL or ESC "\". One without an end is no string: only its beginning is taken out.
func controlString(text string) int {
	for i := 2; i < len(text); i++ {
		switch {
		case text[i] == '\a':
			return i + 1
		case text[i] == '\x1b' && i+1 < len(text) && text[i+1] == '\\':
			return i + 2
		}
	}
	return 2
}

// runeStart is the start of the character that byte at of text belongs to.
func runeStart(text string, at int) int {
	for i := at; i > at-utf8.UTFMax && i > 0; i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return at
}
