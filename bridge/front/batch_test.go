package front

import (
	"net/http"
	"strings"
	"testing"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

func TestBatch(t *testing.T) { // FRM-23..25, translation 17.4, case 10
	const ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	refused := placed{0, 400, -32600, false}
	many := func(n int) string {
		return `["],[{\\\",,",{"a":[1,2,{"b":3}]}` + strings.Repeat(",1", n-2) + `]`
	}
	tests := []struct {
		name    string
		headers http.Header
		body    string
		session SessionView
		want    placed
		members int
	}{
		{"on its revision", http.Header{}, " [" + ping + " , " + ping + "]\n", session03, placed{era: mcp.Legacy}, 2},
		{"invalid members", http.Header{}, `[1,"x",{},` + ping + `]`, session03, placed{era: mcp.Legacy}, 4},
		{"initialize inside", http.Header{}, "[" + legacyBody("initialize", "") + "," + ping + "]", session03, placed{era: mcp.Legacy}, 2},
		{"answers", http.Header{}, `[{"jsonrpc":"2.0","id":7,"result":{` + envelope + `}}]`, session03, placed{era: mcp.Legacy}, 1},
		{"empty", http.Header{}, `[ ]`, session03, refused, 0},
		{"on a later revision", http.Header{}, "[" + ping + "]", session11, refused, 0},
		{"before the version is known", http.Header{}, "[" + ping + "]", opening, refused, 0},
		{"without session", http.Header{}, " [" + ping + "]", noSession, refused, 0},
		{"dead session", http.Header{}, "[" + ping + "]", unknownSession, placed{0, 404, -32600, false}, 0},
		{"modern header", headers("MCP-Protocol-Version", "2026-07-28"), "[" + ping + "]", session03, refused, 0},
		{"legacy header", headers("MCP-Protocol-Version", "2025-03-26"), "[" + ping + "]", session03, placed{era: mcp.Legacy}, 1},
		{"envelope inside", http.Header{}, "[" + ping + "," + modernBody("tools/list", "") + "]", session03, refused, 0},
		{"notification with envelope inside", http.Header{}, `[{"jsonrpc":"2.0","method":"notifications/x","params":{` + envelope + `}}]`, session03, refused, 0},
		{"cut", http.Header{}, "[" + ping, session03, placed{0, 400, -32700, false}, 0},
		{"data behind", http.Header{}, "[" + ping + "]x", session03, placed{0, 400, -32700, false}, 0},
		{"at the limit", http.Header{}, many(MaxBatch), session03, placed{era: mcp.Legacy}, MaxBatch},
		{"over the limit", http.Header{}, many(MaxBatch + 1), session03, refused, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := checkPlaced(t, tt.headers, tt.body, tt.session, tt.want)
			if c == nil {
				return
			}
			if len(c.Batch) != tt.members || c.Message != nil || c.Version != mcp.V20250326 {
				t.Errorf("%d members, message %v, version %s, want %d", len(c.Batch), c.Message, c.Version, tt.members)
			}
		})
	}
}

func TestClassifyMember(t *testing.T) { // FRM-25, translation 17.4
	tests := []struct {
		element string
		kind    framing.Kind // Invalid: refused with -32600
		id      string
	}{
		{`{"jsonrpc":"2.0","id":7,"method":"ping"}`, framing.Request, ""},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, framing.Notification, ""},
		{`{"jsonrpc":"2.0","id":7,"result":{}}`, framing.Result, ""},
		{legacyBody("initialize", ""), framing.Invalid, "7"},
		{`[]`, framing.Invalid, ""},
		{`[{"jsonrpc":"2.0","id":7,"method":"ping"}]`, framing.Invalid, ""},
		{`1`, framing.Invalid, ""},
		{`{"id":7,"method":"ping"}`, framing.Invalid, "7"},
		{`{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":""}}`, framing.Invalid, ""},
	}
	for _, tt := range tests {
		c, err := ClassifyMember(http.Header{}, []byte(tt.element), session03)
		switch {
		case tt.kind == framing.Invalid:
			if err == nil || c != nil || err.Code != -32600 || string(err.ID) != tt.id {
				t.Errorf("%s: %+v, %+v, want -32600 with id %q", tt.element, c, err, tt.id)
			}
		case err != nil || c.Message.Kind != tt.kind || c.Era != mcp.Legacy:
			t.Errorf("%s: %+v, %v, want kind %v", tt.element, c, err, tt.kind)
		}
	}
}
