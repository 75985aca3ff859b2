package front

import (
	"net/http"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// modernRequest makes checks 6 to 11 of HTTP-M-41 on a request with envelope, in that order, and check 13 for tasks.
// Everything is decided by this request alone (META-06); a session id is not looked at (HTTP-M-39).
func modernRequest(h http.Header, m *framing.Message) (*Class, *bridge.Error) {
	if refusal := checkEnvelope(m); refusal != nil {
		return nil, refusal
	}
	version, _ := mirroredText(m.Bytes(m.MetaMember(mcp.MetaProtocolVersion)), h[mcp.HeaderProtocolVersion])
	if refusal := checkVersion(h, m, version); refusal != nil {
		return nil, refusal
	}
	c := newClass(h, m, mcp.Modern, mcp.Version(version))
	if refusal := checkNames(h, c); refusal != nil {
		return nil, refusal
	}
	if c.Traits.Only == mcp.Legacy {
		return nil, otherEra(m, c.Method, 404)
	}
	if refusal := checkParamShapes(h, c); refusal != nil {
		return nil, refusal
	}
	return c, nil
}

// modernNotification places a notification that is not of a session. None is defined for modern clients and no header is
// asked for, so only two versions that disagree are refused (HTTP-M-07).
func modernNotification(h http.Header, m *framing.Message) (*Class, *bridge.Error) {
	raw := m.Bytes(m.MetaMember(mcp.MetaProtocolVersion))
	values := h[mcp.HeaderProtocolVersion]
	version, _ := mirroredText(raw, values)
	if raw != nil && len(values) > 0 {
		if refusal := checkVersionHeader(h, m, version); refusal != nil {
			return nil, refusal
		}
	}
	return newClass(h, m, mcp.Modern, mcp.Version(version)), nil
}

// checkEnvelope is check 6: the required members of _meta and the types of those the bridge reads (META-03, META-05).
// The name of the client is not required (META-04).
func checkEnvelope(m *framing.Message) *bridge.Error {
	if !framing.IsString(m.Bytes(m.MetaMember(mcp.MetaProtocolVersion))) {
		return envelopeRefusal(m, mcp.MetaProtocolVersion, "a string")
	}
	if caps := m.MetaMember(mcp.MetaClientCapabilities); !caps.OK() || !framing.IsObject(m.Bytes(caps)) {
		return envelopeRefusal(m, mcp.MetaClientCapabilities, "an object")
	}
	if info := m.MetaMember(mcp.MetaClientInfo); info.OK() && !framing.IsObject(m.Bytes(info)) {
		return envelopeRefusal(m, mcp.MetaClientInfo, "an object, if present")
	}
	if token := m.MetaMember(mcp.MetaProgressToken); token.OK() && !stringOrInteger(m.Bytes(token)) {
		return envelopeRefusal(m, mcp.MetaProgressToken, "a string or an integer, if present") // PRG-01
	}
	return nil
}

func stringOrInteger(raw []byte) bool {
	if !framing.IsNumber(raw) {
		return framing.IsString(raw)
	}
	for _, c := range raw {
		if c == '.' || c == 'e' || c == 'E' {
			return false
		}
	}
	return true
}

// checkVersion makes checks 7 and 8: the header equals the body, and only then the version is one the bridge serves
// (HTTP-M-19..21). A legacy revision cannot be chosen by metadata (META-13).
func checkVersion(h http.Header, m *framing.Message, version string) *bridge.Error {
	if refusal := checkVersionHeader(h, m, version); refusal != nil {
		return refusal
	}
	if mcp.Version(version).Era() != mcp.Modern {
		return versionUnsupported(m, version)
	}
	return nil
}

// envelopeMissing is the answer to a modern request without a usable envelope (META-03, HTTP-L-27).
func envelopeMissing(m *framing.Message) *bridge.Error {
	return envelopeRefusal(m, mcp.MetaProtocolVersion, "a string")
}

func envelopeRefusal(m *framing.Message, key, want string) *bridge.Error {
	return refuse(m, mcp.CodeInvalidParams, bridge.ReasonEnvelope, "cannot accept request: params._meta."+key+" must be "+want+".")
}

// versionUnsupported is -32022 with the versions discovery lists (HTTP-M-21, VER-01, DSC-07).
func versionUnsupported(m *framing.Message, requested string) *bridge.Error {
	supported := mcp.ModernVersions()
	e := refuse(m, mcp.CodeUnsupportedProtocolVersion, bridge.ReasonVersion, "cannot serve the requested protocol version. Supported: "+listVersions(supported)+".")
	e.Data = append(e.Data, `"supported":[`...)
	for i, v := range supported {
		if i > 0 {
			e.Data = append(e.Data, ',')
		}
		e.Data = framing.AppendString(e.Data, string(v))
	}
	e.Data = framing.AppendString(append(e.Data, `],"requested":`...), requested)
	return e
}
