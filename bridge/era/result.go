package era

import (
	"strconv"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Result rewrites a result of the back for the front (translation 3.2, 13.3).
type Result struct {
	From, To mcp.Era
	Method   string
	ID       []byte // the client's own id, raw; nil leaves the back's

	ServerInfo    []byte      // legacy to modern: raw object for _meta serverInfo (META-10), nil for none
	ClientVersion mcp.Version // to legacy: what the client negotiated; "" leaves content alone
	BackVersion   mcp.Version // "" counts as newer than any client
	Exclusive     bool        // a 1:1 link whose ends negotiated with each other: nothing of 13.3 applies

	TTLMs  int    // configured caching hint in milliseconds, for results that come without a usable one
	Scope  string // "public", or private for anything else
	MayAsk bool   // the front can take input_required

	Tools ToolRewriter // may be nil
}

// ToolRewriter returns edits of one entry of tools/list; raw is the whole message and tool the entry's span. One edit
// that covers the entry and has nothing New takes the tool off the list (XMH-11). Other edits must leave the members
// execution and outputSchema, and the commas around members of the entry itself, alone.
type ToolRewriter func(raw []byte, tool framing.Span) []framing.Edit

// Edits returns the edits that make the result fit for the front, or a *ProtocolError when it is none: no object, an
// unknown resultType (FRM-22), input_required where it cannot be (MRT-01), or one that asks nothing (MRT-04).
func (r Result) Edits(m *framing.Message) ([]framing.Edit, error) {
	return r.AppendEdits(make([]framing.Edit, 0, 6), m)
}

// AppendEdits is Edits into a slice of the caller's.
func (r Result) AppendEdits(dst []framing.Edit, m *framing.Message) ([]framing.Edit, error) {
	if r.ID != nil && m.ID.OK() {
		dst = append(dst, framing.Edit{At: m.ID, New: r.ID})
	}
	if r.From == mcp.Legacy && r.To == mcp.Legacy {
		return r.older(dst, m), nil
	}
	if !framing.IsObject(m.Bytes(m.Result)) {
		return nil, r.invalid("the result is no object")
	}
	f := fieldsOf(m)
	interim, err := r.kind(m, &f)
	if err != nil {
		return nil, err
	}
	if r.To == mcp.Modern {
		return r.modern(dst, m, &f, interim), nil
	}
	return r.legacy(dst, m, &f), nil
}

func (r Result) invalid(reason string) *ProtocolError {
	return &ProtocolError{Method: r.Method, Reason: reason}
}

// fields are the members of a result this package may touch.
type fields struct {
	resultType, ttlMs, cacheScope, meta  framing.Span
	inputRequests, requestState          framing.Span
	content, messages, structured, tools framing.Span
}

func fieldsOf(m *framing.Message) (f fields) {
	for _, p := range m.ResultMembers() {
		switch string(nameOf(m.Raw, p)) {
		case "resultType":
			f.resultType = p.Value
		case "ttlMs":
			f.ttlMs = p.Value
		case "cacheScope":
			f.cacheScope = p.Value
		case "_meta":
			f.meta = p.Value
		case "inputRequests":
			f.inputRequests = p.Value
		case "requestState":
			f.requestState = p.Value
		case "content":
			f.content = p.Value
		case "messages":
			f.messages = p.Value
		case "structuredContent":
			f.structured = p.Value
		case "tools":
			f.tools = p.Value
		}
	}
	return f
}

// kind checks the resultType of a modern back. interim is true for a result that is not the request's outcome.
func (r Result) kind(m *framing.Message, f *fields) (interim bool, err error) {
	raw := m.Bytes(f.resultType)
	if r.From == mcp.Legacy || raw == nil || string(raw) == string(complete) {
		return false, nil // a legacy server's own resultType means nothing; a missing one means complete (FRM-22)
	}
	kind, ok := framing.String(raw)
	switch {
	case !ok:
		return false, r.invalid("resultType is no string")
	case kind == mcp.ResultComplete:
		return false, nil
	case kind == mcp.ResultInputRequired:
		return true, r.checkAsk(m, f)
	case kind == mcp.ResultTask && r.To == mcp.Modern && r.Method == mcp.ToolsCall: // TSK-M-01
		return true, nil
	case kind == mcp.ResultTask:
		return false, r.invalid("a task was not asked for")
	}
	return false, r.invalid("unknown resultType " + strconv.QuoteToASCII(kind[:min(len(kind), 64)]))
}

func (r Result) checkAsk(m *framing.Message, f *fields) error {
	requests, state := m.Bytes(f.inputRequests), m.Bytes(f.requestState)
	if framing.IsNull(requests) {
		requests = nil
	}
	switch {
	case r.To != mcp.Modern || !r.MayAsk:
		return r.invalid("input_required where nobody can be asked")
	case !mcp.TraitsOf(r.Method).MayAsk:
		return r.invalid("input_required to a method that cannot ask")
	case requests == nil && state == nil:
		return r.invalid("input_required with neither inputRequests nor requestState")
	case requests != nil && !framing.IsObject(requests):
		return r.invalid("inputRequests is no object")
	case state != nil && !framing.IsString(state):
		return r.invalid("requestState is no string")
	}
	return nil
}

// modern completes a result for a modern front.
func (r Result) modern(dst []framing.Edit, m *framing.Message, f *fields, interim bool) []framing.Edit {
	var buf [4]framing.Op
	ops := buf[:0]
	if !f.resultType.OK() || r.From == mcp.Legacy && string(m.Bytes(f.resultType)) != string(complete) {
		ops = append(ops, framing.Op{Name: "resultType", Value: complete})
	}
	if !interim && mcp.TraitsOf(r.Method).Cacheable { // never on interim results (MRT-18)
		ops = hintOps(ops, m.Bytes(f.ttlMs), m.Bytes(f.cacheScope), r.TTLMs, r.Scope)
	}
	if r.From == mcp.Legacy {
		ops, dst = r.identify(ops, dst, m)
	}
	if len(ops) > 0 {
		dst = framing.EditObject(dst, m.Raw, m.Result, m.ResultMembers(), ops...)
	}
	if f.tools.OK() && (r.From == mcp.Legacy || r.Tools != nil) {
		dst = r.toolEdits(dst, m, f.tools)
	}
	return dst
}

// identify writes the server's identity into _meta (META-10) and takes the legacy task key out.
func (r Result) identify(ops []framing.Op, dst []framing.Edit, m *framing.Message) ([]framing.Op, []framing.Edit) {
	if !m.Meta.OK() {
		if r.ServerInfo != nil {
			o := object{make([]byte, 0, 48+len(r.ServerInfo))}
			o.add(mcp.MetaServerInfo, r.ServerInfo)
			ops = append(ops, framing.Op{Name: "_meta", Value: o.bytes()})
		}
		return ops, dst
	}
	var buf [2]framing.Op
	meta, left := buf[:0], len(m.MetaMembers())
	if m.MetaMember(mcp.MetaRelatedTask).OK() {
		meta = append(meta, framing.Op{Name: mcp.MetaRelatedTask})
		left--
	}
	switch {
	case r.ServerInfo != nil:
		meta = append(meta, framing.Op{Name: mcp.MetaServerInfo, Value: r.ServerInfo})
	case left == 0 && len(meta) > 0:
		return append(ops, framing.Op{Name: "_meta"}), dst
	}
	if len(meta) == 0 {
		return ops, dst
	}
	return ops, framing.EditObject(dst, m.Raw, m.Meta, m.MetaMembers(), meta...)
}

// legacy takes out of a modern result what the older era does not have (LEG-10), and what an older client would reject.
func (r Result) legacy(dst []framing.Edit, m *framing.Message, f *fields) []framing.Edit {
	var buf [6]framing.Op
	ops := buf[:0]
	if f.resultType.OK() {
		ops = append(ops, framing.Op{Name: "resultType"})
	}
	if (f.ttlMs.OK() || f.cacheScope.OK()) && mcp.TraitsOf(r.Method).Cacheable {
		ops = append(ops, framing.Op{Name: "ttlMs"}, framing.Op{Name: "cacheScope"})
	}
	if m.Meta.OK() && m.MetaMember(mcp.MetaServerInfo).OK() {
		if len(m.MetaMembers()) == 1 {
			ops = append(ops, framing.Op{Name: "_meta"})
		} else {
			dst = framing.EditObject(dst, m.Raw, m.Meta, m.MetaMembers(), framing.Op{Name: mcp.MetaServerInfo})
		}
	}
	if r.rejectsStructured(m, f) {
		ops, dst = flatten(ops, dst, m, f)
	}
	if len(ops) > 0 {
		dst = framing.EditObject(dst, m.Raw, m.Result, m.ResultMembers(), ops...)
	}
	dst = r.blockEdits(dst, m, f)
	if f.tools.OK() && (r.Tools != nil || r.checksSchemas()) {
		dst = r.toolEdits(dst, m, f.tools)
	}
	return dst
}

// older is legacy to legacy: what a client of an earlier revision would reject, and the tools the caller rewrites.
func (r Result) older(dst []framing.Edit, m *framing.Message) []framing.Edit {
	blocks := r.downgrades()
	if !blocks && (r.Tools == nil || r.Method != mcp.ToolsList) {
		return dst
	}
	f := fieldsOf(m)
	if blocks {
		dst = r.blockEdits(dst, m, &f)
	}
	if f.tools.OK() && r.Tools != nil {
		dst = r.toolEdits(dst, m, f.tools)
	}
	return dst
}

// hintOps sets the caching hints that are missing or make no sense (CCH-01, CCH-03).
func hintOps(ops []framing.Op, ttl, scope []byte, ttlMs int, scopeName string) []framing.Op {
	if n, ok := integer(ttl); !ok || n < 0 || ttl[0] == '-' {
		ops = append(ops, framing.Op{Name: "ttlMs", Value: strconv.AppendInt(nil, int64(max(ttlMs, 0)), 10)})
	}
	if s := string(scope); s != `"public"` && s != `"private"` {
		ops = append(ops, framing.Op{Name: "cacheScope", Value: quote(scopeOf(scopeName))})
	}
	return ops
}

// scopeOf reads anything but public as private (CCH-02).
func scopeOf(name string) string {
	if name == "public" {
		return name
	}
	return "private"
}
