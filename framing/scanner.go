package framing

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is the deepest nesting of objects and arrays a text may have.
const MaxDepth = 10_000

// scanner checks JSON text strictly. Its methods take the offset where something begins and return the offset behind it,
// or -1 after they have noted what is wrong.
type scanner struct {
	b      []byte
	off    int    // where the text is wrong
	reason string // what is wrong, "" if nothing
}

func (s *scanner) fail(off int, reason string) int {
	s.off, s.reason = off, reason
	return -1
}

// at returns the byte at i, 0 behind the end: a byte that no rule of the grammar accepts.
func (s *scanner) at(i int) byte {
	if i < len(s.b) {
		return s.b[i]
	}
	return 0
}

// expect notes that something else stands at i.
func (s *scanner) expect(i int, what string) int {
	if i >= len(s.b) {
		return s.fail(len(s.b), "unexpected end, want "+what)
	}
	return s.fail(i, "want "+what)
}

func (s *scanner) space(i int) int {
	for i < len(s.b) {
		switch s.b[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// value reads one value that begins at i, with depth containers already open around it.
func (s *scanner) value(i, depth int) int {
	switch s.at(i) {
	case '"':
		end, _ := s.str(i + 1)
		return end
	case '{', '[':
		return s.container(i, depth)
	}
	return s.scalar(i)
}

// nesting remembers which open containers are objects, innermost in the lowest bit; outer ones spill in words of 64.
type nesting struct {
	depth int
	kinds uint64
	outer []uint64
}

func (n *nesting) push(object uint64) {
	if n.depth > 0 && n.depth%64 == 0 {
		n.outer = append(n.outer, n.kinds)
	}
	n.kinds = n.kinds<<1 | object
	n.depth++
}

func (n *nesting) pop() {
	n.kinds >>= 1
	n.depth--
	if n.depth > 0 && n.depth%64 == 0 {
		last := len(n.outer) - 1
		n.kinds, n.outer = n.outer[last], n.outer[:last]
	}
}

// container reads an object or array without recursion: nesting costs bits, not stack.
func (s *scanner) container(i, depth int) int {
	var n nesting
	for {
		if i = s.space(i); i >= len(s.b) {
			return s.expect(i, "a value")
		}
		empty := false
		switch c := s.b[i]; c {
		case '"':
			i, _ = s.str(i + 1)
		case '{', '[':
			if depth+n.depth >= MaxDepth {
				return s.fail(i, "nested too deeply")
			}
			n.push(uint64(c>>5) & 1) // '{' is 0x7b, '[' is 0x5b
			i = s.space(i + 1)
			if empty = s.at(i) == c+2; !empty {
				if c == '{' {
					i = s.key(i)
				}
				if i < 0 {
					return -1
				}
				continue
			}
		default:
			i = s.scalar(i)
		}
		if i < 0 {
			return -1
		}
		if i = s.after(i, &n); i < 0 || n.depth == 0 {
			return i
		}
	}
}

// after reads what follows a value: closing brackets, then a comma and, in an object, the next name.
func (s *scanner) after(i int, n *nesting) int {
	for {
		i = s.space(i)
		object := n.kinds&1 != 0
		switch c := s.at(i); {
		case c == ',' && object:
			return s.key(s.space(i + 1))
		case c == ',':
			return i + 1
		case c == '}' && object, c == ']' && !object:
			n.pop()
			if i++; n.depth == 0 {
				return i
			}
		default:
			return s.expect(i, "a comma or a closing bracket")
		}
	}
}

// key reads a name and the colon behind it.
func (s *scanner) key(i int) int {
	if s.at(i) != '"' {
		return s.expect(i, "a name")
	}
	if i, _ = s.str(i + 1); i < 0 {
		return -1
	}
	if i = s.space(i); s.at(i) != ':' {
		return s.expect(i, "a colon")
	}
	return i + 1
}

// member reads the next name of an object up to where its value begins; i is behind the opening brace if first, else
// behind a value. At the end of the object more is false and at lies behind the closing brace, or is -1.
func (s *scanner) member(i int, first bool) (m Member, at int, more bool) {
	i = s.space(i)
	switch c := s.at(i); {
	case c == '}':
		return m, i + 1, false
	case first:
	case c == ',':
		i = s.space(i + 1)
	default:
		return m, s.expect(i, "a comma or a closing brace"), false
	}
	if s.at(i) != '"' {
		return m, s.expect(i, "a name"), false
	}
	end, escaped := s.str(i + 1)
	if end < 0 {
		return m, -1, false
	}
	m.Key, m.Escaped = span(i+1, end-1), escaped
	if end = s.space(end); s.at(end) != ':' {
		return m, s.expect(end, "a colon"), false
	}
	return m, s.space(end + 1), true
}

func (s *scanner) scalar(i int) int {
	switch c := s.at(i); {
	case c == '-', c >= '0' && c <= '9':
		return s.number(i)
	case c == 't':
		return s.word(i, "true")
	case c == 'f':
		return s.word(i, "false")
	case c == 'n':
		return s.word(i, "null")
	}
	return s.expect(i, "a value")
}

func (s *scanner) word(i int, w string) int {
	if len(s.b)-i < len(w) || string(s.b[i:i+len(w)]) != w {
		return s.fail(i, "want "+w)
	}
	return i + len(w)
}

func (s *scanner) number(i int) int {
	if s.b[i] == '-' {
		i++
	}
	switch c := s.at(i); {
	case c == '0':
		i++
	case c >= '1' && c <= '9':
		i = s.digits(i)
	default:
		return s.expect(i, "a digit")
	}
	if s.at(i) == '.' {
		if i = s.digits(i + 1); i < 0 {
			return -1
		}
	}
	if c := s.at(i); c == 'e' || c == 'E' {
		if c = s.at(i + 1); c == '+' || c == '-' {
			i++
		}
		return s.digits(i + 1)
	}
	return i
}

func (s *scanner) digits(i int) int {
	start := i
	for i < len(s.b) && s.b[i]-'0' <= 9 {
		i++
	}
	if i == start {
		return s.expect(i, "a digit")
	}
	return i
}

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
		w := special(binary.LittleEndian.Uint64(p))
		x := special(binary.LittleEndian.Uint64(p[8:]))
		y := special(binary.LittleEndian.Uint64(p[16:]))
		z := special(binary.LittleEndian.Uint64(p[24:]))
		switch {
		case w != 0:
			return i + bits.TrailingZeros64(w)/8
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
