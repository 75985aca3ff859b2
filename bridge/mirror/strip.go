package mirror

import "mcpbridge/framing"

// Strip returns the edits that remove every annotation, valid or not, from the inputSchema of the tool object at span
// tool of raw (XMH-12). All members in schema positions go, at any depth; the rest keeps its bytes. Linear in the
// length of the tool.
func Strip(raw []byte, tool framing.Span) []framing.Edit {
	if !tool.OK() || !mayAnnotate(cut(raw, tool)) {
		return nil
	}
	var edits []framing.Edit
	for _, m := range framing.Members(raw, tool) {
		if !keyIs(raw, m.Key, m.Escaped, "inputSchema") {
			continue
		}
		w := walk{cursor: cursor{raw: raw[:m.Value.End], pos: int(m.Value.Start)}}
		w.visit = func(n *node) error {
			edits = framing.EditObject(edits, raw, n.object, n.members, framing.Op{Name: Annotation})
			return nil
		}
		_ = w.run() // neither this visit nor a lenient walk fails
	}
	return edits
}
