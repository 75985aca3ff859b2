package era

import (
	"unicode/utf8"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// maxReason is how many bytes of a cancellation's reason are passed on (translation 10).
const maxReason = 1024

// TokenOf returns the raw progress token of notifications/progress, nil if it has none.
func TokenOf(m *framing.Message) []byte { return m.Bytes(m.Param(mcp.MetaProgressToken)) }

// ProgressEdits restores the client's raw token in notifications/progress (PRG-01).
func ProgressEdits(m *framing.Message, token []byte) []framing.Edit {
	at := m.Param(mcp.MetaProgressToken)
	if !at.OK() || token == nil {
		return nil
	}
	return []framing.Edit{{At: at, New: token}}
}

// CancelEdits makes notifications/cancelled name the receiver's request id (CAN-01). A reason longer than 1 kB is cut,
// between characters; an envelope is taken out, since it speaks for the sender's hop alone.
func CancelEdits(m *framing.Message, requestID []byte) []framing.Edit {
	if !framing.IsObject(m.Bytes(m.Params)) {
		return nil
	}
	ops := []framing.Op{{Name: "requestId", Value: requestID}}
	if reason, ok := framing.String(m.Bytes(m.Param("reason"))); ok && len(reason) > maxReason {
		ops = append(ops, framing.Op{Name: "reason", Value: quote(cut(reason, maxReason))})
	}
	edits := make([]framing.Edit, 0, 4)
	if meta, left := envelopeOps(m); len(meta) > 0 && left == 0 {
		ops = append(ops, framing.Op{Name: "_meta"})
	} else if len(meta) > 0 {
		edits = framing.EditObject(edits, m.Raw, m.Meta, m.MetaMembers(), meta...)
	}
	return framing.EditObject(edits, m.Raw, m.Params, m.ParamMembers(), ops...)
}

// envelopeOps removes the envelope keys a notification carries; left is how many other members _meta has.
func envelopeOps(m *framing.Message) (ops []framing.Op, left int) {
	for _, p := range m.MetaMembers() {
		if name := reserved(nameOf(m.Raw, p)); isEnvelope(name) {
			ops = append(ops, framing.Op{Name: name})
		} else {
			left++
		}
	}
	return ops, left
}

// cut shortens s to at most n bytes without splitting a character.
func cut(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// LogLevelOf returns the level of notifications/message, NoLevel if it is missing or unknown (LOG-03).
func LogLevelOf(m *framing.Message) mcp.Level {
	name, ok := framing.String(m.Bytes(m.Param("level")))
	if !ok {
		return mcp.NoLevel
	}
	return mcp.ParseLevel(name)
}

// SubscriptionEdits sets the raw subscriptionId of a notification (SUB-05), or removes it when id is nil: legacy clients
// do not know it. A _meta that is left empty goes.
func SubscriptionEdits(m *framing.Message, id []byte) []framing.Edit {
	op := framing.Op{Name: mcp.MetaSubscriptionID, Value: id}
	params := m.Bytes(m.Params)
	switch {
	case params != nil && !framing.IsObject(params):
		return nil
	case id == nil && !m.MetaMember(mcp.MetaSubscriptionID).OK():
		return nil
	case id == nil && len(m.MetaMembers()) == 1:
		return framing.EditObject(nil, m.Raw, m.Params, m.ParamMembers(), framing.Op{Name: "_meta"})
	case m.Meta.OK():
		return framing.EditObject(nil, m.Raw, m.Meta, m.MetaMembers(), op)
	}
	var meta, all object
	meta.add(op.Name, id)
	if params != nil {
		return framing.EditObject(nil, m.Raw, m.Params, m.ParamMembers(), framing.Op{Name: "_meta", Value: meta.bytes()})
	}
	all.add("_meta", meta.bytes())
	return framing.EditObject(nil, m.Raw, whole(m.Raw), m.TopMembers(), framing.Op{Name: "params", Value: all.bytes()})
}
