package demo

import (
	"mcpbridge/bridge/mcp"
)

// tool is one entry of tools/list and what runs it: quick answers at once, slow may wait. A tool that waits in the legacy
// era only has both.
type tool struct {
	name, title, description string
	input, output            object
	changes                  bool // it has an effect
	quick                    func(*server, *call) (object, *rpcError)
	slow                     waiting
}

func tools() []tool {
	return []tool{
		{name: "echo", title: "Echo", description: "Returns the text.",
			input: schema(object{"text": stringType("What to return.")}, "text"), quick: (*server).echo},
		{name: "add", title: "Add", description: "Adds two numbers.",
			input:  schema(object{"a": object{"type": "number"}, "b": object{"type": "number"}}, "a", "b"),
			output: schema(object{"sum": object{"type": "number"}}, "sum"), quick: (*server).add},
		{name: "countdown", title: "Countdown", description: "Counts down to zero and reports progress.",
			input: schema(object{
				"from":    object{"type": "integer", "minimum": 0, "maximum": maxFrom},
				"delayMs": object{"type": "integer", "minimum": 0, "maximum": maxDelayMs, "description": "Between two steps."},
			}, "from"), slow: (*server).countdown},
		{name: "ask", title: "Ask", description: "Puts a question to the user and returns the answer.",
			input: schema(object{"question": stringType("What to ask.")}, "question"), quick: (*server).askModern, slow: (*server).askLegacy},
		{name: "log", title: "Log", description: "Sends a log message.",
			input: schema(object{
				"level": object{"type": "string", "enum": levelNames()},
				"text":  stringType("What to log."),
			}, "level", "text"), quick: (*server).log},
		{name: "region_echo", title: "Echo in a region", description: "Returns region and text; the region travels as a header too.",
			input: schema(object{
				"region": object{"type": "string", "description": "Where to echo.", "x-mcp-header": "Region"},
				"text":   stringType("What to return."),
			}, "region", "text"), quick: (*server).regionEcho},
		{name: "touch", title: "Touch", description: "Changes the resource demo://clock.",
			input: schema(object{}), changes: true, quick: (*server).touch},
	}
}

// listTools serves tools/list in the words of the revision: annotations from 2025-03-26, titles and output schemas from
// 2025-06-18.
func (s *server) listTools(r *request) (object, *rpcError) {
	if failure := onlyPage(r); failure != nil {
		return nil, failure
	}
	list := []object{}
	for _, t := range s.tools {
		shown := entry(r.version, t.title, object{"name": t.name, "description": t.description, "inputSchema": t.input})
		if r.version.AtLeast(mcp.V20250326) {
			shown["annotations"] = t.annotations()
		}
		if t.output != nil && r.version.StructuredContent() {
			shown["outputSchema"] = t.output
		}
		list = append(list, shown)
	}
	return object{"tools": list}, nil
}

func (t tool) annotations() object {
	if t.changes {
		return object{"readOnlyHint": false, "destructiveHint": false, "idempotentHint": false, "openWorldHint": false}
	}
	return object{"readOnlyHint": true, "openWorldHint": false}
}

func (s *server) findTool(name string) (tool, bool) {
	for _, t := range s.tools {
		if t.name == name {
			return t, true
		}
	}
	return tool{}, false
}

func schema(properties object, required ...string) object {
	s := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func stringType(description string) object {
	return object{"type": "string", "description": description}
}

func levelNames() []string {
	var list []string
	for level := mcp.ParseLevel("debug"); level <= mcp.ParseLevel("emergency"); level++ {
		list = append(list, level.String())
	}
	return list
}
