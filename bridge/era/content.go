package era

import (
	"bytes"
	"strconv"
	"strings"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// newer reports whether the back may send what the client's revision does not know.
func (r Result) newer() bool {
	if r.To != mcp.Legacy || r.ClientVersion == "" {
		return false
	}
	if r.From == mcp.Modern {
		return true
	}
	return !r.Exclusive && (r.BackVersion == "" || !r.ClientVersion.AtLeast(r.BackVersion))
}

// downgrades reports whether content blocks of this result have to be looked at: 2025-11-25 clients take unknown types
// as they are, and only two methods answer with blocks.
func (r Result) downgrades() bool {
	return (r.Method == mcp.ToolsCall || r.Method == mcp.PromptsGet) &&
		r.newer() && !r.ClientVersion.AtLeast(mcp.V20251125)
}

// blockEdits replaces the content blocks the client would reject the whole result for (FEA-13).
func (r Result) blockEdits(dst []framing.Edit, m *framing.Message, f *fields) []framing.Edit {
	if !r.downgrades() {
		return dst
	}
	if r.Method == mcp.ToolsCall {
		return r.blocks(dst, m.Raw, f.content)
	}
	for _, e := range elements(m.Raw, f.messages) {
		if framing.IsObject(m.Bytes(e)) {
			content, _ := framing.Lookup(m.Raw, framing.Members(m.Raw, e), "content")
			dst = r.blocks(dst, m.Raw, content)
		}
	}
	return dst
}

// blocks handles one block or an array of them.
func (r Result) blocks(dst []framing.Edit, raw []byte, content framing.Span) []framing.Edit {
	if isObject(raw, content) {
		return r.block(dst, raw, content)
	}
	for _, e := range elements(raw, content) {
		dst = r.block(dst, raw, e)
	}
	return dst
}

func (r Result) block(dst []framing.Edit, raw []byte, block framing.Span) []framing.Edit {
	if !isObject(raw, block) {
		return dst
	}
	b := blockView{raw, framing.Members(raw, block)}
	kind, ok := framing.String(b.value("type"))
	if !ok || knows(r.ClientVersion, kind) {
		return dst
	}
	return append(dst, framing.Edit{At: block, New: b.asText(kind)})
}

// knows reports whether clients of revision v accept content of this type (translation 13.1).
func knows(v mcp.Version, kind string) bool {
	switch kind {
	case "text", "image", "resource":
		return true
	case "audio":
		return v.Audio()
	case "resource_link":
		return v.ResourceLinks()
	}
	return v.AtLeast(mcp.V20251125)
}

type blockView struct {
	raw     []byte
	members []framing.Member
}

func (b blockView) value(name string) []byte {
	v, _ := framing.Lookup(b.raw, b.members, name)
	if !v.OK() {
		return nil
	}
	return b.raw[v.Start:v.End]
}

func (b blockView) text(name string) string {
	s, _ := framing.String(b.value(name))
	return s
}

// asText is the block as a text block; annotations and _meta mean the same on every type and stay.
func (b blockView) asText(kind string) []byte {
	var text string
	switch kind {
	case "audio":
		text = "[" + join(kind, " ", b.text("mimeType")) + ", " + strconv.Itoa(decodedLen(b.text("data"))) + " bytes, not shown]"
	case "resource_link":
		text = join(b.text("name"), ": ", b.text("uri"))
		if d := b.text("description"); d != "" {
			text += " (" + d + ")"
		}
	default:
		text = "[content of type " + kind + "]"
	}
	o := object{appendText(make([]byte, 0, 32+len(text)), text)}
	o.b = o.b[:len(o.b)-1]
	o.addSome("annotations", b.value("annotations"))
	o.addSome("_meta", b.value("_meta"))
	return o.bytes()
}

// join puts sep between two texts if both are there.
func join(a, sep, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + sep + b
}

// appendText appends a text block.
func appendText(dst []byte, text string) []byte {
	return append(framing.AppendString(append(dst, `{"type":"text","text":`...), text), '}')
}

// decodedLen is the number of bytes a base64 text stands for.
func decodedLen(b64 string) int { return len(strings.TrimRight(b64, "=")) * 3 / 4 }

// rejectsStructured reports structured content that is no object towards clients whose schema wants one (FEA-08).
func (r Result) rejectsStructured(m *framing.Message, f *fields) bool {
	return f.structured.OK() && r.Method == mcp.ToolsCall && r.checksSchemas() && !isObject(m.Raw, f.structured)
}

// checksSchemas reports whether the client reads structured content and output schemas, and the back may send such as
// the client's revision does not allow: only modern ones may.
func (r Result) checksSchemas() bool {
	return r.From == mcp.Modern && r.newer() && r.ClientVersion.StructuredContent()
}

// flatten drops structuredContent and makes sure that some text block of the result holds its JSON.
func flatten(ops []framing.Op, dst []framing.Edit, m *framing.Message, f *fields) ([]framing.Op, []framing.Edit) {
	ops = append(ops, framing.Op{Name: "structuredContent"})
	json := string(m.Bytes(f.structured))
	switch {
	case !f.content.OK() || !framing.IsArray(m.Bytes(f.content)):
		text := append(appendText([]byte{'['}, json), ']')
		return append(ops, framing.Op{Name: "content", Value: text}), dst
	case hasText(m.Raw, f.content):
		return ops, dst
	}
	var text []byte
	if len(framing.Elements(m.Raw, f.content)) > 0 {
		text = append(text, ',')
	}
	end := f.content.End - 1 // before the closing bracket
	at := framing.Span{Start: end, End: end}
	return ops, append(dst, framing.Edit{At: at, New: appendText(text, json)})
}

func hasText(raw []byte, content framing.Span) bool {
	for _, e := range framing.Elements(raw, content) {
		if t := member(raw[e.Start:e.End], "type"); bytes.Equal(t, []byte(`"text"`)) {
			return true
		}
	}
	return false
}

func isObject(raw []byte, s framing.Span) bool { return s.OK() && framing.IsObject(raw[s.Start:s.End]) }

// elements lists the elements of an array, none if s is absent or something else.
func elements(raw []byte, s framing.Span) []framing.Span {
	if !s.OK() || !framing.IsArray(raw[s.Start:s.End]) {
		return nil
	}
	return framing.Elements(raw, s)
}
