package era

import (
	"testing"

	"mcpbridge/bridge/mcp"
)

// What a client declared is cut to what its revision has (translation 13.1).
func TestAtRevision(t *testing.T) {
	const all = `{"roots":{},"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}}}`
	for v, want := range map[mcp.Version]string{
		mcp.V20251125: all,
		mcp.V20250618: `{"roots":{},"elicitation":{"form":{}},"sampling":{"context":{}}}`,
		mcp.V20250326: `{"roots":{},"sampling":{"context":{}}}`,
		mcp.V20241105: `{"roots":{},"sampling":{"context":{}}}`,
	} {
		if got := string(AtRevision([]byte(all), v)); got != want {
			t.Errorf("%s: %s, want %s", v, got, want)
		}
	}
	for _, same := range []string{`{}`, `{"elicitation":{},"sampling":{}}`, `[]`, ``} {
		if got := string(AtRevision([]byte(same), mcp.V20250618)); got != same {
			t.Errorf("%s became %s", same, got)
		}
	}
}

// Bodies of a modern server as clients of each revision take them (translation 6.3, 13.3).
func TestForLegacy(t *testing.T) {
	const url = `{"mode":"url","url":"https://id.example/c","message":"m"}`
	form := func(fields string) string {
		return `{"message":"m","requestedSchema":{"type":"object","properties":{` + fields + `},"required":["a"]}}`
	}
	sampling := func(content string) string {
		return `{"messages":[{"role":"user","content":` + content + `,"x":1.10}],"maxTokens":1}`
	}
	for _, c := range []struct {
		name, method, in string
		v                mcp.Version
		want             string // "" if the revision cannot express it
	}{
		{"form to 11", mcp.ElicitationCreate, `{"mode":"form","message":"m"}`, mcp.V20251125, `{"mode":"form","message":"m"}`},
		{"form to 06", mcp.ElicitationCreate, `{"mode":"form","message":"m"}`, mcp.V20250618, `{"message":"m"}`},
		{"url to 11", mcp.ElicitationCreate, url, mcp.V20251125, `{"mode":"url","url":"https://id.example/c","message":"m","elicitationId":"e-1"}`},
		{"url to 06", mcp.ElicitationCreate, url, mcp.V20250618, ""},
		{"titles to 06", mcp.ElicitationCreate, form(`"a":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g"}]},"b":{"type":"number","default":1.10}`),
			mcp.V20250618, form(`"a":{"type":"string","enum":["r","g"],"enumNames":["Red","g"]},"b":{"type":"number","default":1.10}`)},
		{"titles to 11", mcp.ElicitationCreate, form(`"a":{"type":"string","oneOf":[]}`), mcp.V20251125, form(`"a":{"type":"string","oneOf":[]}`)},
		{"several values to 06", mcp.ElicitationCreate, form(`"a":{"type":"array","items":{"enum":["x"]}}`), mcp.V20250618, ""},
		{"no schema", mcp.ElicitationCreate, `{"message":"m"}`, mcp.V20250618, `{"message":"m"}`},
		{"one block", mcp.SamplingCreateMessage, sampling(`[{"type":"image","data":"AA=="}]`), mcp.V20250618, sampling(`{"type":"image","data":"AA=="}`)},
		{"texts", mcp.SamplingCreateMessage, sampling(`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`), mcp.V20250326, sampling(`{"type":"text","text":"a\nb"}`)},
		{"mixed", mcp.SamplingCreateMessage, sampling(`[{"type":"text","text":"a"},{"type":"image","data":"AA=="}]`), mcp.V20241105,
			`{"messages":[{"role":"user","content":{"type":"text","text":"a"},"x":1.10},{"role":"user","content":{"type":"image","data":"AA=="},"x":1.10}],"maxTokens":1}`},
		{"array to 11", mcp.SamplingCreateMessage, sampling(`[]`), mcp.V20251125, sampling(`[]`)},
		{"single already", mcp.SamplingCreateMessage, sampling(`{"type":"text","text":"a"}`), mcp.V20250618, sampling(`{"type":"text","text":"a"}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := InputRequest{Method: c.method, Params: []byte(c.in)}.ForLegacy(c.v, []byte(`"e-1"`))
			if ok != (c.want != "") || ok && string(got) != c.want {
				t.Errorf("got %s, %v; want %s", got, ok, c.want)
			}
		})
	}
	if got, ok := (InputRequest{Method: mcp.RootsList}).ForLegacy(mcp.V20241105, nil); got != nil || !ok {
		t.Errorf("roots: %s, %v", got, ok)
	}
}
