package era

import (
	"strings"
	"testing"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// The ordinary call of each pair: an echo of 100 bytes with the envelope a client sends.
var ordinary = []struct {
	name     string
	request  string
	result   string
	Request  Request
	Result   Result
	allocReq float64
	allocRes float64
}{
	{"modern-legacy", call(`{"name":"echo","arguments":{"text":"` + hundred + `"},"_meta":{` + envV + `,` + envC + `,` + envI + `}}`),
		`{"content":[{"type":"text","text":"` + hundred + `"}]}`,
		Request{From: mcp.Modern, To: mcp.Legacy, ID: []byte("57"), Token: []byte("57")},
		Result{From: mcp.Legacy, To: mcp.Modern, Method: mcp.ToolsCall, ID: []byte(`"a"`), ServerInfo: []byte(`{"name":"files","version":"1"}`)}, 4, 9},
	{"legacy-modern", call(`{"name":"echo","arguments":{"text":"` + hundred + `"}}`),
		`{"resultType":"complete","content":[{"type":"text","text":"` + hundred + `"}],"_meta":{` + srvInfo + `}}`,
		Request{From: mcp.Legacy, To: mcp.Modern, ID: []byte("57"), Envelope: &Envelope{Version: mcp.V20260728, ClientInfo: []byte(`{"name":"h","version":"1"}`), LogLevel: "info"}},
		Result{From: mcp.Modern, To: mcp.Legacy, Method: mcp.ToolsCall, ID: []byte(`"a"`), ClientVersion: mcp.V20251125}, 8, 3},
	{"legacy-legacy", call(`{"name":"echo","arguments":{"text":"` + hundred + `"},"_meta":{"progressToken":1}}`),
		`{"content":[{"type":"text","text":"` + hundred + `"}]}`,
		Request{From: mcp.Legacy, To: mcp.Legacy, ID: []byte("57"), Token: []byte("57")},
		Result{From: mcp.Legacy, To: mcp.Legacy, Method: mcp.ToolsCall, ID: []byte(`"a"`), ClientVersion: mcp.V20250618, BackVersion: mcp.V20250618}, 4, 1},
	{"modern-modern", call(`{"name":"echo","arguments":{"text":"` + hundred + `"},"_meta":{` + envV + `,` + envC + `,` + envI + `}}`),
		`{"resultType":"complete","content":[{"type":"text","text":"` + hundred + `"}],"_meta":{` + srvInfo + `}}`,
		Request{From: mcp.Modern, To: mcp.Modern, ID: []byte("57"), Envelope: &Envelope{Version: mcp.V20260728}},
		Result{From: mcp.Modern, To: mcp.Modern, Method: mcp.ToolsCall, ID: []byte(`"a"`)}, 5, 2},
}

var hundred = strings.Repeat("x", 100)

// The hot path allocates the list of edits, the operations and the bytes it adds, nothing that grows with the message.
func TestAllocations(t *testing.T) {
	for _, c := range ordinary {
		req, res := scan(t, c.request), result(t, c.result)
		if n := testing.AllocsPerRun(100, func() { c.Request.Edits(req) }); n > c.allocReq {
			t.Errorf("%s request: %v allocations, want at most %v", c.name, n, c.allocReq)
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = c.Result.Edits(res) }); n > c.allocRes {
			t.Errorf("%s result: %v allocations, want at most %v", c.name, n, c.allocRes)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	for _, c := range ordinary {
		m := scan(b, c.request)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var buf [8]framing.Edit
			for b.Loop() {
				c.Request.AppendEdits(buf[:0], m)
			}
		})
	}
}

func BenchmarkResult(b *testing.B) {
	for _, c := range ordinary {
		m := result(b, c.result)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var buf [8]framing.Edit
			for b.Loop() {
				_, _ = c.Result.AppendEdits(buf[:0], m)
			}
		})
	}
}
