package framing

import (
	"unicode/utf16"
	"unicode/utf8"
)

// IsString and its siblings tell the type of a valid JSON value from its first byte.
func IsString(raw []byte) bool { return first(raw) == '"' }

// IsObject reports whether the valid JSON value raw is an object.
func IsObject(raw []byte) bool { return first(raw) == '{' }

// IsArray reports whether the valid JSON value raw is an array.
func IsArray(raw []byte) bool { return first(raw) == '[' }

// IsNumber reports whether the valid JSON value raw is a number.
func IsNumber(raw []byte) bool { c := first(raw); return c == '-' || c >= '0' && c <= '9' }

// IsBool reports whether the valid JSON value raw is true or false.
func IsBool(raw []byte) bool { c := first(raw); return c == 't' || c == 'f' }

// IsNull reports whether the valid JSON value raw is null.
func IsNull(raw []byte) bool { return first(raw) == 'n' }

func first(raw []byte) byte {
	if len(raw) == 0 {
		return 0
	}
	return raw[0]
}

// Valid reports whether raw is one strict JSON value, white space around it allowed: the rules of [Scan] at the level of
// JSON, duplicate names allowed.
func Valid(raw []byte) bool {
	s := scanner{b: raw}
	i := s.value(s.space(0), 0)
	return i >= 0 && s.space(i) == len(raw)
}

// String decodes a JSON string literal, quotes included; ok is false if raw is anything else. It allocates the result only.
func String(raw []byte) (s string, ok bool) {
	if first(raw) != '"' {
		return "", false
	}
	sc := scanner{b: raw}
	end, escaped := sc.str(1)
	if end != len(raw) {
		return "", false
	}
	raw = raw[1 : end-1]
	if !escaped {
		return string(raw), true
	}
	var buf [128]byte
	if len(raw) <= len(buf) {
		return string(appendUnescaped(buf[:0], raw)), true
	}
	return string(appendUnescaped(make([]byte, 0, len(raw)), raw)), true
}

// appendUnescaped appends the decoded content of a valid string literal, given without its quotes.
func appendUnescaped(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		j := i
		for j < len(raw) && raw[j] != '\\' {
			j++
		}
		dst = append(dst, raw[i:j]...)
		if i = j; i < len(raw) {
			dst, i = appendEscape(dst, raw, i)
		}
	}
	return dst
}

// appendEscape decodes the valid escape sequence at i and returns the offset behind it.
func appendEscape(dst, raw []byte, i int) ([]byte, int) {
	switch c := raw[i+1]; c {
	case 'b':
		return append(dst, '\b'), i + 2
	case 'f':
		return append(dst, '\f'), i + 2
	case 'n':
		return append(dst, '\n'), i + 2
	case 'r':
		return append(dst, '\r'), i + 2
	case 't':
		return append(dst, '\t'), i + 2
	case 'u':
		r := hex4(raw, i+2)
		if i += 6; utf16.IsSurrogate(r) {
			r = utf16.DecodeRune(r, hex4(raw, i+2))
			i += 6
		}
		return utf8.AppendRune(dst, r), i
	default: // a quote, a backslash or a slash stands for itself
		return append(dst, c), i + 2
	}
}

// AppendString appends s as a JSON string literal. Quotes, backslashes and control characters are escaped; invalid
// UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[done:i]...), "\ufffd"...)
				done = i + 1
			}
			i += n
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			dst = appendEscaped(append(dst, s[done:i]...), c)
			done = i + 1
		}
		i++
	}
	return append(append(dst, s[done:]...), '"')
}

func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}

// Members lists the direct members of the object at obj of raw, in order. raw must hold valid JSON there. It returns nil
// if there is no object at obj; spans are relative to raw.
func Members(raw []byte, obj Span) []Member {
	if !obj.OK() || raw[obj.Start] != '{' {
		return nil
	}
	s := scanner{b: raw[:obj.End]}
	members := []Member{}
	if s.members(int(obj.Start)+1, 1, &members) < 0 {
		return nil
	}
	return members
}

// Elements lists the elements of the array at arr of raw, in order. raw must hold valid JSON there. It returns nil if
// there is no array at arr; spans are relative to raw.
func Elements(raw []byte, arr Span) []Span {
	if !arr.OK() || raw[arr.Start] != '[' {
		return nil
	}
	s := scanner{b: raw[:arr.End]}
	elements, end := s.elements(int(arr.Start) + 1)
	if end < 0 {
		return nil
	}
	return elements
}

// elements reads the elements of an array behind its opening bracket.
func (s *scanner) elements(i int) (list []Span, end int) {
	list = []Span{}
	if i = s.space(i); s.at(i) == ']' {
		return list, i + 1
	}
	for {
		i = s.space(i)
		end = s.value(i, 1)
		if end < 0 {
			return nil, -1
		}
		list = append(list, span(i, end))
		switch i = s.space(end); s.at(i) {
		case ',':
			i++
		case ']':
			return list, i + 1
		default:
			return nil, s.expect(i, "a comma or a closing bracket")
		}
	}
}

// Lookup finds a member by its decoded name and returns the value of the first one, the zero Span if there is none; dup
// reports a second one of that name.
func Lookup(raw []byte, members []Member, name string) (v Span, dup bool) {
	for i := range members {
		if !members[i].Is(raw, name) {
			continue
		}
		if v.OK() {
			return v, true
		}
		v = members[i].Value
	}
	return v, false
}
