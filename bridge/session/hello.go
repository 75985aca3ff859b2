package session

import (
	"bytes"
	"crypto/sha256"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Hello is what a client said in its initialize request, and what was agreed.
type Hello struct {
	Version      mcp.Version
	ClientInfo   []byte // raw
	Capabilities []byte // raw
	// Params is the params object of the request, raw. A session without is not opened again.
	Params []byte
	// Server is the digest of the server's capabilities, zero if they are not known.
	Server [8]byte
}

// Digest is what tells capabilities of servers apart.
func Digest(capabilities []byte) [8]byte {
	sum := sha256.Sum256(capabilities)
	return [8]byte(sum[:])
}

// own returns a copy that holds nothing of the request it came in.
func (h Hello) own() Hello {
	if h.Params == nil {
		h.ClientInfo, h.Capabilities = bytes.Clone(h.ClientInfo), bytes.Clone(h.Capabilities)
		return h
	}
	return helloOf(h.Version, h.Server, bytes.Clone(h.Params))
}

// helloOf reads what a handshake says from its params, whose bytes it keeps.
func helloOf(v mcp.Version, server [8]byte, params []byte) Hello {
	h := Hello{Version: v, Server: server, Params: params}
	if !framing.Valid(params) || !framing.IsObject(params) {
		return h
	}
	all := framing.Span{End: uint32(len(params))}
	members := framing.Members(params, all)
	h.ClientInfo, h.Capabilities = object(params, members, "clientInfo"), object(params, members, "capabilities")
	return h
}

// object returns the raw object of that name, nil if there is none.
func object(raw []byte, members []framing.Member, name string) []byte {
	v, _ := framing.Lookup(raw, members, name)
	if !v.OK() {
		return nil
	}
	if o := raw[v.Start:v.End:v.End]; framing.IsObject(o) {
		return o
	}
	return nil
}
