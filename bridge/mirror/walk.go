package mirror

import (
	"strconv"
	"strings"

	"mcpbridge/framing"
)

// position tells how a schema is reached from the root.
type position uint8

const (
	atRoot     position = iota
	atProperty          // by properties keys alone (XMH-08)
	elsewhere           // through any other keyword (XMH-09)
)

// shape tells what a keyword's value is to the walk.
type shape uint8

const (
	literal    shape = iota // not a schema: default, const, enum, examples, unknown keywords (XMH-10)
	annotation              // x-mcp-header
	typeWord                // type
	properties              // object of schemas, reachable
	schemaMap               // object of schemas
	schemaOrs               // a schema or an array of schemas
)

// shapeOf knows the keywords of JSON Schema 2020-12 and their elder forms that hold schemas.
func shapeOf(keyword []byte) shape {
	switch string(keyword) {
	case Annotation:
		return annotation
	case "type":
		return typeWord
	case "properties":
		return properties
	case "$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies":
		return schemaMap
	case "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains",
		"additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema",
		"allOf", "anyOf", "oneOf", "not", "if", "then", "else":
		return schemaOrs
	}
	return literal
}

// node is a schema object that carries an annotation.
type node struct {
	object    framing.Span
	members   []framing.Member // valid during the visit only
	at        position
	header    framing.Span // value of the annotation
	typ       framing.Span // value of type, absent if there is none
	duplicate string       // "x-mcp-header" or "type" if it occurs twice
}

// step is one token of the way from the root to a schema: a member's key, or the index of an array element.
type step struct {
	key     framing.Span
	escaped bool
	index   int
}

// walk visits every schema object that carries an annotation, in one pass (FRM-33). Children come before their parents.
type walk struct {
	cursor
	// visit is called for each annotated schema object; its error ends the walk.
	visit func(n *node) error
	// strict makes the walk end with *Invalid at the limits, and at duplicate names on the way to an annotation.
	strict bool

	steps       []step
	members     []framing.Member // stack of the tables of the objects being read
	depth       int
	schemas     int
	annotations int
}

// run walks the schema at the cursor.
func (w *walk) run() error {
	w.space()
	return w.schema(atRoot)
}

// schema reads the value at the cursor, which stands in a schema position.
func (w *walk) schema(at position) error {
	w.schemas++
	w.depth++
	defer func() { w.depth-- }()
	if w.strict && (w.depth > MaxDepth || w.schemas > MaxSchemas) {
		return w.invalid(ClassTooLarge, "more than "+strconv.Itoa(MaxDepth)+" nested or "+strconv.Itoa(MaxSchemas)+" schemas in all")
	}
	if w.peek() != '{' {
		w.skip()
		return nil
	}
	return w.object(at)
}

func (w *walk) object(at position) error {
	base, start, before := len(w.members), w.pos, w.annotations
	n := node{at: at}
	var count [schemaOrs + 1]int
	w.pos++
	for key, escaped, ok := w.member(); ok; key, escaped, ok = w.member() {
		value := w.pos
		s, err := w.keyword(key, escaped, at)
		if err != nil {
			return err
		}
		count[s]++
		m := framing.Member{Key: key, Value: span(value, w.pos), Escaped: escaped}
		w.members = append(w.members, m)
		switch s {
		case annotation:
			n.header = m.Value
		case typeWord:
			n.typ = m.Value
		}
	}
	if count[properties] > 1 && w.annotations > before && w.strict {
		return w.invalid(ClassDuplicate, "properties is given twice")
	}
	var err error
	if count[annotation] > 0 {
		w.annotations++
		n.object, n.members = span(start, w.pos), w.members[base:]
		switch {
		case count[annotation] > 1:
			n.duplicate = Annotation
		case count[typeWord] > 1:
			n.duplicate = "type"
		}
		err = w.visit(&n)
	}
	w.members = w.members[:base]
	return err
}

// keyword reads the value of a schema's member.
func (w *walk) keyword(key framing.Span, escaped bool, at position) (shape, error) {
	name := cut(w.raw, key)
	if escaped {
		name = []byte(keyText(w.raw, key, true))
	}
	s := shapeOf(name)
	w.steps = append(w.steps, step{key: key, escaped: escaped})
	var err error
	switch c := w.peek(); {
	case s == properties && c == '{':
		err = w.named(below(at))
	case s == schemaMap && c == '{':
		err = w.named(elsewhere)
	case s == schemaOrs && c == '[':
		err = w.list()
	case s == schemaOrs:
		err = w.schema(elsewhere)
	default:
		w.skip()
	}
	w.steps = w.steps[:len(w.steps)-1]
	return s, err
}

// below is the position of the schemas under properties of a schema at p.
func below(p position) position {
	if p == elsewhere {
		return elsewhere
	}
	return atProperty
}

// named reads an object whose values are schemas.
func (w *walk) named(at position) error {
	base, before := len(w.members), w.annotations
	w.pos++
	for key, escaped, ok := w.member(); ok; key, escaped, ok = w.member() {
		w.steps = append(w.steps, step{key: key, escaped: escaped})
		if err := w.schema(at); err != nil {
			return err
		}
		w.steps = w.steps[:len(w.steps)-1]
		w.members = append(w.members, framing.Member{Key: key, Escaped: escaped})
	}
	if w.strict && w.annotations > before && hasTwins(w.raw, w.members[base:]) {
		return w.invalid(ClassDuplicate, "a name is given twice")
	}
	w.members = w.members[:base]
	return nil
}

func (w *walk) list() error {
	w.pos++
	for i := 0; w.element(); i++ {
		w.steps = append(w.steps, step{index: i})
		if err := w.schema(elsewhere); err != nil {
			return err
		}
		w.steps = w.steps[:len(w.steps)-1]
	}
	return nil
}

// hasTwins reports whether two members have the same decoded name.
func hasTwins(raw []byte, members []framing.Member) bool {
	names := make(map[string]struct{}, len(members))
	for _, m := range members {
		names[keyText(raw, m.Key, m.Escaped)] = struct{}{}
	}
	return len(names) < len(members)
}

// invalid makes an error about the schema the walk is at.
func (w *walk) invalid(class, detail string) *Invalid {
	return &Invalid{Class: class, Where: w.pointer(), Detail: detail}
}

// maxPointer is the length in bytes beyond which a pointer in an error is cut off.
const maxPointer = 256

// pointer is the JSON pointer (RFC 6901) of the schema the walk is at, cut off behind maxPointer.
func (w *walk) pointer() string {
	var b strings.Builder
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, s := range w.steps {
		if b.Len() > maxPointer {
			return b.String()[:maxPointer] + "..."
		}
		b.WriteByte('/')
		if s.key.OK() {
			b.WriteString(escape.Replace(keyText(w.raw, s.key, s.escaped)))
		} else {
			b.WriteString(strconv.Itoa(s.index))
		}
	}
	if b.Len() > maxPointer {
		return b.String()[:maxPointer] + "..."
	}
	return b.String()
}

// path returns the property names of the way to a schema that is reached by properties keys alone.
func (w *walk) path() []string {
	path := make([]string, 0, len(w.steps)/2)
	for i := 1; i < len(w.steps); i += 2 {
		path = append(path, keyText(w.raw, w.steps[i].key, w.steps[i].escaped))
	}
	return path
}
