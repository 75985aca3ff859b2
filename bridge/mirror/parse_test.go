package mirror

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/framing"
)

func invalid(t *testing.T, schema string) *Invalid {
	t.Helper()
	params, err := Parse([]byte(schema))
	var bad *Invalid
	if !errors.As(err, &bad) {
		t.Fatalf("Parse(%.200s) = %v, %v; want *Invalid", schema, params, err)
	}
	if params != nil {
		t.Errorf("Parse returns params %v beside an error", params)
	}
	return bad
}

func TestParseWhere(t *testing.T) {
	tests := []struct{ schema, class, where string }{
		{`{"properties":{"a/b~c":{"type":"number","x-mcp-header":"N"}}}`, ClassType, "/properties/a~1b~0c"},
		{`{"properties":{"l":{"items":[true,{"x-mcp-header":"N"}]}}}`, ClassUnreachable, "/properties/l/items/1"},
		{`{"x-mcp-header":"N"}`, ClassUnreachable, ""},
		{`{"properties":{"\u0061":{"type":"string","x-mcp-header":""}}}`, ClassEmpty, "/properties/a"},
		// FRM-34: names given twice on the way to an annotation.
		{`{"properties":{"a":{"type":"string"},"a":{"type":"string","x-mcp-header":"A"}}}`, ClassDuplicate, "/properties"},
		{`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"\u0061":{}}}`, ClassDuplicate, "/properties"},
		{`{"properties":{"o":{"properties":{"b":{"type":"string","x-mcp-header":"B"}}},"o":true}}`, ClassDuplicate, "/properties"},
		{`{"properties":{"a":{"type":"string","x-mcp-header":"A"}},"properties":{}}`, ClassDuplicate, ""},
		{`{"properties":{"a":{"type":"string","type":"string","x-mcp-header":"A"}}}`, ClassDuplicate, "/properties/a"},
		{`{"properties":{"a":{"type":"string","x-mcp-header":"A","x-mcp-header":"A"}}}`, ClassDuplicate, "/properties/a"},
	}
	for _, tt := range tests {
		bad := invalid(t, tt.schema)
		if bad.Class != tt.class || bad.Where != tt.where || bad.Detail == "" {
			t.Errorf("Parse(%s) = %+v, want class %s at %q", tt.schema, bad, tt.class, tt.where)
		}
		if !strings.Contains(bad.Error(), tt.class) {
			t.Errorf("the error %q does not name the class", bad)
		}
	}
}

