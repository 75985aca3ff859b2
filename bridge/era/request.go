package era

import (
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Envelope is what a modern request carries in _meta (META-01, META-02). Values are raw JSON; nil leaves a member out,
// save the capabilities of a request that comes from a legacy client: there nil declares none, as the member must be present.
type Envelope struct {
	Version      mcp.Version
	ClientInfo   []byte
	Capabilities []byte
	LogLevel     string // "" asks for no log messages
}

// Request rewrites a client's request for the back (translation 3.1). From and To are the eras of front and back.
type Request struct {
	From, To mcp.Era
	ID       []byte    // raw id towards the back, nil leaves the client's
	Token    []byte    // raw progress token: replaces the client's; nil removes it. Never added (PRG-10)
	Envelope *Envelope // To modern: injected, or re-made over the client's own. nil leaves _meta's envelope as it is
	// Set are members of params to set besides, such as the requestState of a retry or the task of a driven call. They
	// win over what is stripped. The name _meta is not allowed.
	Set []framing.Op
}

// Edits returns the edits that make m fit for the back.
//
//   - modern to legacy strips the envelope, subscriptionId, related-task, and of methods the bridge knows the params
//     inputResponses, requestState and task; a _meta that is left empty goes.
//   - legacy to modern injects the envelope and strips the same, as a legacy client cannot mean them.
//   - legacy to legacy changes id and token only; modern to modern re-makes the envelope too, keeping the client's own
//     bytes where the envelope given has none.
func (r Request) Edits(m *framing.Message) []framing.Edit {
	return r.AppendEdits(make([]framing.Edit, 0, 8), m)
}

// AppendEdits is Edits into a slice of the caller's.
func (r Request) AppendEdits(dst []framing.Edit, m *framing.Message) []framing.Edit {
	if !m.Params.OK() {
		return r.withoutParams(dst, m)
	}
	if r.ID != nil && m.ID.OK() {
		dst = append(dst, framing.Edit{At: m.ID, New: r.ID})
	}
	if !framing.IsObject(m.Bytes(m.Params)) {
		return dst // an array: nothing of ours can be in it
	}
	var paramBuf, metaBuf [8]framing.Op
	params := r.paramOps(paramBuf[:0], m)
	if m.Meta.OK() {
		meta, kept := r.metaOps(metaBuf[:0], m)
		switch {
		case kept == 0 && r.From == mcp.Modern && r.To == mcp.Legacy:
			params = append(params, framing.Op{Name: "_meta"})
		case len(meta) > 0:
			dst = framing.EditObject(dst, m.Raw, m.Meta, m.MetaMembers(), meta...)
		}
	} else if r.To == mcp.Modern && r.Envelope != nil {
		params = append(params, framing.Op{Name: "_meta", Value: r.Envelope.object()})
	}
	if len(params) == 0 {
		return dst
	}
	return framing.EditObject(dst, m.Raw, m.Params, m.ParamMembers(), params...)
}

// withoutParams handles the request that has none: all changes are at the top level.
func (r Request) withoutParams(dst []framing.Edit, m *framing.Message) []framing.Edit {
	var ops []framing.Op
	if r.ID != nil && m.ID.OK() {
		ops = append(ops, framing.Op{Name: "id", Value: r.ID})
	}
	var params object
	for _, op := range r.Set {
		params.addSome(op.Name, op.Value)
	}
	if r.To == mcp.Modern && r.Envelope != nil {
		params.add("_meta", r.Envelope.object())
	}
	if !params.empty() {
		ops = append(ops, framing.Op{Name: "params", Value: params.bytes()})
	}
	return framing.EditObject(dst, m.Raw, whole(m.Raw), m.TopMembers(), ops...)
}

// paramOps strips what the other era would misread, and sets what the caller wants set.
func (r Request) paramOps(ops []framing.Op, m *framing.Message) []framing.Op {
	if r.From != r.To {
		for _, p := range m.ParamMembers() {
			var name string
			switch string(nameOf(m.Raw, p)) {
			case "task":
				name = "task"
			case "inputResponses":
				name = "inputResponses"
			case "requestState":
				name = "requestState"
			default:
				continue
			}
			if !r.sets(name) && known(m) {
				ops = append(ops, framing.Op{Name: name})
			}
		}
	}
	return append(ops, r.Set...)
}

func (r Request) sets(name string) bool {
	for _, op := range r.Set {
		if op.Name == name {
			return true
		}
	}
	return false
}

// known tells the methods of the two specifications from vendor methods, whose params are nobody else's business
// (translation 17.6).
func known(m *framing.Message) bool { return mcp.TraitsOf(m.MethodName()) != mcp.Traits{} }

// metaOps returns the changes of _meta, and how many of the client's members are left.
func (r Request) metaOps(ops []framing.Op, m *framing.Message) (_ []framing.Op, kept int) {
	members := m.MetaMembers()
	kept = len(members)
	cross := r.From != r.To
	remake := r.To == mcp.Modern && r.Envelope != nil
	for _, p := range members {
		name := reserved(nameOf(m.Raw, p))
		op := framing.Op{Name: name}
		switch {
		case name == mcp.MetaProgressToken:
			op.Value = r.Token
		case name == "" || !cross || remake && isEnvelope(name):
			continue // nobody's, of the same era, or dealt with below
		}
		if op.Value == nil {
			kept--
		}
		ops = append(ops, op)
	}
	if remake {
		ops = r.Envelope.ops(ops, r.From)
	}
	return ops, kept
}

// reserved returns the name of a key of _meta that may have to change, "" for any other. It returns constants, so that
// comparing costs no allocation.
func reserved(key []byte) string {
	switch string(key) {
	case mcp.MetaProgressToken:
		return mcp.MetaProgressToken
	case mcp.MetaProtocolVersion:
		return mcp.MetaProtocolVersion
	case mcp.MetaClientInfo:
		return mcp.MetaClientInfo
	case mcp.MetaClientCapabilities:
		return mcp.MetaClientCapabilities
	case mcp.MetaLogLevel:
		return mcp.MetaLogLevel
	case mcp.MetaSubscriptionID:
		return mcp.MetaSubscriptionID
	case mcp.MetaRelatedTask:
		return mcp.MetaRelatedTask
	}
	return ""
}

func isEnvelope(name string) bool {
	switch name {
	case mcp.MetaProtocolVersion, mcp.MetaClientInfo, mcp.MetaClientCapabilities, mcp.MetaLogLevel:
		return true
	}
	return false
}

// ops sets the envelope in a _meta that exists. What a legacy client wrote under these names never survives (META-14);
// a modern client's own value stays where the envelope has none.
func (e *Envelope) ops(ops []framing.Op, from mcp.Era) []framing.Op {
	legacy := from != mcp.Modern
	put := func(name string, v []byte) {
		if v != nil || legacy {
			ops = append(ops, framing.Op{Name: name, Value: v})
		}
	}
	put(mcp.MetaProtocolVersion, e.version())
	put(mcp.MetaClientInfo, e.ClientInfo)
	if e.Capabilities == nil && legacy {
		put(mcp.MetaClientCapabilities, emptyObject)
	} else {
		put(mcp.MetaClientCapabilities, e.Capabilities)
	}
	put(mcp.MetaLogLevel, e.level())
	return ops
}

// object is the envelope as a _meta of its own.
func (e *Envelope) object() []byte {
	o := object{make([]byte, 0, 192+len(e.ClientInfo)+len(e.Capabilities))}
	o.addSome(mcp.MetaProtocolVersion, e.version())
	o.addSome(mcp.MetaClientInfo, e.ClientInfo)
	if e.Capabilities == nil {
		o.add(mcp.MetaClientCapabilities, emptyObject)
	} else {
		o.add(mcp.MetaClientCapabilities, e.Capabilities)
	}
	o.addSome(mcp.MetaLogLevel, e.level())
	return o.bytes()
}

func (e *Envelope) version() []byte {
	if e.Version == "" {
		return nil
	}
	return quote(string(e.Version))
}

func (e *Envelope) level() []byte {
	if e.LogLevel == "" {
		return nil
	}
	return quote(e.LogLevel)
}
