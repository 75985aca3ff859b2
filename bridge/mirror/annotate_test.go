package mirror

import (
	"errors"
	"strings"
	"testing"

	"mcpbridge/framing"
)

// annotateTool annotates the tool {"inputSchema":schema} and returns its schema.
func annotateTool(schema string, add map[string]string) (string, error) {
	const head, tail = `{"tools":[{"inputSchema":`, `}]}`
	raw := []byte(head + schema + tail)
	edits, err := Annotate(raw, framing.Span{Start: 10, End: uint32(len(raw) - 2)}, add)
	f := framing.Rewrite(raw, edits)
	out := string(f.Bytes())
	return out[len(head) : len(out)-len(tail)], err
}

func TestAnnotate(t *testing.T) {
	tests := []struct {
		name, schema string
		add          map[string]string
		want         string
	}{
		{"nothing", `{"a": 1}`, nil, `{"a": 1}`},
		{
			"several",
			`{"properties":{"a":{"type":"string"},"b":{"type":"integer","x":1 },"c":{"type":"boolean"}}}`,
			map[string]string{"a": "A", "b": "B", "c": "C"},
			`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"integer","x":1,"x-mcp-header":"B" },"c":{"type":"boolean","x-mcp-header":"C"}}}`,
		},
		{
			"nested",
			`{"properties":{"o":{"properties":{"t":{"type":"string"}}}}}`,
			map[string]string{"o.t": "Tenant"},
			`{"properties":{"o":{"properties":{"t":{"type":"string","x-mcp-header":"Tenant"}}}}}`,
		},
		{
			"a name with a dot",
			`{"properties":{"a.b":{"properties":{"c":{"type":"string"}}},"a":{"type":"string"}}}`,
			map[string]string{"a.b.c": "C"},
			`{"properties":{"a.b":{"properties":{"c":{"type":"string","x-mcp-header":"C"}}},"a":{"type":"string"}}}`,
		},
		{
			"beside another annotation",
			`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string"}}}`,
			map[string]string{"b": "B"},
			`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"B"}}}`,
		},
		{
			"already there",
			`{"properties":{"a":{"type":"string","x-mcp-header":"Region"}}}`,
			map[string]string{"a": "region"},
			`{"properties":{"a":{"type":"string","x-mcp-header":"Region"}}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := annotateTool(tt.schema, tt.add)
			if err != nil || got != tt.want {
				t.Fatalf("Annotate: %v\n got %s\nwant %s", err, got, tt.want)
			}
			if params, err := Parse([]byte(got)); err != nil || len(params) < len(tt.add) {
				t.Errorf("Parse of the outcome = %v, %v", params, err)
			}
		})
	}
}

func TestAnnotateRefuses(t *testing.T) {
	tests := []struct {
		name, schema string
		add          map[string]string
		says         string
	}{
		{"missing", `{"properties":{"a":{"type":"string"}}}`, map[string]string{"b": "B"}, `"b"`},
		{"missing below", `{"properties":{"a":{"type":"string"}}}`, map[string]string{"a.b": "B"}, "no such property"},
		{"prefix only", `{"properties":{"ab":{"type":"string"}}}`, map[string]string{"a": "B"}, "no such property"},
		{"no properties", `{}`, map[string]string{"a": "A"}, "no such property"},
		{"odd properties", `{"properties":[]}`, map[string]string{"a": "A"}, "no such property"},
		{"number", `{"properties":{"a":{"type":"number"}}}`, map[string]string{"a": "A"}, "type"},
		{"untyped", `{"properties":{"a":{}}}`, map[string]string{"a": "A"}, "type"},
		{"boolean schema", `{"properties":{"a":true}}`, map[string]string{"a": "A"}, "type"},
		{"union", `{"properties":{"a":{"type":["string","null"]}}}`, map[string]string{"a": "A"}, "type"},
		{"two types", `{"properties":{"a":{"type":"string","type":"string"}}}`, map[string]string{"a": "A"}, "type"},
		{"empty header", `{"properties":{"a":{"type":"string"}}}`, map[string]string{"a": ""}, "token"},
		{"no token", `{"properties":{"a":{"type":"string"}}}`, map[string]string{"a": "A B"}, "token"},
		{"control", `{"properties":{"a":{"type":"string"}}}`, map[string]string{"a": "A\r\nX: y"}, "token"},
		{"clash of two", `{"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, map[string]string{"a": "H", "b": "h"}, "taken"},
		{"clash with old", `{"properties":{"a":{"type":"string","x-mcp-header":"H"},"b":{"type":"string"}}}`, map[string]string{"b": "h"}, "taken"},
		{"another name", `{"properties":{"a":{"type":"string","x-mcp-header":"H"}}}`, map[string]string{"a": "J"}, "annotated"},
		{"two readings", `{"properties":{"a.b":{"type":"string"},"a":{"properties":{"b":{"type":"string"}}}}}`, map[string]string{"a.b": "H"}, "read as"},
		{"twin properties", `{"properties":{"a":{"type":"string"}},"properties":{}}`, map[string]string{"a": "A"}, "twice"},
		{"twin names", `{"properties":{"a":{"type":"string"},"\u0061":{"type":"string"}}}`, map[string]string{"a": "A"}, "twice"},
		{"unreachable", `{"allOf":[{"properties":{"a":{"type":"string"}}}]}`, map[string]string{"a": "A"}, "no such property"},
		{"no object", `true`, map[string]string{"a": "A"}, "inputSchema"},
		{"too deep", strings.ReplaceAll(nested(MaxDepth+1), `,"x-mcp-header":"A"`, ""), map[string]string{strings.Repeat("a.", MaxDepth-1) + "a": "A"}, ClassTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := annotateTool(tt.schema, tt.add)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Annotate = %v, want an error that says %q", err, tt.says)
			}
			if got != tt.schema {
				t.Errorf("Annotate edits beside an error: %s", got)
			}
		})
	}
}

func TestAnnotateInvalidSchema(t *testing.T) {
	_, err := annotateTool(`{"properties":{"a":{"type":"string"},"b":{"type":"number","x-mcp-header":"B"}}}`, map[string]string{"a": "A"})
	var bad *Invalid
	if !errors.As(err, &bad) || bad.Class != ClassType {
		t.Errorf("Annotate = %v, want *Invalid of class type", err)
	}
}

func TestAnnotateDepth(t *testing.T) {
	schema := strings.ReplaceAll(nested(MaxDepth), `,"x-mcp-header":"A"`, "")
	got, err := annotateTool(schema, map[string]string{strings.Repeat("a.", MaxDepth-2) + "a": "A"})
	if err != nil || got != nested(MaxDepth) {
		t.Errorf("Annotate at depth %d: %v", MaxDepth, err)
	}
}
