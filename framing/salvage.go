package framing

import "math"

// Salvage reads what it can of the top level of a text that [Scan] has refused: the direct members of the object raw begins
// with, in order, up to the first fault or the end of raw. It does not judge duplicates, and ignores what comes behind the
// object. There are no members if raw begins with no object or has 4 GiB or more.
//
// whole reports whether the object was read to its closing brace. If not, the value of the last member may be cut off or
// broken; a broken one's span reaches to the end of raw.
func Salvage(raw []byte) (members []Member, whole bool) {
	s := scanner{b: raw}
	i := s.space(0)
	if s.at(i) != '{' || uint64(len(raw)) > math.MaxUint32 {
		return nil, false
	}
	i++
	for first := true; ; first = false {
		m, at, more := s.member(i, first)
		if !more {
			return members, at >= 0
		}
		if i = s.value(at, 1); i < 0 {
			m.Value = span(at, len(raw))
			return append(members, m), false
		}
		m.Value = span(at, i)
		members = append(members, m)
	}
}
