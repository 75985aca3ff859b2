package front

import (
	"net/http"
	"strings"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/mirror"
	"mcpbridge/framing"
)

// Header names as errors show them.
const (
	versionHeader = "MCP-Protocol-Version"
	methodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"
)

// checkVersionHeader is check 7: exactly one MCP-Protocol-Version, equal to the body's (HTTP-M-19, HTTP-M-20).
func checkVersionHeader(h http.Header, m *framing.Message, version string) *bridge.Error {
	if h == nil { // over stdio there are none
		return nil
	}
	return mismatch(m, mirror.CheckPlain(h[mcp.HeaderProtocolVersion], versionHeader, version))
}

// checkNames is check 9: Mcp-Method always, Mcp-Name where the method has one (HTTP-M-25..27, HTTP-M-40). A name that is
// not a string is left to check 11. An Mcp-Name nobody asked for is ignored, if it is well-formed.
func checkNames(h http.Header, c *Class) *bridge.Error {
	if h == nil { // over stdio there are none
		return nil
	}
	m := c.Message
	if err := mirror.CheckPlain(h[mcp.HeaderMethod], methodHeader, c.Method); err != nil {
		return mismatch(m, err)
	}
	values := h[mcp.HeaderName]
	if mirrorsName(c, len(values) > 0) {
		return mismatch(m, mirror.CheckName(values, c.Name))
	}
	if len(values) > 1 {
		return badHeader(m, nameHeader, "it is sent more than once")
	}
	if len(values) == 1 && !visible(values[0]) {
		return badHeader(m, nameHeader, "it holds characters that a header value must not hold")
	}
	return nil
}

// mirrorsName reports whether Mcp-Name has to be compared. The task methods bind only clients to send it, a server
// checks it when it is there (HTTP-M-40).
func mirrorsName(c *Class, present bool) bool {
	if c.Traits.NameParam == "" {
		return false
	}
	raw := c.Message.Bytes(c.Message.Param(c.Traits.NameParam))
	return raw != nil && framing.IsString(raw) && (present || c.Traits.NameParam != "taskId")
}

// CheckParams is check 12 of HTTP-M-41: the Mcp-Param-* headers of a modern tools/call against the arguments, by the
// mirrored parameters of that tool's schema (XMH-14..17, ENC-12). Other messages pass. The error is -32020 with status
// 400 and the id of the request; unrecognised headers are ignored (HTTP-M-34).
func CheckParams(c *Class, h http.Header, params []mirror.Param) *bridge.Error {
	if len(params) == 0 || c.Era != mcp.Modern || c.Message == nil || c.Method != mcp.ToolsCall {
		return nil
	}
	args := c.Message.Bytes(c.Message.Param("arguments"))
	if args != nil && !framing.IsObject(args) {
		args = nil
	}
	err := mirror.Check(params, args, func(name string) []string {
		return h.Values(mcp.HeaderParamPrefix + name)
	})
	return mismatch(c.Message, err)
}

// mismatch turns an error of package mirror into -32020 (HTTP-M-28, HTTP-M-29), nil into nil.
func mismatch(m *framing.Message, err error) *bridge.Error {
	if err == nil {
		return nil
	}
	return refuse(m, mcp.CodeHeaderMismatch, bridge.ReasonHeaderMismatch, err.Error()+".")
}

func badHeader(m *framing.Message, header, reason string) *bridge.Error {
	return mismatch(m, &mirror.Mismatch{Header: header, Reason: reason})
}

// claimsModern reports whether a version header names a modern revision the bridge speaks.
func claimsModern(h http.Header) bool {
	for _, value := range h[mcp.HeaderProtocolVersion] {
		if mcp.Version(trimOWS(value)).Era() == mcp.Modern {
			return true
		}
	}
	return false
}

// mirroredText decodes a JSON string that a header may repeat. If it does, the text shares the header's memory.
func mirroredText(raw []byte, header []string) (string, bool) {
	if len(raw) >= 2 && raw[0] == '"' && len(header) == 1 {
		if value := trimOWS(header[0]); value == string(raw[1:len(raw)-1]) && strings.IndexByte(value, '\\') < 0 {
			return value, true
		}
	}
	return framing.String(raw)
}

// trimOWS cuts off the optional white space around a field value (HTTP-M-31).
func trimOWS(s string) string { return strings.Trim(s, " \t") }

// visible reports whether a header value has only bytes the MCP headers may have (HTTP-M-33).
func visible(s string) bool {
	for i := range len(s) {
		if c := s[i]; c > 0x7e || c < 0x20 && c != '\t' {
			return false
		}
	}
	return true
}

// paramHeaders returns the Mcp-Param headers of a request, nil if there are none (HTTP-M-34).
func paramHeaders(h http.Header) map[string][]string {
	var out map[string][]string
	for name, values := range h {
		if strings.HasPrefix(name, mcp.HeaderParamPrefix) {
			if out == nil {
				out = map[string][]string{}
			}
			out[name] = values
		}
	}
	return out
}
