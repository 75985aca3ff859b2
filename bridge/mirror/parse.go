package mirror

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"mcpbridge/framing"
)

// Parse returns the mirrored parameters of an inputSchema (raw JSON) in document order, or *Invalid for the first
// annotation that must not be used (XMH-02..10). It searches schemas, not raw JSON: a property named x-mcp-header and
// the key inside default, const, enum or examples are no annotations (XMH-10). Names given twice on the way to an
// annotation make it invalid, since two readers could see two schemas (FRM-34). Linear in the length; bounded by
// MaxDepth and MaxSchemas (FRM-33), which only matter to schemas that can hold an annotation at all.
func Parse(schema []byte) ([]Param, error) {
	if !mayAnnotate(schema) {
		return nil, nil
	}
	return parse(schema)
}

// parse does the work of Parse without its shortcut.
func parse(schema []byte) ([]Param, error) {
	p := parser{names: make(map[string]string)}
	p.walk = walk{cursor: cursor{raw: schema}, strict: true, visit: p.annotated}
	if err := p.run(); err != nil {
		return nil, err
	}
	slices.SortFunc(p.found, func(a, b found) int { return cmp.Compare(a.at, b.at) })
	params := make([]Param, len(p.found))
	for i, f := range p.found {
		params[i] = f.param
	}
	return params, nil
}

// mayAnnotate reports whether the word can occur as a key: as it is, or spelt with \u escapes.
func mayAnnotate(schema []byte) bool {
	if bytes.Contains(schema, []byte(Annotation)) {
		return true
	}
	for {
		i := bytes.Index(schema, []byte(`\u00`))
		if i < 0 || i+6 > len(schema) {
			return false
		}
		if hi, lo := unhex(schema[i+4]), unhex(schema[i+5]); strings.IndexByte(Annotation, hi<<4|lo) >= 0 {
			return true
		}
		schema = schema[i+4:]
	}
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 0
}

// found is a parameter with the place of its schema.
type found struct {
	at    uint32
	param Param
}

type parser struct {
	walk
	found []found
	names map[string]string // lower-case header name -> pointer of its schema
}

// annotated judges one annotation. The reachability comes first: elsewhere nothing else matters.
func (p *parser) annotated(n *node) error {
	if n.at != atProperty {
		return p.invalid(ClassUnreachable, "only properties that are reached by properties keys alone can be mirrored")
	}
	if n.duplicate != "" {
		return p.invalid(ClassDuplicate, n.duplicate+" is given twice")
	}
	name, ok := framing.String(cut(p.raw, n.header))
	if !ok {
		return p.invalid(ClassNotAString, "the header name must be a string")
	}
	if class := nameClass(name); class != "" {
		return p.invalid(class, "the header name must be a token of RFC 9110")
	}
	t := schemaType(p.raw, n.typ)
	if t == 0 {
		return p.invalid(ClassType, "the type must be string, integer or boolean")
	}
	lower := strings.ToLower(name)
	where := p.pointer()
	if other, taken := p.names[lower]; taken {
		return p.invalid(ClassDuplicate, "the header name is taken by "+other)
	}
	p.names[lower] = where
	p.found = append(p.found, found{n.object.Start, Param{Header: name, Path: p.path(), Type: t}})
	return nil
}

// schemaType reads the type member of a schema, 0 if it is missing or no single primitive type.
func schemaType(raw []byte, typ framing.Span) Type {
	if !typ.OK() {
		return 0
	}
	word, _ := framing.String(cut(raw, typ))
	return typeOf(word)
}
