package bridge

import (
	"strconv"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Reason is the machine-readable cause of an error the bridge itself made. It travels as data.reason beside
// data.source "bridge", so that nobody takes the error for the server's own (FRM-20, translation 11.5).
type Reason string

// The fixed list of reasons.
const (
	ReasonMalformed         Reason = "malformed_request"
	ReasonForbidden         Reason = "forbidden"
	ReasonTooLarge          Reason = "too_large"
	ReasonNotAcceptable     Reason = "not_acceptable"
	ReasonMediaType         Reason = "unsupported_media_type"
	ReasonEnvelope          Reason = "envelope_invalid"
	ReasonHeaderMismatch    Reason = "header_mismatch"
	ReasonVersion           Reason = "unsupported_version"
	ReasonMethod            Reason = "method_not_found"
	ReasonHandshake         Reason = "handshake_required"
	ReasonSessionUnknown    Reason = "session_unknown"
	ReasonSessionLimit      Reason = "session_limit"
	ReasonNotDeclared       Reason = "capability_not_declared"
	ReasonBackUnavailable   Reason = "back_unavailable"
	ReasonBackTerminated    Reason = "back_terminated"
	ReasonBackBusy          Reason = "back_busy"
	ReasonPeerProtocolError Reason = "peer_protocol_error"
	ReasonTimeout           Reason = "timeout"
	ReasonOverload          Reason = "overload"
	ReasonStopping          Reason = "stopping"
	ReasonNotCarried        Reason = "not_carried"
	ReasonDuplicateID       Reason = "duplicate_id"
	ReasonRequestState      Reason = "request_state_invalid"
	ReasonStateExpired      Reason = "request_state_expired"
	ReasonStateMismatch     Reason = "request_state_mismatch"
	ReasonParkedLost        Reason = "parked_call_lost"
	ReasonTooManyParked     Reason = "too_many_parked_calls"
	ReasonTooManyRounds     Reason = "too_many_rounds"
	ReasonInputResponse     Reason = "input_response_invalid"
	ReasonDeclined          Reason = "declined"
	ReasonBackDisconnected  Reason = "back_disconnected"
	ReasonBackHTTPStatus    Reason = "back_http_status"
	ReasonBackUnauthorized  Reason = "back_unauthorized"
)

// Error is a refusal or failure made by the bridge, with everything needed to show it on any front: the JSON-RPC code and
// public text, and the HTTP status a front uses while nothing has been sent yet (translation 11.4). One writer turns it
// into wire form.
type Error struct {
	Status  int    // HTTP status, 0 means 200
	Code    int    // JSON-RPC error code
	Reason  Reason // "" leaves data.source and data.reason out
	Message string // public text: what happened and what to do; never a secret (SEC-09)
	Data    []byte // raw JSON members to add to data, without braces, e.g. `"supported":["2026-07-28"]`
	ID      []byte // raw id of the request, nil if it could not be read
	Allow   string // Allow header of a 405
	Retry   int    // Retry-After in seconds, 0 for none
	cause   error
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the internal cause, for logs only.
func (e *Error) Unwrap() error { return e.cause }

// WithID returns a copy that answers the request of this raw id.
func (e *Error) WithID(id []byte) *Error {
	c := *e
	c.ID = id
	return &c
}

// Because returns a copy that carries an internal cause for the log.
func (e *Error) Because(err error) *Error {
	c := *e
	c.cause = err
	return &c
}

// Body returns the error as a JSON-RPC response. An error whose id could not be read carries none on modern fronts
// and null on legacy ones (FRM-12); nullID chooses the latter.
func (e *Error) Body(nullID bool) []byte {
	b := append(make([]byte, 0, 160+len(e.Message)+len(e.Data)), `{"jsonrpc":"2.0"`...)
	switch {
	case e.ID != nil:
		b = append(append(b, `,"id":`...), e.ID...)
	case nullID:
		b = append(b, `,"id":null`...)
	}
	b = append(append(b, `,"error":`...), e.object()...)
	return append(b, '}')
}

func (e *Error) object() []byte {
	b := append([]byte(nil), `{"code":`...)
	b = strconv.AppendInt(b, int64(e.Code), 10)
	b = framing.AppendString(append(b, `,"message":`...), e.Message)
	if e.Reason != "" || len(e.Data) > 0 {
		b = append(b, `,"data":{`...)
		if e.Reason != "" {
			b = framing.AppendString(append(b, `"source":"bridge","reason":`...), string(e.Reason))
			if len(e.Data) > 0 {
				b = append(b, ',')
			}
		}
		b = append(append(b, e.Data...), '}')
	}
	return append(b, '}')
}

// HTTPStatus is the status of an answer that consists of this error alone.
func (e *Error) HTTPStatus() int {
	if e.Status == 0 {
		return 200
	}
	return e.Status
}

// Invalid is -32600 with HTTP status 400.
func Invalid(msg string) *Error {
	return &Error{Status: 400, Code: mcp.CodeInvalidRequest, Reason: ReasonMalformed, Message: msg}
}

// Unavailable is the failure of a request whose server cannot be reached before dispatch: 503, never a verdict about the
// bridge's own era (DSC-09).
func Unavailable(msg string) *Error {
	return &Error{Status: 503, Code: mcp.CodeInternal, Reason: ReasonBackUnavailable, Message: msg, Retry: 1}
}

// InvalidState is the answer to a retry with a request state that is none of the bridge's for this caller. One text for all that can
// be wrong with it, so that it tells nothing (MRT-06, translation 5.6).
func InvalidState() *Error {
	return &Error{Status: 400, Code: mcp.CodeInvalidParams, Reason: ReasonRequestState,
		Message: "cannot continue: params.requestState is none of this bridge's. Send the request without it."}
}
