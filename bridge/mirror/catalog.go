package mirror

import (
	"errors"
	"fmt"

	"mcpbridge/framing"
)

// MaxTools is the number of tools a Catalog holds. Tools beyond it are left out, unknown to it, and reported once a page.
const MaxTools = 100_000

// MaxParams is the number of mirrored parameters a Catalog holds for all its tools. A tool beyond it is reported and known
// without parameters.
const MaxParams = 100_000

// Catalog says which arguments the tools of a server mirror. It is built page by page from one tools/list (XMH-18) and
// only read after that; it does no locking. The zero value is empty and ready. It keeps no reference to a message.
type Catalog struct {
	tools  map[string][]Param
	params int
}

// ToolProblem is a tool whose annotations the catalog could not use. Whether the tool is dropped from the list or
// stripped depends on the kind of server (XMH-11..13).
type ToolProblem struct {
	Name  string       // the tool's name, "" if it has none
	Index int          // its place in result.tools
	Tool  framing.Span // the tool in the Raw of the message, for Strip and for removal
	Err   error        // *Invalid, or what is wrong with the tool object
}

var (
	errTooMany    = fmt.Errorf("cannot keep tool: the list has more than %d tools", MaxTools)
	errParams     = fmt.Errorf("cannot keep parameters: the list has more than %d", MaxParams)
	errNoTool     = errors.New("cannot read tool: it is no object with one name")
	errTwoSchemas = errors.New("cannot read tool: inputSchema is given twice")
	errSameName   = errors.New("cannot tell tools apart: another one has the same name")
)

// Add reads result.tools of one page. Tools with invalid annotations become known without parameters; so do tools
// that share a name, since a header check could go by the wrong one.
func (c *Catalog) Add(result *framing.Message) (problems []ToolProblem) {
	list := result.ResultMember("tools")
	if !list.OK() || result.Raw[list.Start] != '[' {
		return nil
	}
	if c.tools == nil {
		c.tools = make(map[string][]Param)
	}
	cur := cursor{raw: result.Raw[:list.End], pos: int(list.Start) + 1}
	for i := 0; cur.element(); i++ {
		at := cur.skip()
		name, err := c.add(result.Raw, at)
		if err == nil {
			continue
		}
		problems = append(problems, ToolProblem{Name: name, Index: i, Tool: at, Err: err})
		if errors.Is(err, errTooMany) {
			break
		}
	}
	return problems
}

// add reads one tool object.
func (c *Catalog) add(raw []byte, tool framing.Span) (name string, err error) {
	if raw[tool.Start] != '{' {
		return "", errNoTool
	}
	members := framing.Members(raw, tool)
	at, dup := framing.Lookup(raw, members, "name")
	if dup || !at.OK() {
		return "", errNoTool
	}
	name, ok := framing.String(cut(raw, at))
	if !ok {
		return "", errNoTool
	}
	if _, known := c.tools[name]; known {
		c.tools[name] = nil
		return name, errSameName
	}
	if len(c.tools) >= MaxTools {
		return name, errTooMany
	}
	c.tools[name] = nil
	schema, dup := framing.Lookup(raw, members, "inputSchema")
	if dup {
		return name, errTwoSchemas
	}
	if !schema.OK() {
		return name, nil
	}
	params, err := Parse(cut(raw, schema))
	if err != nil {
		return name, err
	}
	if c.params+len(params) > MaxParams {
		return name, errParams
	}
	c.params += len(params)
	c.tools[name] = params
	return name, nil
}

// Tool returns the mirrored parameters of a tool, known=false if no page listed it. The slice is shared: do not change it.
func (c *Catalog) Tool(name string) (params []Param, known bool) {
	if c == nil {
		return nil, false
	}
	params, known = c.tools[name]
	return params, known
}

// Len returns the number of known tools.
func (c *Catalog) Len() int {
	if c == nil {
		return 0
	}
	return len(c.tools)
}
