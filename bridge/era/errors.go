package era

import (
	"strconv"
	"strings"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// ProtocolError says why what the back sent is not a valid answer. The front gets -32603 in its place.
type ProtocolError struct {
	Method string // of the request that was answered
	Reason string
}

func (e *ProtocolError) Error() string {
	return "cannot accept result of " + e.Method + ": " + e.Reason
}

// ErrorMap rewrites an error of the back for the front (translation 11.1 to 11.3).
type ErrorMap struct {
	From, To mcp.Era
	Method   string
	URI      []byte // raw JSON string of params.uri, nil if the request had none
	ID       []byte // the client's own id, raw; nil leaves the back's

	ClientVersion, BackVersion mcp.Version // to legacy: decide whether the client knows -32042

	// Capabilities are what the client itself declared, raw, nil for nothing. They decide whether -32021 is the client's
	// affair or the bridge's (META-14), and what becomes of -32042.
	Capabilities []byte
}

// Edits returns the edits, and the HTTP status a modern front uses while the response is not committed (translation
// 11.4): 200, 404 for -32601, 400 for -32021; always 200 towards legacy fronts.
//
// The code -32042 towards a modern client that can be asked becomes -32603 with the error under data.original; whoever
// turns it into input_required does so before.
func (e ErrorMap) Edits(m *framing.Message) (edits []framing.Edit, status int) {
	edits = make([]framing.Edit, 0, 4)
	switch {
	case e.ID != nil && m.ID.OK():
		edits = append(edits, framing.Edit{At: m.ID, New: e.ID})
	case e.ID != nil: // the back answered null or nothing; only one request can be meant
		edits = framing.EditObject(edits, m.Raw, whole(m.Raw), m.TopMembers(), framing.Op{Name: "id", Value: e.ID})
	}
	o := newErrorView(m)
	if o.plain {
		n := e.translate(&o)
		if ops := n.ops(); len(ops) > 0 {
			edits = framing.EditObject(edits, m.Raw, m.Error, o.members, ops...)
		}
		if n.code != 0 {
			o.code = n.code
		}
	}
	return edits, e.status(o.code)
}

func (e ErrorMap) status(code int) int {
	switch {
	case e.To != mcp.Modern:
		return 200
	case code == mcp.CodeMethodNotFound:
		return 404
	case code == mcp.CodeMissingRequiredCapability:
		return 400
	}
	return 200
}

// errorView is an error object taken apart.
type errorView struct {
	members []framing.Member
	code    int
	plain   bool // code is an integer that fits
	rawCode []byte
	data    []byte // nil if absent
	message string
}

func newErrorView(m *framing.Message) (o errorView) {
	o.members = framing.Members(m.Raw, m.Error)
	get := func(name string) []byte {
		v, _ := framing.Lookup(m.Raw, o.members, name)
		return m.Bytes(v)
	}
	o.rawCode, o.data = get("code"), get("data")
	o.code, o.plain = integer(o.rawCode)
	o.message, _ = framing.String(get("message"))
	return o
}

// newError is what changes in an error object: zero values stay.
type newError struct {
	code    int
	message string
	data    []byte
}

func (n newError) ops() (ops []framing.Op) {
	if n.code != 0 {
		ops = append(ops, framing.Op{Name: "code", Value: strconv.AppendInt(nil, int64(n.code), 10)})
	}
	if n.message != "" {
		ops = append(ops, framing.Op{Name: "message", Value: quote(n.message)})
	}
	if n.data != nil {
		ops = append(ops, framing.Op{Name: "data", Value: n.data})
	}
	return ops
}

func (e ErrorMap) translate(o *errorView) newError {
	switch {
	case e.From == mcp.Legacy && e.To == mcp.Modern:
		return e.legacyToModern(o)
	case e.From == mcp.Modern && e.To == mcp.Modern:
		return e.modernToModern(o)
	case e.From == mcp.Modern:
		return e.modernToLegacy(o)
	}
	return e.toOlder(o)
}

// legacyToModern is translation 11.1: no code of the reserved range may reach a modern client by accident (FRM-18).
func (e ErrorMap) legacyToModern(o *errorView) newError {
	switch {
	case o.code == mcp.CodeResourceNotFound && e.Method == mcp.ResourcesRead:
		return newError{code: mcp.CodeInvalidParams, data: e.withURI(o)}
	case o.code == mcp.CodeResourceNotFound:
		return newError{code: mcp.CodeInvalidParams, data: o.original()}
	case o.code == mcp.CodeURLElicitationRequired && mcp.TraitsOf(e.Method).MayAsk && len(o.urls()) > 0 &&
		!HasCapability(e.Capabilities, "elicitation", "url"):
		return newError{
			code: mcp.CodeMissingRequiredCapability,
			data: []byte(`{"requiredCapabilities":{"elicitation":{"url":{}}}}`),
		}
	case mcp.ReservedCode(o.code):
		return o.wrapped("")
	}
	return newError{}
}

// modernToLegacy is translation 11.2.
func (e ErrorMap) modernToLegacy(o *errorView) newError {
	switch o.code {
	case mcp.CodeInvalidParams:
		if e.Method == mcp.ResourcesRead && e.URI != nil && sameString(member(o.data, "uri"), e.URI) {
			return newError{code: mcp.CodeResourceNotFound}
		}
	case mcp.CodeHeaderMismatch:
		return o.wrapped("")
	case mcp.CodeMissingRequiredCapability:
		return o.wrapped(o.required())
	case mcp.CodeUnsupportedProtocolVersion:
		return o.wrapped(o.versions())
	}
	return e.toOlder(o)
}

// modernToModern is translation 11.3: codes that speak about the bridge's own hop are not the client's affair.
func (e ErrorMap) modernToModern(o *errorView) newError {
	switch o.code {
	case mcp.CodeHeaderMismatch:
		return o.wrapped("")
	case mcp.CodeUnsupportedProtocolVersion:
		return o.wrapped(o.versions())
	case mcp.CodeMissingRequiredCapability:
		required := member(o.data, "requiredCapabilities")
		if framing.IsObject(required) && !isEmpty(required) && covers(e.Capabilities, required) {
			return o.wrapped(" (the bridge cannot relay a capability the server requires)")
		}
	}
	return newError{}
}

// toOlder hides -32042 from legacy clients that do not know it and names the URLs, so that the user can open them
// (CLF-05). On a link whose ends negotiated the same revision it cannot come.
func (e ErrorMap) toOlder(o *errorView) newError {
	if o.code != mcp.CodeURLElicitationRequired || e.To != mcp.Legacy || e.ClientVersion.URLElicitation() {
		return newError{}
	}
	if e.From == mcp.Legacy && e.ClientVersion == e.BackVersion {
		return newError{}
	}
	suffix := ""
	if urls := o.urls(); len(urls) > 0 {
		suffix = ": " + strings.Join(urls, ", ")
	}
	return o.wrapped(suffix)
}

// withURI makes sure that data names the resource (FEA-01). Data that cannot take a member is kept beside it.
func (e ErrorMap) withURI(o *errorView) []byte {
	switch {
	case e.URI == nil:
		return nil
	case o.data == nil || framing.IsNull(o.data):
		return append(append([]byte(`{"uri":`), e.URI...), '}')
	case !framing.IsObject(o.data):
		return change(o.original(), framing.Op{Name: "uri", Value: e.URI})
	case member(o.data, "uri") != nil:
		return nil
	}
	return change(o.data, framing.Op{Name: "uri", Value: e.URI})
}

// original is {"original":{"code":...,"data":...}}: what the back said, for readers that know it.
func (o *errorView) original() []byte {
	var inner, outer object
	inner.add("code", o.rawCode)
	inner.addSome("data", o.data)
	outer.add("original", inner.bytes())
	return outer.bytes()
}

// wrapped is -32603 around the original error; suffix is added to the message.
func (o *errorView) wrapped(suffix string) newError {
	n := newError{code: mcp.CodeInternal, data: o.original()}
	if suffix != "" {
		n.message = o.message + suffix
	}
	return n
}

// urls lists the URLs of a -32042, none if its data is malformed.
func (o *errorView) urls() (urls []string) {
	list := member(o.data, "elicitations")
	if !framing.IsArray(list) {
		return nil
	}
	for _, e := range framing.Elements(list, whole(list)) {
		if u, ok := framing.String(member(list[e.Start:e.End], "url")); ok && u != "" {
			urls = append(urls, u)
		}
	}
	return urls
}

// required names the capabilities a -32021 asks for.
func (o *errorView) required() string {
	caps := member(o.data, "requiredCapabilities")
	var names []string
	if framing.IsObject(caps) {
		for _, m := range framing.Members(caps, whole(caps)) {
			names = append(names, string(nameOf(caps, m)))
		}
	}
	if len(names) == 0 {
		return " (the server requires a capability that was not declared)"
	}
	return " (the server requires a capability that was not declared: " + strings.Join(names, ", ") + ")"
}

// versions names both lists of a -32022 (translation 11.2).
func (o *errorView) versions() string {
	theirs, _ := stringList(member(o.data, "supported"))
	var ours []string
	for _, v := range mcp.ModernVersions() {
		ours = append(ours, string(v))
	}
	return " (server supports: " + strings.Join(theirs, ", ") + "; bridge speaks: " + strings.Join(ours, ", ") + ")"
}
