package front

import (
	"errors"
	"net/http"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Class is what stages 3 and 4 find out about the body of a POST (translation 1.1).
type Class struct {
	Era     mcp.Era
	Message *framing.Message // nil for a batch
	Batch   [][]byte         // elements of an array, at most MaxBatch; each is still to be scanned
	Method  string           // decoded, "" for responses and batches
	Traits  mcp.Traits       // of Method
	Version mcp.Version      // modern: of the message; legacy: negotiated in the session, "" without one
	Name    string           // decoded member of params that Mcp-Name mirrors, "" if none
}

// SessionView is what the front knows of the Mcp-Session-Id header before it classifies the body.
type SessionView struct {
	Present bool        // the header is there
	Known   bool        // it names a live session of this principal
	Version mcp.Version // negotiated in that session, "" before
}

// Classify makes checks 4 to 11 of HTTP-M-41 on a POST body, and check 13 where no server is needed: JSON, shape, era
// by the body (VER-05), envelope, headers against body, version, methods of the other era, shape of params. Errors echo
// the id of a request (FRM-12) and say nothing about header values (SEC-09). An invalid JSON-RPC message is refused with
// the framing.ScanError as cause.
//
// A message without envelope that names an unknown session is 404 (HTTP-L-21), except initialize, which opens a new one.
// Still to do by the caller: CheckParams (check 12), the method's existence at the server, and everything about sessions.
func Classify(h http.Header, body []byte, s SessionView) (*Class, *bridge.Error) {
	m, err := framing.Scan(body)
	if err != nil {
		var scan *framing.ScanError
		if errors.As(err, &scan) && scan.Array && scan.Code == mcp.CodeInvalidRequest {
			return classifyBatch(h, body, s)
		}
		return nil, unscanned(err)
	}
	return placeMessage(h, m, s)
}

// placeMessage finds the era of a scanned message and has it checked accordingly (VER-05).
func placeMessage(h http.Header, m *framing.Message, s SessionView) (*Class, *bridge.Error) {
	switch m.Kind {
	case framing.Request:
		if m.MetaMember(mcp.MetaProtocolVersion).OK() {
			return modernRequest(h, m)
		}
		return bareRequest(h, m, s)
	case framing.Notification:
		if m.MetaMember(mcp.MetaProtocolVersion).OK() || !s.Present && claimsModern(h) {
			return modernNotification(h, m)
		}
		return legacyMessage(h, m, s)
	}
	return legacyMessage(h, m, s)
}

// unscanned refuses bytes that are no message. The id of a response is not echoed: it is none of the sender's own.
func unscanned(err error) *bridge.Error {
	refusal := bridge.Invalid(err.Error() + ".").Because(err)
	var scan *framing.ScanError
	if errors.As(err, &scan) {
		refusal.Code = scan.Code
		if scan.Kind == framing.Request {
			refusal.ID = scan.ID
		}
	}
	return refusal
}

// bareRequest places a request without envelope.
func bareRequest(h http.Header, m *framing.Message, s SessionView) (*Class, *bridge.Error) {
	if m.MethodIs(mcp.Initialize) {
		return handshakeRequest(h, m, s)
	}
	if claimsModern(h) {
		return nil, envelopeMissing(m)
	}
	if !s.Present {
		method := messageMethod(h, m)
		if mcp.TraitsOf(method).Only == mcp.Modern {
			return nil, envelopeMissing(m)
		}
		return nil, handshakeMissing(m)
	}
	c, refusal := legacyMessage(h, m, s)
	if refusal == nil && c.Traits.Only == mcp.Modern {
		return nil, otherEra(m, c.Method, 200)
	}
	return c, refusal
}

// handshakeRequest places an initialize without envelope. Its version header is not judged (case 64) unless it claims a
// revision without handshake (VER-05).
func handshakeRequest(h http.Header, m *framing.Message, s SessionView) (*Class, *bridge.Error) {
	if claimsModern(h) {
		return nil, badHeader(m, versionHeader, "it names a revision without handshake, but the body is an initialize request without per-request metadata")
	}
	if s.Known {
		// LEG-06
		return nil, refuse(m, mcp.CodeInvalidRequest, bridge.ReasonMalformed, "cannot initialize: this session is initialized already. Send initialize without Mcp-Session-Id to open another.")
	}
	return newClass(h, m, mcp.Legacy, ""), nil
}

// legacyMessage places what belongs to a legacy session: requests, notifications and answers to the server's questions.
func legacyMessage(h http.Header, m *framing.Message, s SessionView) (*Class, *bridge.Error) {
	if refusal := checkSession(h, s); refusal != nil {
		if m.Kind == framing.Request {
			refusal.ID = m.Bytes(m.ID)
		}
		return nil, refusal
	}
	return newClass(h, m, mcp.Legacy, s.Version), nil
}

// checkSession refuses what has no live legacy session behind it, or names a revision nobody knows (HTTP-L-20, 21, 26).
// Another revision than the negotiated one passes (HTTP-L-27); a request that names a modern one does not come here.
func checkSession(h http.Header, s SessionView) *bridge.Error {
	switch {
	case !s.Present:
		return handshakeMissing(nil)
	case !s.Known:
		return &bridge.Error{
			Status: 404, Code: mcp.CodeInvalidRequest, Reason: bridge.ReasonSessionUnknown,
			Message: "cannot find session: it has ended or never existed. Send initialize again.",
		}
	}
	values := h[mcp.HeaderProtocolVersion]
	if len(values) == 0 || len(values) == 1 && mcp.Version(trimOWS(values[0])).Known() {
		return nil
	}
	return refuse(nil, mcp.CodeInvalidRequest, bridge.ReasonVersion, "cannot accept message: "+versionHeader+" must name one revision that has sessions: "+listVersions(mcp.LegacyVersions())+".")
}

// newClass fills in what is known of every message.
func newClass(h http.Header, m *framing.Message, era mcp.Era, v mcp.Version) *Class {
	c := &Class{Era: era, Message: m, Version: v}
	if m.Kind != framing.Request && m.Kind != framing.Notification {
		return c
	}
	c.Method = messageMethod(h, m)
	c.Traits = mcp.TraitsOf(c.Method)
	if c.Traits.NameParam != "" && m.Kind == framing.Request {
		c.Name, _ = mirroredText(m.Bytes(m.Param(c.Traits.NameParam)), h[mcp.HeaderName])
	}
	return c
}

// messageMethod decodes the method. The common ones and one that Mcp-Method repeats cost no memory.
func messageMethod(h http.Header, m *framing.Message) string {
	raw := m.Bytes(m.Method)
	if len(raw) > 2 {
		switch name := raw[1 : len(raw)-1]; string(name) {
		case mcp.ToolsCall:
			return mcp.ToolsCall
		case mcp.ToolsList:
			return mcp.ToolsList
		case mcp.ResourcesRead:
			return mcp.ResourcesRead
		case mcp.PromptsGet:
			return mcp.PromptsGet
		case mcp.Ping:
			return mcp.Ping
		}
	}
	method, _ := mirroredText(raw, h[mcp.HeaderMethod])
	return method
}
