package era

import (
	"bytes"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// toolEdits rewrites the entries of tools/list one by one.
func (r Result) toolEdits(dst []framing.Edit, m *framing.Message, list framing.Span) []framing.Edit {
	if r.Method != mcp.ToolsList {
		return dst
	}
	tools := elements(m.Raw, list)
	var gone []bool
	for i, tool := range tools {
		if !isObject(m.Raw, tool) {
			continue
		}
		if r.Tools != nil {
			edits := r.Tools(m.Raw, tool)
			if removes(edits, tool) {
				if gone == nil {
					gone = make([]bool, len(tools))
				}
				gone[i] = true
				continue
			}
			dst = append(dst, edits...)
		}
		dst = r.toolMembers(dst, m.Raw, tool)
	}
	if gone == nil {
		return dst
	}
	return dropElements(dst, tools, gone)
}

// removes reports whether the edits ask for the whole entry to go.
func removes(edits []framing.Edit, tool framing.Span) bool {
	return len(edits) == 1 && edits[0].At == tool && len(edits[0].New) == 0
}

// toolMembers drops the members of one tool that the front's era does not have or would reject.
func (r Result) toolMembers(dst []framing.Edit, raw []byte, tool framing.Span) []framing.Edit {
	stripExecution := r.From == mcp.Legacy && r.To == mcp.Modern
	if !stripExecution && !r.checksSchemas() {
		return dst
	}
	members := framing.Members(raw, tool)
	if stripExecution {
		if v, _ := framing.Lookup(raw, members, "execution"); v.OK() { // LEG-10
			return framing.EditObject(dst, raw, tool, members, framing.Op{Name: "execution"})
		}
		return dst
	}
	v, _ := framing.Lookup(raw, members, "outputSchema")
	if v.OK() && !objectTyped(raw[v.Start:v.End]) { // FEA-08
		return framing.EditObject(dst, raw, tool, members, framing.Op{Name: "outputSchema"})
	}
	return dst
}

// objectTyped reports whether a schema says "type": "object", as revisions before the modern one demand.
func objectTyped(schema []byte) bool { return bytes.Equal(member(schema, "type"), []byte(`"object"`)) }

// dropElements removes the elements of an array that are marked, and one comma for each.
func dropElements(dst []framing.Edit, list []framing.Span, gone []bool) []framing.Edit {
	for i := 0; i < len(list); {
		if !gone[i] {
			i++
			continue
		}
		first := i
		for i < len(list) && gone[i] {
			i++
		}
		cut := framing.Span{Start: list[first].Start, End: list[i-1].End}
		switch {
		case first > 0:
			cut.Start = list[first-1].End
		case i < len(list):
			cut.End = list[i].Start
		}
		dst = append(dst, framing.Edit{At: cut})
	}
	return dst
}
