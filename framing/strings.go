package framing

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const (
	ones   = 0x0101010101010101
	highs  = 0x8080808080808080
	quotes = '"' * ones
	slants = '\\' * ones
	blanks = ' ' * ones
)

// special marks, in the high bit of each byte, quotes, backslashes, control characters and bytes above 0x7f. Marks above the
// lowest one may be wrong (borrows), the lowest is exact.
func special(x uint64) uint64 {
	return (((x ^ quotes) - ones) | ((x ^ slants) - ones) | (x - blanks) | x) & highs
}

// str reads a string behind its opening quote up to behind the closing one, and tells whether it holds escapes.
func (s *scanner) str(i int) (end int, escaped bool) {
	b := s.b
	for {
		i = plain(b, i)
		if i >= len(b) {
			return s.fail(len(b), "unexpected end in a string"), false
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			escaped = true
			i = s.escapes(i)
		case c >= utf8.RuneSelf:
			i = s.runes(i)
		default:
			return s.fail(i, "control character in a string"), false
		}
		if i < 0 {
			return -1, false
		}
	}
}

// plain skips bytes that need no look: it returns the offset of the first special byte, or len(b).
func plain(b []byte, i int) int {
	for i+32 <= len(b) {
		p := b[i : i+32 : i+32]
		if w := special(binary.LittleEndian.Uint64(p)); w != 0 {
			return i + bits.TrailingZeros64(w)/8
		}
		x := special(binary.LittleEndian.Uint64(p[8:]))
		y := special(binary.LittleEndian.Uint64(p[16:]))
		z := special(binary.LittleEndian.Uint64(p[24:]))
		switch {
		case x|y|z == 0:
			i += 32
		case x != 0:
			return i + 8 + bits.TrailingZeros64(x)/8
		case y != 0:
			return i + 16 + bits.TrailingZeros64(y)/8
		default:
			return i + 24 + bits.TrailingZeros64(z)/8
		}
	}
	for i+8 <= len(b) {
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
		i += 8
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' && b[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// runes reads characters beyond ASCII as long as they follow each other.
func (s *scanner) runes(i int) int {
	b := s.b
	for i < len(b) && b[i] >= utf8.RuneSelf {
		c := b[i]
		if c >= 0xe1 && c != 0xed && c <= 0xef && i+2 < len(b) && b[i+1]&0xc0 == 0x80 && b[i+2]&0xc0 == 0x80 {
			i += 3
			continue
		}
		if c >= 0xc2 && c <= 0xdf && i+1 < len(b) && b[i+1]&0xc0 == 0x80 {
			i += 2
			continue
		}
		_, n := utf8.DecodeRune(b[i:])
		if n == 1 {
			return s.fail(i, "invalid UTF-8")
		}
		i += n
	}
	return i
}

// escapes reads escape sequences as long as they follow each other.
func (s *scanner) escapes(i int) int {
	for i < len(s.b) && s.b[i] == '\\' {
		switch s.at(i + 1) {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			i += 2
		case 'u':
			if i = s.unicode(i); i < 0 {
				return -1
			}
		default:
			return s.fail(i, "invalid escape in a string")
		}
	}
	return i
}

// unicode reads \uXXXX, or two of them when the first is a high surrogate; a lone surrogate is refused.
func (s *scanner) unicode(i int) int {
	r := hex4(s.b, i+2)
	switch {
	case r < 0:
		return s.fail(i, "invalid escape in a string")
	case r < 0xd800 || r > 0xdfff:
		return i + 6
	case r <= 0xdbff && s.at(i+6) == '\\' && s.at(i+7) == 'u':
		if low := hex4(s.b, i+8); low >= 0xdc00 && low <= 0xdfff {
			return i + 12
		}
	}
	return s.fail(i, "lone surrogate in a string")
}

// hex4 reads four hexadecimal digits at i, -1 if they are not there.
func hex4(b []byte, i int) rune {
	if i+4 > len(b) {
		return -1
	}
	var r rune
	for _, c := range b[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
