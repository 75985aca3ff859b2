package front

import (
	"net/http"
	"strings"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

const (
	typeJSON = "application/json"
	typeSSE  = "text/event-stream"
)

// Accept is what the client can take as the answer to a POST (HTTP-M-04). JSON alone means one object and no
// notifications on the way, SSE alone means always a stream.
type Accept struct{ JSON, SSE bool }

// ParseAccept reads the Accept header as RFC 9110 section 12.5.1 has it: several lines, wildcards, parameters ignored,
// q=0 excludes, the more specific range decides. None and an empty one count as both. It is liberal on purpose (case
// 31): a malformed weight counts as 1.
func ParseAccept(h http.Header) Accept {
	values := h["Accept"]
	var json, sse acceptRule
	empty := true
	for _, value := range values {
		for rest, more := value, true; more; {
			var item string
			item, rest, more = strings.Cut(rest, ",")
			media, params, _ := strings.Cut(item, ";")
			media = strings.Trim(media, " \t")
			if media == "" {
				continue
			}
			empty = false
			refused := zeroWeight(params)
			json.apply(specificity(media, "application", typeJSON), refused)
			sse.apply(specificity(media, "text", typeSSE), refused)
		}
	}
	if empty {
		return Accept{JSON: true, SSE: true}
	}
	return Accept{JSON: json.allowed, SSE: sse.allowed}
}

// CheckAccept is ParseAccept with 406 when neither kind of answer can be sent (HTTP-M-04).
func CheckAccept(h http.Header) (Accept, *bridge.Error) {
	a := ParseAccept(h)
	if !a.JSON && !a.SSE {
		return a, notAcceptable("cannot answer: Accept allows neither " + typeJSON + " nor " + typeSSE + ".")
	}
	return a, nil
}

func notAcceptable(text string) *bridge.Error {
	return &bridge.Error{
		Status:  http.StatusNotAcceptable,
		Code:    mcp.CodeInvalidRequest,
		Reason:  bridge.ReasonNotAcceptable,
		Message: text,
	}
}

// acceptRule is what the most specific range seen so far says about one media type.
type acceptRule struct {
	rank    int
	allowed bool
}

func (a *acceptRule) apply(rank int, refused bool) {
	switch {
	case rank == 0 || rank < a.rank:
	case rank > a.rank:
		a.rank, a.allowed = rank, !refused
	default:
		a.allowed = a.allowed || !refused
	}
}

// specificity ranks a media range against a full type: 3 the type itself, 2 its family, 1 anything, 0 no match.
func specificity(media, family, full string) int {
	switch {
	case strings.EqualFold(media, full):
		return 3
	case len(media) == len(family)+2 && strings.HasSuffix(media, "/*") && strings.EqualFold(media[:len(family)], family):
		return 2
	case media == "*/*" || media == "*": // a lone star is no media range, but old libraries send it
		return 1
	}
	return 0
}

// zeroWeight reports whether the parameters of a media range hold q=0, q=0.0 and so on.
func zeroWeight(params string) bool {
	for more := params != ""; more; {
		var param string
		param, params, more = strings.Cut(params, ";")
		name, value, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.Trim(name, " \t"), "q") {
			continue
		}
		value = strings.Trim(value, " \t")
		return strings.HasPrefix(value, "0") && strings.Trim(value[1:], ".0") == ""
	}
	return false
}

// CheckContentType refuses a body that is not application/json with 415 (HTTP-M-05): a page may post text/plain or a
// form anywhere without being asked, but not JSON. Parameters and case do not matter (case 32). Compressed bodies are
// refused too, as the bridge does not read them.
func CheckContentType(h http.Header) *bridge.Error {
	values := h["Content-Type"]
	if len(values) != 1 {
		return mediaTypeRefusal("cannot read request: it needs exactly one Content-Type header, " + typeJSON + ".")
	}
	media, _, _ := strings.Cut(values[0], ";")
	if !strings.EqualFold(strings.Trim(media, " \t"), typeJSON) {
		return mediaTypeRefusal("cannot read request: Content-Type must be " + typeJSON + ".")
	}
	for _, coding := range h["Content-Encoding"] {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return mediaTypeRefusal("cannot read request: Content-Encoding is not supported, send the body as it is.")
		}
	}
	return nil
}

func mediaTypeRefusal(text string) *bridge.Error {
	return &bridge.Error{
		Status:  http.StatusUnsupportedMediaType,
		Code:    mcp.CodeInvalidRequest,
		Reason:  bridge.ReasonMediaType,
		Message: text,
	}
}
