package parked

import (
	"strconv"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

func itoa(n int) []byte { return strconv.AppendInt(nil, int64(n), 10) }

// question is one open question of the server to the client.
type question struct {
	key    string
	id     []byte // the server's own, raw
	need   bridge.Need
	body   []byte // as the client gets it (MRT-02)
	schema []byte // of a form
	url    bool   // an elicitation by URL
	tools  bool   // sampling with tools
	faults int    // answers whose content did not fit the schema
	asked  *framing.Message
	guess  bool // it may be another call's
}

// mark is what a state keeps of the question, so that an answer to another is not taken for one to it.
func (q *question) mark() mark { return markOf([]byte(q.key), q.body) }

// newQuestion makes of a server's request what the client is asked (translation 5.3, 5.4). context tells that the client declared
// sampling.context. It returns nil if the request has no form that can be asked.
func newQuestion(m *framing.Message, need bridge.Need, context bool) *question {
	q := &question{id: m.Bytes(m.ID), need: need, asked: m}
	b := framing.AppendString([]byte(`{"method":`), m.MethodName())
	if params := m.Bytes(m.Params); params != nil {
		if !framing.IsObject(params) {
			return nil
		}
		q.schema, _ = member(params, "requestedSchema")
		mode, _ := memberText(params, "mode")
		q.url = mode == "url"
		tools, _ := member(params, "tools")
		choice, _ := member(params, "toolChoice")
		q.tools = tools != nil || choice != nil
		b = append(append(b, `,"params":`...), change(params, paramOps(params, need.Feature, context)...)...)
	} else if need.Feature != "roots" {
		return nil
	}
	q.body = append(b, '}')
	return q
}

// paramOps are the changes in the params of a question.
func paramOps(params []byte, feature string, context bool) (ops []framing.Op) {
	ops = append(ops, framing.Op{Name: "task"}, framing.Op{Name: "elicitationId"})
	if meta, _ := member(params, "_meta"); framing.IsObject(meta) {
		left := change(meta, framing.Op{Name: mcp.MetaProgressToken}, framing.Op{Name: mcp.MetaRelatedTask})
		if len(framing.Members(left, whole(left))) == 0 {
			left = nil
		}
		ops = append(ops, framing.Op{Name: "_meta", Value: left})
	}
	switch feature {
	case "elicitation":
		if mode, _ := member(params, "mode"); mode == nil {
			ops = append(ops, framing.Op{Name: "mode", Value: []byte(`"form"`)}) // CLF-02
		}
	case "sampling":
		if include, ok := memberText(params, "includeContext"); !context && (!ok || include != "none") {
			ops = append(ops, framing.Op{Name: "includeContext"})
		}
	}
	return ops
}

// ownKey is the server's own id of a question if it can be a key (design decision 16), else "".
func ownKey(id []byte) string {
	s, ok := framing.String(id)
	if !ok || s == "" || len(s) > 64 {
		return ""
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return ""
		}
	}
	return s
}

// abandoned is the answer to a question that nobody will answer (translation 5.7).
func (q *question) abandoned() framing.Frame {
	switch q.need.Feature {
	case "elicitation":
		return bridge.ResultFrame(q.id, []byte(`{"action":"cancel"}`))
	case "sampling":
		return errorFrame(q.id, -1, "User rejected sampling request") // CLF-11
	}
	return errorFrame(q.id, mcp.CodeInternal, "the client did not answer")
}

func errorFrame(id []byte, code int, text string) framing.Frame {
	return framing.Whole((&bridge.Error{Code: code, Message: text, ID: id}).Body(true))
}
