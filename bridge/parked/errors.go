package parked

import (
	"strconv"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

func invalidParams(reason bridge.Reason, text string) *bridge.Error {
	return &bridge.Error{Status: 400, Code: mcp.CodeInvalidParams, Reason: reason, Message: text}
}

// lost is the answer to a retry whose call is gone; cause, which may be "", tells why. It may have had effects, so nobody but the
// user can decide to run it again.
func lost(cause string) *bridge.Error {
	e := invalidParams(bridge.ReasonParkedLost,
		"The interrupted call is no longer available; it may already have had effects. Start it again only if that is safe.")
	if cause != "" {
		e.Data = framing.AppendString([]byte(`"cause":`), cause)
	}
	return e
}

func expired() *bridge.Error {
	return invalidParams(bridge.ReasonStateExpired, "cannot continue: the time to answer has run out. Send the request again without requestState if running it again is safe.")
}

func mismatch() *bridge.Error {
	return invalidParams(bridge.ReasonStateMismatch, "cannot continue: params.requestState belongs to a request with another method or other params.")
}

func badAnswer(key, why string) *bridge.Error {
	e := invalidParams(bridge.ReasonInputResponse, "cannot take the answer "+strconv.Quote(key)+" of params.inputResponses: "+why+".")
	e.Data = framing.AppendString([]byte(`"key":`), key)
	return e
}

func badAnswers() *bridge.Error {
	return invalidParams(bridge.ReasonMalformed, "cannot accept request: params.inputResponses must be an object of objects, each key once.")
}

func stopping(server string) *bridge.Error {
	return &bridge.Error{Code: mcp.CodeInternal, Reason: bridge.ReasonStopping, Message: "server " + server + " was stopped before it answered"}
}

func tooManyParked(server, who string, n int, setting string) *bridge.Error {
	return &bridge.Error{Code: mcp.CodeInternal, Reason: bridge.ReasonTooManyParked, Message: "server " + server +
		" asks something, but " + who + " " + strconv.Itoa(n) + " calls that wait for answers already (setting " + setting + ")"}
}

func tooManyRounds(server string, n int) *bridge.Error {
	return &bridge.Error{Code: mcp.CodeInternal, Reason: bridge.ReasonTooManyRounds,
		Message: "server " + server + " asked more than " + strconv.Itoa(n) + " times in one call; it was cancelled"}
}

// undeclared is -32021 for what a server needs and the client did not declare (META-09, translation 5.4).
func undeclared(need bridge.Need, text string) *bridge.Error {
	return &bridge.Error{Status: 400, Code: mcp.CodeMissingRequiredCapability, Message: text,
		Data: append([]byte(`"requiredCapabilities":`), need.Profile.Capabilities()...)}
}
