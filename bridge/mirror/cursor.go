package mirror

import (
	"bytes"

	"mcpbridge/framing"
)

// cursor reads scanned JSON once from left to right without allocating. On bytes that are no JSON it moves on until
// the end, always by at least one byte a step.
type cursor struct {
	raw []byte
	pos int
}

// peek returns the byte at the cursor, 0 at the end.
func (c *cursor) peek() byte {
	if c.pos < len(c.raw) {
		return c.raw[c.pos]
	}
	return 0
}

// step moves on by a byte, not beyond the end.
func (c *cursor) step() { c.pos = min(c.pos+1, len(c.raw)) }

func (c *cursor) space() {
	for c.pos < len(c.raw) {
		switch c.raw[c.pos] {
		case ' ', '\t', '\n', '\r':
			c.pos++
		default:
			return
		}
	}
}

// member moves from behind an object's brace or a member's value to the next member's value and returns its key. ok
// is false behind the closing brace.
func (c *cursor) member() (key framing.Span, escaped, ok bool) {
	c.space()
	if c.peek() == ',' {
		c.pos++
		c.space()
	}
	if c.peek() != '"' {
		c.step()
		return key, false, false
	}
	start := c.pos + 1
	escaped = c.str()
	key = span(start, max(start, c.pos-1))
	c.space()
	c.step() // over the colon
	c.space()
	return key, escaped, c.pos < len(c.raw)
}

// element moves from behind an array's bracket or an element to the next element. It is false behind the closing bracket.
func (c *cursor) element() bool {
	c.space()
	if c.peek() == ',' {
		c.pos++
		c.space()
	}
	if c.peek() == ']' {
		c.step()
		return false
	}
	return c.pos < len(c.raw)
}

// skip moves behind the value at the cursor and returns its span.
func (c *cursor) skip() framing.Span {
	start := c.pos
	switch c.peek() {
	case '"':
		c.str()
	case '{', '[':
		c.container()
	default:
		c.scalar()
	}
	return span(start, c.pos)
}

// str moves behind the string at the cursor and reports whether it holds a backslash.
func (c *cursor) str() (escaped bool) {
	c.pos++
	end := bytes.IndexByte(c.raw[min(c.pos, len(c.raw)):], '"')
	if end < 0 {
		c.pos = len(c.raw)
		return false
	}
	if bytes.IndexByte(c.raw[c.pos:c.pos+end], '\\') < 0 {
		c.pos += end + 1
		return false
	}
	for c.pos < len(c.raw) && c.raw[c.pos] != '"' {
		if c.raw[c.pos] == '\\' {
			c.pos++
		}
		c.pos++
	}
	c.pos = min(c.pos+1, len(c.raw))
	return true
}

func (c *cursor) container() {
	for depth := 0; c.pos < len(c.raw); {
		switch c.raw[c.pos] {
		case '"':
			c.str()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		c.pos++
		if depth == 0 {
			return
		}
	}
}

func (c *cursor) scalar() {
	start := c.pos
	for c.pos < len(c.raw) {
		switch c.raw[c.pos] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			c.pos = max(c.pos, start+1)
			return
		}
		c.pos++
	}
}

func span(start, end int) framing.Span {
	return framing.Span{Start: uint32(start), End: uint32(end)}
}

func cut(raw []byte, s framing.Span) []byte { return raw[s.Start:s.End] }

// keyIs compares a key with a name by its decoded text.
func keyIs(raw []byte, key framing.Span, escaped bool, name string) bool {
	if !escaped {
		return string(cut(raw, key)) == name
	}
	return keyText(raw, key, true) == name
}

// keyText returns the decoded text of a key.
func keyText(raw []byte, key framing.Span, escaped bool) string {
	if !escaped {
		return string(cut(raw, key))
	}
	s, _ := framing.String(raw[key.Start-1 : key.End+1])
	return s
}
