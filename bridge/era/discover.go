package era

import (
	"slices"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Discovery is a server/discover result (DSC-02). Raw values are nil when absent and point into the message.
type Discovery struct {
	SupportedVersions []string
	Capabilities      []byte // object
	ServerInfo        []byte // object, from _meta or, as in early drafts, from the body (CON-05)
	Instructions      []byte // string
	Meta              []byte // object
	TTLMs             int    // milliseconds, 0 when missing or senseless (CCH-03)
	Scope             string // "public" or "private"
}

// ParseDiscover reads a discovery result. One that lacks a non-empty string array supportedVersions, or is not complete,
// is none (VER-13): *ProtocolError.
func ParseDiscover(m *framing.Message) (Discovery, error) {
	invalid := func(reason string) (Discovery, error) {
		return Discovery{}, &ProtocolError{Method: mcp.Discover, Reason: reason}
	}
	if !framing.IsObject(m.Bytes(m.Result)) {
		return invalid("the result is no object")
	}
	get := func(name string) []byte { return m.Bytes(m.ResultMember(name)) }
	if t := get("resultType"); t != nil && !sameString(t, complete) {
		return invalid("resultType is not complete")
	}
	list, ok := stringList(get("supportedVersions"))
	if !ok || len(list) == 0 {
		return invalid("it has no list of supportedVersions")
	}
	d := Discovery{
		SupportedVersions: list,
		Capabilities:      objectOr(get("capabilities"), nil),
		ServerInfo:        objectOr(m.Bytes(m.MetaMember(mcp.MetaServerInfo)), objectOr(get("serverInfo"), nil)),
		Instructions:      stringOr(get("instructions")),
		Meta:              objectOr(m.Bytes(m.Meta), nil),
		Scope:             "private",
	}
	if n, ok := integer(get("ttlMs")); ok && n > 0 {
		d.TTLMs = n
	}
	if s, _ := framing.String(get("cacheScope")); s == "public" {
		d.Scope = s
	}
	return d, nil
}

// InitializeResult is the result object of the handshake with a legacy client at version v (translation 2.1).
// fallbackName names a server that does not say who it is: the legacy era requires a name.
func (d Discovery) InitializeResult(v mcp.Version, fallbackName string) []byte {
	info := d.ServerInfo
	if info == nil {
		info = fallbackInfo(fallbackName)
	}
	var meta []byte
	if d.Meta != nil {
		if meta = without(d.Meta, mcp.MetaServerInfo); isEmpty(meta) {
			meta = nil
		}
	}
	return initializeResult(v, ServerCapabilitiesToLegacy(d.Capabilities), info, d.Instructions, meta)
}

// DiscoverResult is the result object of server/discover in front of a legacy server (translation 2.2, DSC-02, DSC-03).
func (h Hello) DiscoverResult(o DiscoverOptions) []byte {
	out := object{make([]byte, 0, 256+len(h.Capabilities)+len(h.ServerInfo)+len(h.Instructions)+len(h.Meta))}
	out.add("resultType", complete)
	out.add("supportedVersions", modernList(nil))
	out.add("capabilities", ServerCapabilitiesToModern(h.Capabilities, o))
	out.addSome("instructions", h.Instructions)
	for _, op := range hintOps(nil, nil, nil, o.TTLMs, o.Scope) {
		out.add(op.Name, op.Value)
	}
	meta := h.Meta
	if meta == nil {
		meta = emptyObject
	}
	ops := []framing.Op{{Name: mcp.MetaRelatedTask}}
	if h.ServerInfo != nil {
		ops = append(ops, framing.Op{Name: mcp.MetaServerInfo, Value: h.ServerInfo})
	}
	if meta = change(meta, ops...); !isEmpty(meta) {
		out.add("_meta", meta)
	}
	return out.bytes()
}

// RelayDiscover passes a modern server's discovery on to a modern client of this raw id (translation 2.4): the versions
// become those the bridge speaks too, resultType, caching hints and a serverInfo in _meta are ensured, the rest stays.
// Without a mutual version, or if the result is none, it fails with *ProtocolError.
func RelayDiscover(m *framing.Message, id []byte) ([]framing.Edit, error) {
	d, err := ParseDiscover(m)
	if err != nil {
		return nil, err
	}
	versions := modernList(d.SupportedVersions)
	if len(versions) == len("[]") {
		return nil, &ProtocolError{Method: mcp.Discover, Reason: "no mutual version" + listed(d.SupportedVersions)}
	}
	edits := make([]framing.Edit, 0, 6)
	if id != nil && m.ID.OK() {
		edits = append(edits, framing.Edit{At: m.ID, New: id})
	}
	get := func(name string) []byte { return m.Bytes(m.ResultMember(name)) }
	ops := hintOps(nil, get("ttlMs"), get("cacheScope"), 0, "")
	if get("resultType") == nil {
		ops = append(ops, framing.Op{Name: "resultType", Value: complete})
	}
	if string(get("supportedVersions")) != string(versions) {
		ops = append(ops, framing.Op{Name: "supportedVersions", Value: versions})
	}
	if get("serverInfo") != nil {
		ops, edits = moveServerInfo(ops, edits, m, d.ServerInfo)
	}
	return framing.EditObject(edits, m.Raw, m.Result, m.ResultMembers(), ops...), nil
}

// moveServerInfo puts the identity of early drafts where the revision has it (DSC-03, CON-05).
func moveServerInfo(ops []framing.Op, edits []framing.Edit, m *framing.Message, info []byte) ([]framing.Op, []framing.Edit) {
	ops = append(ops, framing.Op{Name: "serverInfo"})
	op := framing.Op{Name: mcp.MetaServerInfo, Value: info}
	switch {
	case info == nil || m.MetaMember(mcp.MetaServerInfo).OK():
		return ops, edits
	case m.Meta.OK():
		return ops, framing.EditObject(edits, m.Raw, m.Meta, m.MetaMembers(), op)
	}
	var meta object
	meta.add(op.Name, op.Value)
	return append(ops, framing.Op{Name: "_meta", Value: meta.bytes()}), edits
}

// modernList is the JSON array of the modern versions the bridge speaks (DSC-07), cut to those in only unless that is nil.
func modernList(only []string) []byte {
	b := []byte{'['}
	for _, v := range mcp.ModernVersions() {
		if only != nil && !slices.Contains(only, string(v)) {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = framing.AppendString(b, string(v))
	}
	return append(b, ']')
}