// FRM-34: duplicates that lead to no annotation are not read and pass.
func TestParseDuplicatesElsewhere(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`,
		`{"properties":{"o":{"properties":{"b":{},"b":{}}},"a":{"type":"string","x-mcp-header":"A"}}}`,
		`{"description":"1","description":"2","properties":{"a":{"type":"string","minLength":1,"minLength":2,"x-mcp-header":"A"}}}`,
	} {
		params, err := Parse([]byte(schema))
		want := []Param{{Header: "A", Path: []string{"a"}, Type: String}}
		if diff := cmp.Diff(want, params); err != nil || diff != "" {
			t.Errorf("Parse(%s): %v\n%s", schema, err, diff)
		}
	}
}

func TestParseOrderAndSpace(t *testing.T) {
	schema := " {\n \"properties\" : { \"o\" : { \"properties\" : { \"x\" : { \"x-mcp-header\" : \"X\" , \"type\" : \"integer\" } } } ,\r\n\t" +
		"\"p\" : { \"properties\" : { \"q\" : { \"type\" : \"string\" , \"x-mcp-header\" : \"Q\" } } , \"type\" : \"boolean\" , \"x-mcp-header\" : \"P\" } } } "
	params, err := Parse([]byte(schema))
	want := []Param{
		{Header: "X", Path: []string{"o", "x"}, Type: Integer},
		{Header: "P", Path: []string{"p"}, Type: Boolean},
		{Header: "Q", Path: []string{"p", "q"}, Type: String},
	}
	if diff := cmp.Diff(want, params); err != nil || diff != "" {
		t.Errorf("Parse: %v\n%s", err, diff)
	}
}

// XMH-10: malformed keyword values are no schemas.
func TestParseOddSchemas(t *testing.T) {
	for _, schema := range []string{
		``, `true`, `false`, `null`, `"x-mcp-header"`, `[{"x-mcp-header":"A"}]`,
		`{"properties":[{"x-mcp-header":"A"}]}`, `{"properties":"x-mcp-header"}`, `{"items":"x-mcp-header"}`,
		`{"$defs":[{"x-mcp-header":"A"}]}`, `{"allOf":["x-mcp-header",1,null]}`, `{"title":"x-mcp-header"}`,
		`{"dependencies":{"a":["x-mcp-header"]}}`, `{"const":{"properties":{"a":{"x-mcp-header":"A"}}}}`,
	} {
		if params, err := Parse([]byte(schema)); err != nil || len(params) != 0 {
			t.Errorf("Parse(%s) = %v, %v; want nothing", schema, params, err)
		}
	}
}

// nested is a schema with n nested schemas, the innermost one annotated.
func nested(n int) string {
	const open = `{"properties":{"a":`
	return strings.Repeat(open, n-1) + `{"type":"string","x-mcp-header":"A"}` + strings.Repeat("}}", n-1)
}

// FRM-33: both limits at n and n+1.
func TestParseLimits(t *testing.T) {
	params, err := Parse([]byte(nested(MaxDepth)))
	if err != nil || len(params) != 1 || len(params[0].Path) != MaxDepth-1 {
		t.Errorf("depth %d: %d params, %v", MaxDepth, len(params), err)
	}
	if bad := invalid(t, nested(MaxDepth+1)); bad.Class != ClassTooLarge {
		t.Errorf("depth %d: %v", MaxDepth+1, bad)
	}
	params, err = Parse([]byte(wide(MaxSchemas)))
	if err != nil || len(params) != MaxSchemas-1 {
		t.Errorf("%d schemas: %d params, %v", MaxSchemas, len(params), err)
	}
	if bad := invalid(t, wide(MaxSchemas+1)); bad.Class != ClassTooLarge {
		t.Errorf("%d schemas: %v", MaxSchemas+1, bad)
	}
}

// wide is a schema of n schemas, the root included.
func wide(n int) string {
	var b strings.Builder
	b.WriteString(`{"properties":{`)
	for i := range n - 1 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"p%d":{"type":"string","x-mcp-header":"H%d"}`, i, i)
	}
	return b.String() + `}}`
}

// FRM-33: a schema that cannot hold an annotation is no matter of size.
func TestParseHugeWithoutAnnotation(t *testing.T) {
	schema := `{"anyOf":[` + strings.Repeat(`{"description":"caf\u00e9 \u0027x\u003c"},`, 100_000) + `{}]}`
	if params, err := Parse([]byte(schema)); err != nil || len(params) != 0 {
		t.Errorf("Parse = %v, %v; want nothing", params, err)
	}
}

func TestInvalidIsBounded(t *testing.T) {
	long := strings.Repeat("n", 1<<20)
	bad := invalid(t, `{"properties":{"`+long+`":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`)
	if len(bad.Error()) > 2048 {
		t.Errorf("the error has %d bytes", len(bad.Error()))
	}
	bad = invalid(t, `{"properties":{"`+long+`":{"x-mcp-header":"A"}}}`)
	if len(bad.Where) > 2048 || len(bad.Error()) > 2048 {
		t.Errorf("the place has %d bytes", len(bad.Where))
	}
}

// Parse is total, agrees with Strip, and what it returns can be used.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}`))
	f.Add([]byte(`{"properties":{"a":{"\u0078-mcp-header":"A","type":"integer"},"b":{"items":[{"x-mcp-header":1}]}}}`))
	f.Add([]byte(`{"x-mcp-header":"A","x-mcp-header":"B","a":[1,{"b":"\"}"}]}`))
	f.Add([]byte(`{"properties":{"a":{"properties":{"x-mcp-header":{"x-mcp-header":"Q","type":"boolean"}}}}}`))
	f.Add([]byte(`{"a`))
	f.Add([]byte(`{"x-mcp-header":[`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		params, err := Parse(schema)
		var bad *Invalid
		if err != nil && !errors.As(err, &bad) {
			t.Fatalf("Parse: %v is no *Invalid", err)
		}
		if !framing.Valid(schema) {
			return
		}
		for _, p := range params {
			if len(p.Path) == 0 || nameClass(p.Header) != "" || p.Type.String() == "unknown" {
				t.Fatalf("Parse returns %+v", p)
			}
		}
		stripped := stripTool(t, string(schema))
		again, err := Parse([]byte(stripped))
		if err != nil && bad == nil || len(again) != 0 {
			t.Fatalf("Parse after Strip = %v, %v\n%s", again, err, stripped)
		}
		if more := stripTool(t, stripped); more != stripped {
			t.Fatalf("Strip left something:\n%s\n%s", stripped, more)
		}
	})
}
