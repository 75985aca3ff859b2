package framing

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
