package era

import (
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Changes is a set of lists whose changes a listener wants to be told of.
type Changes uint8

// The lists.
const (
	ToolsChange Changes = 1 << iota
	PromptsChange
	ResourcesChange
)

var changes = [...]struct{ flag, capability, method string }{
	{"toolsListChanged", "tools", mcp.ToolsListChanged},
	{"promptsListChanged", "prompts", mcp.PromptsListChanged},
	{"resourcesListChanged", "resources", mcp.ResourcesListChanged},
}

// Has reports whether notifications of this method are wanted.
func (c Changes) Has(method string) bool {
	for i, k := range changes {
		if k.method == method {
			return c&(1<<i) != 0
		}
	}
	return false
}

// Beyond reports whether the set has a list whose changes a server with these raw capabilities does not tell.
func (c Changes) Beyond(caps []byte) bool { return c&^ChangesOf(caps) != 0 }

// ChangesOf returns the lists whose changes a server with these raw capabilities tells.
func ChangesOf(caps []byte) (c Changes) {
	for i, k := range changes {
		if HasCapability(caps, k.capability, "listChanged") {
			c |= 1 << i
		}
	}
	return c
}

// Listen is the filter of a subscriptions/listen (SUB-01).
type Listen struct {
	Changes Changes
	URIs    [][]byte // raw JSON strings, each once
}

// ReadListen reads the filter of a subscriptions/listen request, or gives a *ProtocolError that says what is wrong with it. Members
// it does not know are not honoured.
func ReadListen(m *framing.Message) (l Listen, err error) {
	bad := func(reason string) (Listen, error) {
		return Listen{}, &ProtocolError{Method: mcp.Listen, Reason: reason}
	}
	filter := m.Bytes(m.Param("notifications"))
	if !framing.IsObject(filter) {
		return bad("params.notifications must be an object")
	}
	for i, k := range changes {
		switch v := member(filter, k.flag); {
		case v == nil:
		case !framing.IsBool(v):
			return bad("params.notifications." + k.flag + " must be true or false")
		case v[0] == 't':
			l.Changes |= 1 << i
		}
	}
	list := member(filter, "resourceSubscriptions")
	if list == nil {
		return l, nil
	}
	if !framing.IsArray(list) {
		return bad("params.notifications.resourceSubscriptions must be an array")
	}
	seen := map[string]bool{}
	for _, e := range framing.Elements(list, whole(list)) {
		uri, ok := framing.String(list[e.Start:e.End])
		if !ok {
			return bad("params.notifications.resourceSubscriptions must hold strings only")
		}
		if !seen[uri] {
			seen[uri] = true
			l.URIs = append(l.URIs, own(list[e.Start:e.End]))
		}
	}
	return l, nil
}

// HasURI reports whether the filter names a resource. uri is a raw JSON string.
func (l Listen) HasURI(uri []byte) bool {
	for _, have := range l.URIs {
		if sameString(have, uri) {
			return true
		}
	}
	return false
}

// Honoured returns what of the filter a legacy server with these raw capabilities can be held to (SUB-04). subscribe tells
// whether the link lives long enough for subscriptions.
func (l Listen) Honoured(caps []byte, subscribe bool) Listen {
	l.Changes &= ChangesOf(caps)
	if !subscribe || !HasCapability(caps, "resources", "subscribe") {
		l.URIs = nil
	}
	return l
}

// Filter returns the raw notifications object that asks for it.
func (l Listen) Filter() []byte {
	var o object
	for i, k := range changes {
		if l.Changes&(1<<i) != 0 {
			o.add(k.flag, []byte("true"))
		}
	}
	if len(l.URIs) > 0 {
		var list []byte
		for _, uri := range l.URIs {
			list = append(append(list, ','), uri...)
		}
		o.add("resourceSubscriptions", listOf(list))
	}
	return o.bytes()
}

// Acknowledgement is the first notification of a listen whose request has this raw id (SUB-03).
func (l Listen) Acknowledgement(id []byte) []byte {
	var meta, params, all object
	meta.add(mcp.MetaSubscriptionID, id)
	params.add("notifications", l.Filter())
	params.add("_meta", meta.bytes())
	all.add("jsonrpc", []byte(`"2.0"`))
	all.add("method", quote(mcp.Acknowledged))
	all.add("params", params.bytes())
	return all.bytes()
}

// Note is a notification made by the bridge, and what makes it mergeable.
type Note struct {
	Raw []byte
	Key string
}

// Notes tells that everything that is listened to may have changed, with the raw subscription id (SUB-16).
func (l Listen) Notes(id []byte) (list []Note) {
	meta := `"_meta":{"` + mcp.MetaSubscriptionID + `":` + string(id) + `}`
	for i, k := range changes {
		if l.Changes&(1<<i) != 0 {
			list = append(list, Note{[]byte(`{"jsonrpc":"2.0","method":"` + k.method + `","params":{` + meta + `}}`), k.method})
		}
	}
	for _, uri := range l.URIs {
		list = append(list, Note{[]byte(`{"jsonrpc":"2.0","method":"` + mcp.ResourcesUpdated + `","params":{"uri":` + string(uri) + `,` + meta + `}}`),
			mcp.ResourcesUpdated + " " + string(uri)})
	}
	return list
}
