package front

import (
	"net/http"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// checkParamShapes is check 11 of HTTP-M-41 for what the bridge reads of a modern request, and check 13 for the tasks
// extension. What only the server reads is the server's to judge.
func checkParamShapes(h http.Header, c *Class) *bridge.Error {
	m := c.Message
	if level := m.MetaMember(mcp.MetaLogLevel); level.OK() {
		if name, ok := framing.String(m.Bytes(level)); !ok || mcp.ParseLevel(name) == mcp.NoLevel {
			return badParams(m, "params._meta."+mcp.MetaLogLevel+" is not a log level") // LOG-03
		}
	}
	if name := c.Traits.NameParam; name != "" && !framing.IsString(m.Bytes(m.Param(name))) {
		return badParams(m, "params."+name+" must be a string")
	}
	if c.Traits.MayAsk {
		if refusal := checkRetryShape(m); refusal != nil {
			return refusal
		}
	}
	switch c.Method {
	case mcp.ToolsCall:
		return checkArguments(m)
	case mcp.Listen:
		return checkListen(h, m)
	case mcp.TasksGet, mcp.TasksUpdate, mcp.TasksCancel:
		if !declaresTasks(m) {
			return tasksUndeclared(m) // TSK-M-09
		}
	}
	return nil
}

// checkArguments lets null stand for none, as some clients write it.
func checkArguments(m *framing.Message) *bridge.Error {
	args := m.Bytes(m.Param("arguments"))
	if args == nil || framing.IsObject(args) || framing.IsNull(args) {
		return nil
	}
	return badParams(m, "params.arguments must be an object")
}

// checkRetryShape checks the members of a retry where a method may have one (MRT-15); whether the state is a good one
// is not decided here.
func checkRetryShape(m *framing.Message) *bridge.Error {
	if state := m.Param("requestState"); state.OK() && !framing.IsString(m.Bytes(state)) {
		return badParams(m, "params.requestState must be a string")
	}
	responses := m.Param("inputResponses")
	if !responses.OK() {
		return nil
	}
	if !framing.IsObject(m.Bytes(responses)) {
		return badParams(m, "params.inputResponses must be an object")
	}
	for _, member := range framing.Members(m.Raw, responses) {
		if !framing.IsObject(m.Bytes(member.Value)) {
			return badParams(m, "each member of params.inputResponses must be an object")
		}
	}
	return nil
}

// checkListen checks the filter of subscriptions/listen (SUB-01, SUB-18) and that the client can take a stream at all
// (HTTP-M-04). Members nobody knows are ignored.
func checkListen(h http.Header, m *framing.Message) *bridge.Error {
	if !ParseAccept(h).SSE {
		return notAcceptable("cannot open subscription: Accept does not allow " + typeSSE + ".").WithID(m.Bytes(m.ID))
	}
	filter := m.Param("notifications")
	if !filter.OK() || !framing.IsObject(m.Bytes(filter)) {
		return badParams(m, "params.notifications must be an object")
	}
	members := framing.Members(m.Raw, filter)
	for _, flag := range [...]string{"toolsListChanged", "promptsListChanged", "resourcesListChanged"} {
		if v, dup := framing.Lookup(m.Raw, members, flag); dup || v.OK() && !framing.IsBool(m.Bytes(v)) {
			return badParams(m, "params.notifications."+flag+" must be one boolean")
		}
	}
	for _, list := range [...]string{"resourceSubscriptions", "taskIds"} {
		if v, dup := framing.Lookup(m.Raw, members, list); dup || v.OK() && !stringList(m.Raw, v) {
			return badParams(m, "params.notifications."+list+" must be one array of strings")
		}
	}
	if ids, _ := framing.Lookup(m.Raw, members, "taskIds"); ids.OK() && !declaresTasks(m) {
		return tasksUndeclared(m)
	}
	return nil
}

func stringList(raw []byte, v framing.Span) bool {
	if !framing.IsArray(raw[v.Start:v.End]) {
		return false
	}
	for _, e := range framing.Elements(raw, v) {
		if !framing.IsString(raw[e.Start:e.End]) {
			return false
		}
	}
	return true
}

// declaresTasks reports whether the request's own capabilities have the tasks extension (META-06, TSK-M-09).
func declaresTasks(m *framing.Message) bool {
	caps := framing.Members(m.Raw, m.MetaMember(mcp.MetaClientCapabilities))
	extensions, dup := framing.Lookup(m.Raw, caps, "extensions")
	if dup || !extensions.OK() || !framing.IsObject(m.Bytes(extensions)) {
		return false
	}
	tasks, dup := framing.Lookup(m.Raw, framing.Members(m.Raw, extensions), mcp.ExtensionTasks)
	return !dup && tasks.OK() && framing.IsObject(m.Bytes(tasks))
}

// tasksUndeclared is -32021 with the capability that is missing (META-09).
func tasksUndeclared(m *framing.Message) *bridge.Error {
	e := refuse(m, mcp.CodeMissingRequiredCapability, bridge.ReasonNotDeclared, "cannot serve tasks: the request does not declare the extension "+mcp.ExtensionTasks+".")
	e.Data = []byte(`"requiredCapabilities":{"extensions":{"` + mcp.ExtensionTasks + `":{}}}`)
	return e
}
