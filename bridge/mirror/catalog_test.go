package mirror

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/framing"
)

func TestCatalog(t *testing.T) {
	c := new(Catalog)
	if _, known := c.Tool("a"); known || c.Len() != 0 {
		t.Error("the empty catalog knows a tool")
	}
	if p := c.Add(page(t, `[ {"name":"a","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"R"}}}} , {"name":"b"} ]`)); len(p) != 0 {
		t.Errorf("page 1: %v", p)
	}
	if p := c.Add(page(t, `[{"inputSchema":{"type":"object"},"name":"\u0063"}]`)); len(p) != 0 {
		t.Errorf("page 2: %v", p)
	}
	params, known := c.Tool("a")
	if diff := cmp.Diff([]Param{{Header: "R", Path: []string{"r"}, Type: String}}, params); diff != "" || !known {
		t.Errorf("a: %v %s", known, diff)
	}
	for _, name := range []string{"b", "c"} {
		if params, known := c.Tool(name); !known || len(params) != 0 {
			t.Errorf("%s: %v, %v", name, params, known)
		}
	}
	if _, known := c.Tool("A"); known || c.Len() != 3 {
		t.Errorf("A is known: %v, tools: %d", known, c.Len())
	}
	var none *Catalog
	if _, known := none.Tool("a"); known || none.Len() != 0 {
		t.Error("no catalog knows a tool")
	}
}

func TestCatalogProblems(t *testing.T) {
	c := new(Catalog)
	m := page(t, `[7,{"name":5},{},{"name":"x","name":"y"},
		{"name":"bad","inputSchema":{"properties":{"n":{"type":"number","x-mcp-header":"N"}}}},
		{"name":"two","inputSchema":{},"inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"R"}}}},
		{"name":"same","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"R"}}}},
		{"name":"same"},
		{"name":"good","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"R"}}}}]`)
	want := []struct {
		name  string
		index int
	}{{"", 0}, {"", 1}, {"", 2}, {"", 3}, {"bad", 4}, {"two", 5}, {"same", 7}}
	got := c.Add(m)
	if len(got) != len(want) {
		t.Fatalf("problems: %v", got)
	}
	for i, w := range want {
		p := got[i]
		if p.Name != w.name || p.Index != w.index || p.Err == nil {
			t.Errorf("problem %d = %+v, want %+v", i, p, w)
		}
		if raw := string(m.Bytes(p.Tool)); w.name != "" && !strings.Contains(raw, `"name":"`+w.name+`"`) {
			t.Errorf("problem %d: the span holds %s", i, raw)
		}
	}
	var bad *Invalid
	if !errors.As(got[4].Err, &bad) || bad.Class != ClassType {
		t.Errorf("bad: %v", got[4].Err)
	}
	for _, name := range []string{"bad", "two", "same"} {
		if params, known := c.Tool(name); !known || params != nil {
			t.Errorf("%s: %v, %v; want known without parameters", name, params, known)
		}
	}
	if params, _ := c.Tool("good"); len(params) != 1 {
		t.Errorf("good: %v", params)
	}
}

// A name that comes back on a later page is as ambiguous as one on the same page.
func TestCatalogSameNameAcrossPages(t *testing.T) {
	c := new(Catalog)
	tool := `[{"name":"a","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"R"}}}}]`
	c.Add(page(t, tool))
	if p := c.Add(page(t, tool)); len(p) != 1 || !errors.Is(p[0].Err, errSameName) {
		t.Errorf("problems: %v", p)
	}
	if params, known := c.Tool("a"); !known || params != nil || c.Len() != 1 {
		t.Errorf("a: %v, %v", params, known)
	}
}

func TestCatalogOddResults(t *testing.T) {
	for _, result := range []string{`{}`, `{"tools":null}`, `{"tools":{}}`, `[]`, `7`, `{"tools":[]}`} {
		m, err := framing.Scan([]byte(`{"jsonrpc":"2.0","id":1,"result":` + result + `}`))
		if err != nil {
			t.Fatal(err)
		}
		c := new(Catalog)
		if p := c.Add(m); len(p) != 0 || c.Len() != 0 {
			t.Errorf("Add(%s) = %v, %d tools", result, p, c.Len())
		}
	}
}

// tools lists n tools named from first on.
func tools(first, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"name":"t%d"}`, first+i)
	}
	return "[" + b.String()[1:] + "]"
}

func TestCatalogMaxTools(t *testing.T) {
	c := new(Catalog)
	if p := c.Add(page(t, tools(0, MaxTools))); len(p) != 0 || c.Len() != MaxTools {
		t.Fatalf("%d tools: %d problems, %d known", MaxTools, len(p), c.Len())
	}
	p := c.Add(page(t, tools(MaxTools, 3)))
	if len(p) != 1 || !errors.Is(p[0].Err, errTooMany) || c.Len() != MaxTools {
		t.Errorf("beyond: %v, %d known", p, c.Len())
	}
	if _, known := c.Tool(fmt.Sprintf("t%d", MaxTools)); known {
		t.Error("the tool beyond the limit is known")
	}
}

func TestCatalogMaxParams(t *testing.T) {
	const each = 1000
	c := new(Catalog)
	schema := wide(each + 1)
	for i := range MaxParams / each {
		if p := c.Add(page(t, fmt.Sprintf(`[{"name":"t%d","inputSchema":%s}]`, i, schema))); len(p) != 0 {
			t.Fatalf("tool %d: %v", i, p)
		}
	}
	one := `{"properties":{"r":{"type":"string","x-mcp-header":"R"}}}`
	if p := c.Add(page(t, `[{"name":"more","inputSchema":`+one+`}]`)); len(p) != 1 || !errors.Is(p[0].Err, errParams) {
		t.Errorf("beyond: %v", p)
	}
	if params, known := c.Tool("more"); !known || params != nil {
		t.Errorf("more: %v, %v", params, known)
	}
}
