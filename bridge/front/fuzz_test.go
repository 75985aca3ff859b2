package front

import (
	"encoding/json"
	"testing"

	"mcpbridge/framing"
)

// FuzzClassify looks for bodies and headers that are placed though the headers name another method or tool than a
// reader of the body sees (HTTP-M-28), and for refusals that are no JSON.
func FuzzClassify(f *testing.F) {
	f.Add([]byte(modernBody("tools/call", `"name":"a"`)), "2026-07-28", "tools/call", "a", false)
	f.Add([]byte(legacyBody("ping", "")), "", "", "", true)
	f.Add([]byte(modernBody("tools/call", `"name":"=?base64?YQ==?="`)), "2026-07-28", "tools/call", "=?base64?YQ==?=", false)
	f.Add([]byte(`[1,{"jsonrpc":"2.0","id":1,"method":"x"}]`), "2025-03-26", "", "", true)
	f.Fuzz(func(t *testing.T, body []byte, version, method, name string, session bool) {
		h := headers("MCP-Protocol-Version", version, "Mcp-Method", method, "Mcp-Name", name)
		view := SessionView{}
		if session {
			view = session03
		}
		c, err := Classify(h, body, view)
		if err != nil {
			if c != nil || !json.Valid(err.Body(true)) || err.HTTPStatus() < 200 || err.Code >= 0 {
				t.Fatalf("refusal %+v with class %+v", err, c)
			}
			return
		}
		if c.Message == nil || c.Message.Kind != framing.Request || c.Era.String() != "modern" {
			return
		}
		var read struct {
			Method string
			Params struct{ Name, URI any }
		}
		if err := json.Unmarshal(c.Message.Raw, &read); err != nil {
			t.Fatalf("placed, but %v", err)
		}
		if c.Method != trimOWS(method) || string(c.Version) != trimOWS(version) {
			t.Fatalf("placed as %q %q, headers say %q %q", c.Method, c.Version, method, version)
		}
		if c.Traits.NameParam == "name" && trimOWS(name) != c.Name && len(name) < 10 {
			t.Fatalf("placed with name %q, header says %q", c.Name, name)
		}
	})
}
