package mirror

import (
	"strings"
	"testing"

	"mcpbridge/framing"
)

// stripTool strips the tool {"name":"t","inputSchema":schema} and returns its schema.
func stripTool(t testing.TB, schema string) string {
	t.Helper()
	const head, tail = `[{"name":"t","inputSchema":`, `}]`
	raw := []byte(head + schema + tail)
	edits := Strip(raw, framing.Span{Start: 1, End: uint32(len(raw) - 1)})
	f := framing.Rewrite(raw, edits)
	out := string(f.Bytes())
	if !framing.Valid([]byte(out)) || !strings.HasPrefix(out, head) || !strings.HasSuffix(out, tail) {
		t.Fatalf("Strip of %s gives %s", raw, out)
	}
	return out[len(head) : len(out)-len(tail)]
}

// XMH-12: every annotation goes, the rest keeps its bytes.
func TestStrip(t *testing.T) {
	tests := []struct{ schema, want string }{
		{`{"type":"object"}`, `{"type":"object"}`},
		{`{ "x-mcp-header" : "A" }`, `{  }`},
		{`{"x-mcp-header":1,"x-mcp-header":2}`, `{}`},
		{`{"x-mcp-header":1,"a": 1e2}`, `{"a": 1e2}`},
		{`{"a":1 , "x-mcp-header":{"b":[]} }`, `{"a":1 }`},
		{`{"a":1,"x-mcp-header":1,"b":2,"x-mcp-header":2,"\u0078-mcp-header":3}`, `{"a":1,"b":2}`},
		{
			`{"properties":{"a":{"x-mcp-header":"A","type":"number"},"x-mcp-header":{"type":"string","x-mcp-header":"B"}}}`,
			`{"properties":{"a":{"type":"number"},"x-mcp-header":{"type":"string"}}}`,
		},
		{
			`{"x-mcp-header":"R","properties":{"l":{"x-mcp-header":"L","items":[{"x-mcp-header":"I","not":{"x-mcp-header":"N"}}]}},"$defs":{"d":{"x-mcp-header":"D"}}}`,
			`{"properties":{"l":{"items":[{"not":{}}]}},"$defs":{"d":{}}}`,
		},
		{
			`{"default":{"x-mcp-header":"A"},"enum":[{"x-mcp-header":"A"}],"x-y":{"x-mcp-header":"A"},"x-mcp-header":"A"}`,
			`{"default":{"x-mcp-header":"A"},"enum":[{"x-mcp-header":"A"}],"x-y":{"x-mcp-header":"A"}}`,
		},
		{`{"properties":{"a":{"x-mcp-header":"A"}},"properties":{"a":{"x-mcp-header":"A"}}}`, `{"properties":{"a":{}},"properties":{"a":{}}}`},
		{`true`, `true`},
		{`"x-mcp-header"`, `"x-mcp-header"`},
	}
	for _, tt := range tests {
		if got := stripTool(t, tt.schema); got != tt.want {
			t.Errorf("Strip(%s)\n got %s\nwant %s", tt.schema, got, tt.want)
		}
	}
}

// The limits of Parse do not hold Strip back: what Parse refuses as too large must not stay annotated.
func TestStripBeyondLimits(t *testing.T) {
	for _, schema := range []string{nested(MaxDepth + 1), nested(1000), wide(MaxSchemas + 1)} {
		if got := stripTool(t, schema); strings.Contains(got, Annotation) {
			t.Errorf("an annotation is left in %.80s...", got)
		}
	}
}

// Only inputSchema is searched, in every spelling and number.
func TestStripTool(t *testing.T) {
	raw := []byte(`{"tools":[{"x-mcp-header":"K","outputSchema":{"x-mcp-header":"K"},"inputSchema":{"x-mcp-header":"A"},"input\u0053chema":{"x-mcp-header":"B"}}]}`)
	want := `{"tools":[{"x-mcp-header":"K","outputSchema":{"x-mcp-header":"K"},"inputSchema":{},"input\u0053chema":{}}]}`
	f := framing.Rewrite(raw, Strip(raw, framing.Span{Start: 10, End: uint32(len(raw) - 2)}))
	if got := string(f.Bytes()); got != want {
		t.Errorf("Strip\n got %s\nwant %s", got, want)
	}
	if edits := Strip(raw, framing.Span{}); len(edits) != 0 {
		t.Errorf("Strip of an absent tool = %v", edits)
	}
}
