package era

import (
	"testing"

	"mcpbridge/bridge/mcp"
)

const (
	audio = `{"type":"audio","data":"AAAA","mimeType":"audio/wav"}`
	link  = `{"type":"resource_link","uri":"file:///r.txt","name":"r.txt"}`
	odd   = `{"type":"hologram","data":1}`
	plain = `{"type":"text","text":"t","x":1.0}`
	image = `{"type":"image","data":"AA==","mimeType":"image/png"}`

	audioText = `{"type":"text","text":"[audio audio/wav, 3 bytes, not shown]"}`
	linkText  = `{"type":"text","text":"r.txt: file:///r.txt"}`
	oddText   = `{"type":"text","text":"[content of type hologram]"}`
)

// Translation 13.3: which block reaches which client. Each row is a client revision, the back is newer.
func TestBlocksByRevision(t *testing.T) {
	in := `[` + plain + `,` + audio + `, ` + link + ` ,` + odd + `,` + image + `]`
	want := map[mcp.Version]string{
		mcp.V20241105: `[` + plain + `,` + audioText + `, ` + linkText + ` ,` + oddText + `,` + image + `]`,
		mcp.V20250326: `[` + plain + `,` + audio + `, ` + linkText + ` ,` + oddText + `,` + image + `]`,
		mcp.V20250618: `[` + plain + `,` + audio + `, ` + link + ` ,` + oddText + `,` + image + `]`,
		mcp.V20251125: in,
	}
	for v, out := range want {
		call := resultCase{string(v), `{"content":` + in + `}`, `{"content":` + out + `}`}
		runResults(t, Result{From: mcp.Modern, To: mcp.Legacy, Method: mcp.ToolsCall, ClientVersion: v}, []resultCase{call})
		runResults(t, Result{From: mcp.Modern, To: mcp.Legacy, Method: mcp.ToolsCall, ClientVersion: v, Exclusive: true}, []resultCase{call})
		runResults(t, Result{From: mcp.Legacy, To: mcp.Legacy, Method: mcp.ToolsCall, ClientVersion: v}, []resultCase{call})
		runResults(t, Result{From: mcp.Legacy, To: mcp.Legacy, Method: mcp.ToolsCall, ClientVersion: v, BackVersion: mcp.V20251125}, []resultCase{call})
		other := resultCase{string(v), call.in, call.in}
		runResults(t, Result{From: mcp.Legacy, To: mcp.Legacy, Method: "example.com/x", ClientVersion: v}, []resultCase{other})
	}
}

func TestBlocksInPrompts(t *testing.T) {
	r := Result{From: mcp.Modern, To: mcp.Legacy, Method: mcp.PromptsGet, ClientVersion: mcp.V20241105}
	runResults(t, r, []resultCase{
		{"one block a message", `{"messages":[{"role":"user","content":` + audio + `},{"content":` + plain + `,"role":"x"},7]}`,
			`{"messages":[{"role":"user","content":` + audioText + `},{"content":` + plain + `,"role":"x"},7]}`},
		{"a list of blocks", `{"messages":[{"content":[` + link + `]}]}`, `{"messages":[{"content":[` + linkText + `]}]}`},
		{"no messages", `{}`, `{}`},
	})
}

func TestBlockTexts(t *testing.T) {
	r := Result{From: mcp.Modern, To: mcp.Legacy, Method: mcp.ToolsCall, ClientVersion: mcp.V20241105}
	one := func(name, in, want string) resultCase {
		return resultCase{name, `{"content":[` + in + `]}`, `{"content":[` + want + `]}`}
	}
	runResults(t, r, []resultCase{
		one("one byte", `{"type":"audio","data":"AA==","mimeType":"a/b"}`, `{"type":"text","text":"[audio a/b, 1 bytes, not shown]"}`),
		one("two bytes, escaped slash", `{"type":"audio","data":"\/\/8=","mimeType":"a/b"}`, `{"type":"text","text":"[audio a/b, 2 bytes, not shown]"}`),
		one("nothing known", `{"type":"audio"}`, `{"type":"text","text":"[audio, 0 bytes, not shown]"}`),
		one("annotations and _meta stay", `{"annotations":{"priority":1.0},"type":"audio","data":"","mimeType":"a","_meta":{"k":1}}`,
			`{"type":"text","text":"[audio a, 0 bytes, not shown]","annotations":{"priority":1.0},"_meta":{"k":1}}`),
		one("link with description", `{"type":"resource_link","uri":"f:\/r","name":"n\"","description":"d"}`, `{"type":"text","text":"n\": f:/r (d)"}`),
		one("link without name", `{"type":"resource_link","uri":"f:/r"}`, `{"type":"text","text":"f:/r"}`),
		one("type with an escape", `{"type":"aud\u0069o","mimeType":"a/b","data":"AAAA"}`, `{"type":"text","text":"[audio a/b, 3 bytes, not shown]"}`),
		one("no type", `{"text":"x"}`, `{"text":"x"}`),
		one("odd type", `{"type":1}`, `{"type":1}`),
		one("no block", `"audio"`, `"audio"`),
	})
}

// FEA-08: structured content that is no object, towards clients whose schema wants one.
func TestStructuredContent(t *testing.T) {
	r := Result{From: mcp.Modern, To: mcp.Legacy, Method: mcp.ToolsCall, ClientVersion: mcp.V20250618}
	const array = `{"type":"text","text":"[1, \"a\"]"}`
	flat := []resultCase{
		{"empty content", `{"content":[ ],"structuredContent":[1, "a"]}`, `{"content":[ ` + array + `]}`},
		{"content last", `{"structuredContent":[1, "a"],"content":[` + image + `]}`, `{"content":[` + image + `,` + array + `]}`},
		{"a text is there", `{"structuredContent":[1, "a"],"content":[` + image + `,` + plain + `]}`, `{"content":[` + image + `,` + plain + `]}`},
		{"no content", `{"structuredContent":[1, "a"],"resultType":"complete"}`, `{"content":[` + array + `]}`},
		{"odd content", `{"content":null,"structuredContent":[1, "a"]}`, `{"content":[` + array + `]}`},
		{"number", `{"structuredContent":1.10}`, `{"content":[{"type":"text","text":"1.10"}]}`},
		{"null", `{"structuredContent":null,"content":[]}`, `{"content":[{"type":"text","text":"null"}]}`},
		{"object", `{"structuredContent":{"a":1},"content":[]}`, `{"structuredContent":{"a":1},"content":[]}`},
	}
	runResults(t, r, flat)
	r.ClientVersion = mcp.V20251125
	runResults(t, r, flat)
	r.ClientVersion = mcp.V20250326
	runResults(t, r, []resultCase{{"ignored by older clients", flat[0].in, flat[0].in}})
	r.ClientVersion, r.Method = mcp.V20250618, "example.com/x"
	runResults(t, r, []resultCase{{"another method", flat[0].in, flat[0].in}})
	r.Method = mcp.ToolsCall
	runResults(t, r, []resultCase{{"beside a block that becomes text", `{"content":[` + odd + `],"structuredContent":[]}`, `{"content":[` + oddText + `,{"type":"text","text":"[]"}]}`}})
}
