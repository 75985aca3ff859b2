package front

import (
	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// refuse makes an error with status 400 that answers m if m is a request; m may be nil.
func refuse(m *framing.Message, code int, reason bridge.Reason, text string) *bridge.Error {
	e := &bridge.Error{Status: 400, Code: code, Reason: reason, Message: text}
	if m != nil && m.Kind == framing.Request {
		e.ID = m.Bytes(m.ID)
	}
	return e
}

// handshakeMissing is the answer to a message that belongs to no session and has no envelope (LEG-05, HTTP-L-20).
func handshakeMissing(m *framing.Message) *bridge.Error {
	return refuse(m, mcp.CodeInvalidRequest, bridge.ReasonHandshake, "cannot place message: send initialize first and then its Mcp-Session-Id, or per-request metadata in params._meta.")
}

// otherEra refuses a method that the era of the request does not have (HTTP-M-23, translation 17.6). Modern fronts say
// 404; on a session that status would mean that the session is gone, so errors of legacy requests ride on 200.
func otherEra(m *framing.Message, method string, status int) *bridge.Error {
	e := refuse(m, mcp.CodeMethodNotFound, bridge.ReasonMethod, "cannot call "+method+": this protocol revision has no such method.")
	e.Status = status
	return e
}

// badParams is -32602 for a request whose params have the wrong shape (HTTP-M-42).
func badParams(m *framing.Message, text string) *bridge.Error {
	return refuse(m, mcp.CodeInvalidParams, bridge.ReasonMalformed, "cannot accept request: "+text+".")
}

func listVersions(versions []mcp.Version) string {
	text := ""
	for i, v := range versions {
		if i > 0 {
			text += ", "
		}
		text += string(v)
	}
	return text
}
