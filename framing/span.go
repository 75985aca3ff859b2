package framing

// Span is a range of bytes of a message, End exclusive. The zero Span means absent.
type Span struct{ Start, End uint32 }

// OK reports whether the span is present.
func (s Span) OK() bool { return s.End != 0 }

// Len is the number of bytes.
func (s Span) Len() int { return int(s.End - s.Start) }

func (s Span) of(raw []byte) []byte { return raw[s.Start:s.End:s.End] }

func span(start, end int) Span { return Span{uint32(start), uint32(end)} }

// Member is one name/value pair of an object. Key excludes the quotes; if Escaped, the key holds backslashes and must be
// decoded to compare ([Member.Is] and [Lookup] do).
type Member struct {
	Key, Value Span
	Escaped    bool
}

// start is the offset of the opening quote of the name.
func (m Member) start() uint32 { return m.Key.Start - 1 }

// Is reports whether the decoded name is name; raw is what the spans are relative to. Its cost is bound by the length of
// name, not of the key.
func (m Member) Is(raw []byte, name string) bool {
	key := m.Key.of(raw)
	if !m.Escaped {
		return string(key) == name
	}
	if len(key) > 6*len(name) { // no escape is longer than six bytes a byte
		return false
	}
	var buf [64]byte
	return string(appendUnescaped(buf[:0], key)) == name
}
