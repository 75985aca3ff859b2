package mirror

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mcpbridge/framing"
)

// Annotate returns the edits that annotate properties in the inputSchema of the tool object at span tool of raw. add
// maps property paths, dots between nested names, to header names. A path that can be read in two ways because names
// hold dots is refused. An annotation that is there already with the same name is left alone.
//
// The error names the property and what is wrong with it: it does not exist or exists twice, is no string, integer or
// boolean, has another annotation, or its header name is no token or taken. The schema's own annotations must be
// valid, else the error wraps *Invalid: Strip first, then annotate what comes out.
func Annotate(raw []byte, tool framing.Span, add map[string]string) ([]framing.Edit, error) {
	if len(add) == 0 {
		return nil, nil
	}
	schema, dup := framing.Lookup(raw, framing.Members(raw, tool), "inputSchema")
	if dup || !schema.OK() || raw[schema.Start] != '{' {
		return nil, fmt.Errorf("cannot mirror arguments: the tool has not one inputSchema object")
	}
	present, err := parse(cut(raw, schema))
	if err != nil {
		return nil, fmt.Errorf("cannot mirror arguments: %w", err)
	}
	a := annotator{raw: raw, taken: make(map[string][]string, len(present))}
	for _, p := range present {
		a.taken[strings.ToLower(p.Header)] = p.Path
	}
	for _, path := range slices.Sorted(maps.Keys(add)) {
		if err := a.annotate(schema, path, add[path]); err != nil {
			return nil, fmt.Errorf("cannot mirror argument %q as %q: %w", path, add[path], err)
		}
	}
	return a.edits, nil
}

type annotator struct {
	raw   []byte
	taken map[string][]string // lower-case header name -> property path
	edits []framing.Edit
}

// target is a property found by its dotted path.
type target struct {
	path   []string
	schema framing.Span
}

func (a *annotator) annotate(schema framing.Span, path, header string) error {
	if class := nameClass(header); class != "" {
		return fmt.Errorf("the header name is no token (%s)", class)
	}
	targets, err := a.resolve(nil, nil, schema, path)
	switch {
	case err != nil:
		return err
	case len(targets) == 0:
		return fmt.Errorf("no such property")
	case len(targets) > 1:
		return fmt.Errorf("the path can be read as %q and as %q", targets[0].path, targets[1].path)
	}
	return a.mark(targets[0], header)
}

// mark adds the annotation to one property.
func (a *annotator) mark(t target, header string) error {
	members := framing.Members(a.raw, t.schema)
	typ, dup := framing.Lookup(a.raw, members, "type")
	if dup || schemaType(a.raw, typ) == 0 {
		return fmt.Errorf("the property's type is not string, integer or boolean")
	}
	name := strings.ToLower(header)
	if other, taken := a.taken[name]; taken && !slices.Equal(other, t.path) {
		return fmt.Errorf("the header name is taken by property %q", other)
	}
	if old, _ := framing.Lookup(a.raw, members, Annotation); old.OK() {
		if s, _ := framing.String(cut(a.raw, old)); !strings.EqualFold(s, header) {
			return fmt.Errorf("the property is annotated as %q", s)
		}
		return nil
	}
	a.taken[name] = t.path
	op := framing.Op{Name: Annotation, Value: framing.AppendString(nil, header)}
	a.edits = framing.EditObject(a.edits, a.raw, t.schema, members, op)
	return nil
}

// resolve appends the properties that rest, a dotted path, can name below the schema. Two are enough to refuse it.
func (a *annotator) resolve(dst []target, above []string, schema framing.Span, rest string) ([]target, error) {
	if a.raw[schema.Start] != '{' || len(above) >= MaxDepth-1 || len(dst) > 1 {
		return dst, nil
	}
	props, dup := framing.Lookup(a.raw, framing.Members(a.raw, schema), "properties")
	if dup {
		return nil, fmt.Errorf("properties is given twice")
	}
	if !props.OK() || a.raw[props.Start] != '{' {
		return dst, nil
	}
	seen := make(map[string]bool)
	for _, m := range framing.Members(a.raw, props) {
		name := keyText(a.raw, m.Key, m.Escaped)
		tail, ok := strings.CutPrefix(rest, name)
		if !ok || (tail != "" && tail[0] != '.') {
			continue
		}
		if seen[name] {
			return nil, fmt.Errorf("property %q is given twice", name)
		}
		seen[name] = true
		path := append(slices.Clip(above), name)
		if tail == "" {
			dst = append(dst, target{path, m.Value})
			continue
		}
		var err error
		if dst, err = a.resolve(dst, path, m.Value, tail[1:]); err != nil {
			return nil, err
		}
	}
	return dst, nil
}
