package parked

import (
	"strings"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// verdict is what an answer is worth.
type verdict uint8

const (
	valid     verdict = iota
	unfit             // the content of a form does not fit its schema: asked again
	malformed         // no answer of its kind: refused
)

// judge checks the client's answer to a question and returns the server's response (translation 5.6, 13.4). why tells what is
// wrong, for people.
func (q *question) judge(answer []byte, server mcp.Version) (response framing.Frame, v verdict, why string) {
	switch q.need.Feature {
	case "elicitation":
		return q.judgeElicitation(answer)
	case "sampling":
		return q.judgeSampling(answer, server)
	}
	if roots, dup := member(answer, "roots"); dup || !framing.IsArray(roots) {
		return response, malformed, "it needs an array roots"
	}
	return bridge.ResultFrame(q.id, answer), valid, ""
}

func (q *question) judgeElicitation(answer []byte) (response framing.Frame, v verdict, why string) {
	action, _ := memberText(answer, "action")
	content, dup := member(answer, "content")
	switch {
	case dup:
		return response, malformed, "it has content twice"
	case action == "decline", action == "cancel", action == "accept" && q.url: // CLF-07
		return bridge.ResultFrame(q.id, change(answer, framing.Op{Name: "content"})), valid, ""
	case action != "accept":
		return response, malformed, "its action must be accept, decline or cancel"
	case !framing.IsObject(content):
		return response, malformed, "an accepted form needs an object content"
	}
	if why := violation(q.schema, content); why != "" {
		return response, unfit, why
	}
	return bridge.ResultFrame(q.id, answer), valid, ""
}

func (q *question) judgeSampling(answer []byte, server mcp.Version) (response framing.Frame, v verdict, why string) {
	role, hasRole := memberText(answer, "role")
	_, hasModel := memberText(answer, "model")
	content, dup := member(answer, "content")
	blocks := elements(content)
	switch {
	case !hasRole || role != "assistant" && role != "user":
		return response, malformed, "its role must be assistant or user"
	case !hasModel:
		return response, malformed, "it needs a string model"
	case dup || !framing.IsObject(content) && !framing.IsArray(content):
		return response, malformed, "its content must be one block or an array of blocks"
	}
	if framing.IsObject(content) {
		blocks = [][]byte{content}
	}
	for _, b := range blocks {
		kind, ok := memberText(b, "type")
		if !ok {
			return response, malformed, "each block of its content needs a type"
		}
		if kind == "tool_use" && !q.tools {
			return errorFrame(q.id, mcp.CodeInternal, "the client used a tool it was not offered"), valid, ""
		}
	}
	if framing.IsObject(content) || server.AtLeast(mcp.V20251125) {
		return bridge.ResultFrame(q.id, answer), valid, ""
	}
	one := single(blocks)
	if one == nil {
		return errorFrame(q.id, mcp.CodeInternal, "the client answered with several blocks, which this revision cannot carry"), valid, ""
	}
	return bridge.ResultFrame(q.id, change(answer, framing.Op{Name: "content", Value: one})), valid, ""
}

// single makes one block of several, nil if that cannot be: servers before 2025-11-25 take one (CLF-10).
func single(blocks [][]byte) []byte {
	if len(blocks) == 1 {
		return blocks[0]
	}
	var lines []string
	for _, b := range blocks {
		kind, _ := memberText(b, "type")
		line, ok := memberText(b, "text")
		if kind != "text" || !ok {
			return nil
		}
		lines = append(lines, line)
	}
	if lines == nil {
		return nil
	}
	return append(framing.AppendString([]byte(`{"type":"text","text":`), strings.Join(lines, "\n")), '}')
}

// responses reads the answers a request brings, by key; ok is false if they are malformed (MRT-15). nil tells that there is no
// such member.
func responses(m *framing.Message) (answers map[string][]byte, ok bool) {
	at := m.Param("inputResponses")
	if !at.OK() {
		return nil, true
	}
	if !framing.IsObject(m.Bytes(at)) {
		return nil, false
	}
	answers = map[string][]byte{}
	for _, p := range framing.Members(m.Raw, at) {
		key, value := memberName(m.Raw, p), m.Bytes(p.Value)
		if _, twice := answers[key]; twice || !framing.IsObject(value) {
			return nil, false
		}
		answers[key] = value
	}
	return answers, true
}
