package era

import (
	"bytes"
	"slices"
	"strconv"

	"mcpbridge/framing"
)

var (
	emptyObject = []byte(`{}`)
	complete    = []byte(`"complete"`)
)

// nameOf returns the decoded name of a member, without allocation for a name written plainly.
func nameOf(raw []byte, m framing.Member) []byte {
	if !m.Escaped {
		return raw[m.Key.Start:m.Key.End]
	}
	s, _ := framing.String(raw[m.Key.Start-1 : m.Key.End+1])
	return []byte(s)
}

// whole is the span of a value that stands alone.
func whole(raw []byte) framing.Span { return framing.Span{End: uint32(len(raw))} }

// quote returns s as a JSON string literal.
func quote(s string) []byte { return framing.AppendString(make([]byte, 0, len(s)+2), s) }

// own cuts the capacity off, so that an append by the caller cannot reach into the message.
func own(b []byte) []byte { return slices.Clip(b) }

// object builds a JSON object from raw values. Names must need no escaping.
type object struct{ b []byte }

func (o *object) add(name string, value []byte) {
	if len(o.b) == 0 {
		o.b = append(o.b, '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), `":`...)
	o.b = append(o.b, value...)
}

// addSome adds a member unless the value is absent.
func (o *object) addSome(name string, value []byte) {
	if value != nil {
		o.add(name, value)
	}
}

func (o *object) empty() bool { return len(o.b) == 0 }

func (o *object) bytes() []byte {
	if o.empty() {
		return emptyObject
	}
	return append(o.b, '}')
}

// member returns the raw value of a direct member of the object obj, nil if there is none or obj is no object.
func member(obj []byte, name string) []byte {
	if !framing.IsObject(obj) {
		return nil
	}
	v, _ := framing.Lookup(obj, framing.Members(obj, whole(obj)), name)
	if !v.OK() {
		return nil
	}
	return obj[v.Start:v.End]
}

// change returns the object with ops carried out, the very same bytes if none of them applies.
func change(obj []byte, ops ...framing.Op) []byte {
	edits := framing.EditObject(nil, obj, whole(obj), framing.Members(obj, whole(obj)), ops...)
	if len(edits) == 0 {
		return obj
	}
	return framing.Rewrite(obj, edits).Bytes()
}

// without returns the object less the named members.
func without(obj []byte, names ...string) []byte {
	ops := make([]framing.Op, len(names))
	for i, n := range names {
		ops[i].Name = n
	}
	return change(obj, ops...)
}

// isEmpty reports whether obj is an object without members.
func isEmpty(obj []byte) bool {
	return framing.IsObject(obj) && len(framing.Members(obj, whole(obj))) == 0
}

// objectOr returns v if it is an object, else the other value.
func objectOr(v, other []byte) []byte {
	if framing.IsObject(v) {
		return own(v)
	}
	return other
}

// stringOr returns the raw v if it is a string, else nil.
func stringOr(v []byte) []byte {
	if framing.IsString(v) {
		return own(v)
	}
	return nil
}

// stringList decodes an array of strings; ok is false for anything else.
func stringList(v []byte) (list []string, ok bool) {
	if !framing.IsArray(v) {
		return nil, false
	}
	for _, e := range framing.Elements(v, whole(v)) {
		s, ok := framing.String(v[e.Start:e.End])
		if !ok {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}

// sameString reports whether two JSON string literals spell the same text.
func sameString(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return framing.IsString(a)
	}
	s, ok := framing.String(a)
	t, also := framing.String(b)
	return ok && also && s == t
}

// maxInteger is the largest integer every JSON reader keeps exactly, 2^53-1.
const maxInteger = 1<<53 - 1

// integer reads a plain JSON integer within +-(2^53-1).
func integer(raw []byte) (n int, ok bool) {
	if len(raw) == 0 || len(raw) > 17 {
		return 0, false
	}
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || v > maxInteger || v < -maxInteger {
		return 0, false
	}
	return int(v), true
}
