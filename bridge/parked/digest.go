package parked

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
	"strings"

	"mcpbridge/framing"
)

// digestOf is the digest of what a request asks for: method and all params but those that a retry changes (MRT-07). Clients may
// write them anew: the order of members, the spelling of strings and of numbers do not count.
func digestOf(m *framing.Message) (d digest) {
	h := sha256.New()
	text(h, 'm', m.MethodName())
	c := canon{raw: m.Raw}
	var list []entry
	for _, p := range m.ParamMembers() {
		switch name := memberName(m.Raw, p); name {
		case "_meta", "inputResponses", "requestState":
		default:
			list = append(list, c.entry(name, int(p.Value.Start)))
		}
	}
	object(h, list)
	if list == nil && m.Params.OK() && !framing.IsObject(m.Bytes(m.Params)) {
		c.value(h, int(m.Params.Start))
	}
	return digest(h.Sum(nil))
}

func memberName(raw []byte, m framing.Member) string {
	if !m.Escaped {
		return string(raw[m.Key.Start:m.Key.End])
	}
	s, _ := framing.String(raw[m.Key.Start-1 : m.Key.End+1])
	return s
}

// canon walks JSON that is known to be valid, once, and feeds it to a hash in a form that does not depend on its spelling.
type canon struct{ raw []byte }

// entry is a member of an object: its name and the digest of its value.
type entry struct {
	name string
	sum  digest
}

func (c canon) entry(name string, at int) entry {
	h := sha256.New()
	c.value(h, at)
	return entry{name, digest(h.Sum(nil))}
}

func object(h hash.Hash, list []entry) {
	slices.SortStableFunc(list, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	for _, e := range list {
		text(h, 'k', e.name)
		h.Write(e.sum[:])
	}
	h.Write([]byte{'}'})
}

func text(h hash.Hash, tag byte, s string) {
	var head [9]byte
	head[0] = tag
	binary.BigEndian.PutUint64(head[1:], uint64(len(s)))
	h.Write(head[:])
	h.Write([]byte(s))
}

// value hashes the value at i and returns the offset behind it.
func (c canon) value(h hash.Hash, i int) int {
	switch c.raw[i] {
	case '{':
		return c.object(h, i+1)
	case '[':
		return c.array(h, i+1)
	case '"':
		end := c.stringEnd(i)
		s, _ := framing.String(c.raw[i:end])
		text(h, 's', s)
		return end
	}
	end := i
	for end < len(c.raw) && !strings.ContainsRune(",]} \t\r\n", rune(c.raw[end])) {
		end++
	}
	literal := string(c.raw[i:end])
	if framing.IsNumber(c.raw[i:end]) {
		if d, ok := parseDecimal(c.raw[i:end]); ok {
			literal = d.String()
		}
	}
	text(h, 'l', literal)
	return end
}

func (c canon) object(h hash.Hash, i int) int {
	h.Write([]byte{'{'})
	var list []entry
	for i = c.space(i); c.raw[i] != '}'; i = c.next(i) {
		end := c.stringEnd(i)
		name, _ := framing.String(c.raw[i:end])
		sum := sha256.New()
		i = c.value(sum, c.space(c.space(end)+1))
		list = append(list, entry{name, digest(sum.Sum(nil))})
	}
	object(h, list)
	return i + 1
}

func (c canon) array(h hash.Hash, i int) int {
	h.Write([]byte{'['})
	for i = c.space(i); c.raw[i] != ']'; i = c.next(i) {
		i = c.value(h, i)
	}
	h.Write([]byte{']'})
	return i + 1
}

// next skips a comma, if there is one.
func (c canon) next(i int) int {
	if i = c.space(i); c.raw[i] == ',' {
		return c.space(i + 1)
	}
	return i
}

func (c canon) space(i int) int {
	for c.raw[i] == ' ' || c.raw[i] == '\t' || c.raw[i] == '\r' || c.raw[i] == '\n' {
		i++
	}
	return i
}

// stringEnd is the offset behind the string at i.
func (c canon) stringEnd(i int) int {
	for i++; c.raw[i] != '"'; i++ {
		if c.raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}
