package front

import (
	"net/http"
	"strconv"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// MaxBatch is the largest number of messages in one array.
const MaxBatch = 1000

// classifyBatch places an array: a batch on a session of the one revision that has them (FRM-23, FRM-24), else refused.
// An invalid member is not judged here, it gets its own error; a member with an envelope spoils the array, since no
// modern revision has batches (translation 17.4).
func classifyBatch(h http.Header, body []byte, s SessionView) (*Class, *bridge.Error) {
	if s.Present {
		if refusal := checkSession(h, s); refusal != nil {
			return nil, refusal
		}
	}
	if !s.Known || !s.Version.Batches() || claimsModern(h) {
		return nil, bridge.Invalid("cannot accept an array: batches are not supported in this protocol revision, send each message by itself.")
	}
	if framing.ArrayLonger(body, MaxBatch) {
		return nil, bridge.Invalid("cannot accept an array of more than " + strconv.Itoa(MaxBatch) + " messages.")
	}
	elements, err := framing.SplitBatch(body)
	if err != nil {
		return nil, bridge.Invalid("cannot read the array: " + err.Error() + ".").Because(err)
	}
	if len(elements) == 0 {
		return nil, bridge.Invalid("cannot accept an empty array.")
	}
	for _, element := range elements {
		if m, err := framing.Scan(element); err == nil && m.Kind != framing.Result && m.MetaMember(mcp.MetaProtocolVersion).OK() {
			return nil, bridge.Invalid("cannot accept an array with per-request metadata: that protocol revision has no batches, send each message by itself.")
		}
	}
	return &Class{Era: mcp.Legacy, Batch: elements, Version: s.Version}, nil
}

// ClassifyMember is Classify for one element of Class.Batch: a message of the session s, itself no array. An initialize
// is refused (FRM-25). The caller answers each refusal like a response, its status does not count.
func ClassifyMember(h http.Header, element []byte, s SessionView) (*Class, *bridge.Error) {
	m, err := framing.Scan(element)
	if err != nil {
		return nil, unscanned(err)
	}
	if m.Kind == framing.Request && m.MethodIs(mcp.Initialize) {
		return nil, refuse(m, mcp.CodeInvalidRequest, bridge.ReasonMalformed, "cannot initialize inside an array: send initialize by itself.")
	}
	return placeMessage(h, m, s)
}
