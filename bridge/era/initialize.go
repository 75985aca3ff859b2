package era

import (
	"strconv"
	"strings"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Hello is an initialize result (LEG-02). Raw values are nil when absent and point into the message.
type Hello struct {
	Version      mcp.Version
	Capabilities []byte // object
	ServerInfo   []byte // object
	Instructions []byte // string
	Meta         []byte // object
}

// ParseInitialize reads a legacy server's answer to the handshake. A version that is not one of the four legacy ones is a
// *ProtocolError that names it (VER-42, VER-43).
func ParseInitialize(m *framing.Message) (Hello, error) {
	invalid := func(reason string) (Hello, error) {
		return Hello{}, &ProtocolError{Method: mcp.Initialize, Reason: reason}
	}
	if !framing.IsObject(m.Bytes(m.Result)) {
		return invalid("the result is no object")
	}
	get := func(name string) []byte { return m.Bytes(m.ResultMember(name)) }
	version, ok := framing.String(get("protocolVersion"))
	if !ok {
		return invalid("it has no protocolVersion")
	}
	switch mcp.Version(version).Era() {
	case mcp.Modern:
		return invalid("modern version in a handshake: " + version)
	case mcp.EraUnknown:
		return invalid("version not supported: " + strconv.QuoteToASCII(version[:min(len(version), 64)]))
	}
	return Hello{
		Version:      mcp.Version(version),
		Capabilities: objectOr(get("capabilities"), nil),
		ServerInfo:   objectOr(get("serverInfo"), nil),
		Instructions: stringOr(get("instructions")),
		Meta:         objectOr(m.Bytes(m.Meta), nil),
	}, nil
}

// InitializeResult is the stored handshake of a shared link as the answer to another legacy client at version v
// (translation 2.3): everything passes but the tasks capability, which only an exclusive link can carry (15.5).
func (h Hello) InitializeResult(v mcp.Version, fallbackName string) []byte {
	caps, info := h.Capabilities, h.ServerInfo
	if caps != nil {
		caps = without(caps, "tasks")
	}
	if info == nil {
		info = fallbackInfo(fallbackName)
	}
	return initializeResult(v, caps, info, h.Instructions, h.Meta)
}

func initializeResult(v mcp.Version, caps, info, instructions, meta []byte) []byte {
	if caps == nil {
		caps = emptyObject
	}
	out := object{make([]byte, 0, 128+len(caps)+len(info)+len(instructions)+len(meta))}
	out.add("protocolVersion", quote(string(v)))
	out.add("capabilities", caps)
	out.add("serverInfo", info)
	out.addSome("instructions", instructions)
	out.addSome("_meta", meta)
	return out.bytes()
}

func fallbackInfo(name string) []byte {
	var o object
	o.add("name", quote(name))
	o.add("version", []byte(`"unknown"`))
	return o.bytes()
}

// InitializeParams is the params object of the bridge's own handshake with a legacy server (LEG-01). capabilities are in
// legacy form; nil declares none. clientInfo is required there: nil becomes a nameless client.
func InitializeParams(v mcp.Version, capabilities, clientInfo []byte) []byte {
	if capabilities == nil {
		capabilities = emptyObject
	}
	if clientInfo == nil {
		clientInfo = fallbackInfo("unknown")
	}
	var out object
	out.add("protocolVersion", quote(string(v)))
	out.add("capabilities", capabilities)
	out.add("clientInfo", clientInfo)
	return out.bytes()
}

// Opening is what a legacy client says in its initialize request. Raw values are nil when absent.
type Opening struct {
	Requested    string // any string; mcp.NegotiateLegacy decides
	Capabilities []byte // object
	ClientInfo   []byte // object
}

// ParseOpening reads an initialize request. A missing or odd protocolVersion is an error to be answered -32602 (LEG-01);
// capabilities and clientInfo of another type than object count as absent.
func ParseOpening(m *framing.Message) (Opening, error) {
	requested, ok := framing.String(m.Bytes(m.Param("protocolVersion")))
	if !ok {
		return Opening{}, &ProtocolError{Method: mcp.Initialize, Reason: "protocolVersion is no string"}
	}
	return Opening{
		Requested:    requested,
		Capabilities: objectOr(m.Bytes(m.Param("capabilities")), nil),
		ClientInfo:   objectOr(m.Bytes(m.Param("clientInfo")), nil),
	}, nil
}

// listed names versions a peer sent, for an error text; it is cut when a peer sends very many.
func listed(versions []string) string {
	const most = 8
	rest := ""
	if len(versions) > most {
		versions, rest = versions[:most], ", ..."
	}
	quoted := make([]string, len(versions))
	for i, v := range versions {
		quoted[i] = strconv.QuoteToASCII(v[:min(len(v), 64)])
	}
	return " (the server lists " + strings.Join(quoted, ", ") + rest + ")"
}
