package era

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
	"mcpbridge/test/vectors"
)

func TestCapabilityVectors(t *testing.T) {
	for _, v := range vectors.Group(t, "capability-map") {
		t.Run(v.ID, func(t *testing.T) {
			var x struct {
				Config          struct{ Tasks string }
				CompletionProbe string
			}
			decode(t, v.Raw, &x)
			o := DiscoverOptions{KeepListChanged: true, KeepSubscribe: true, Tasks: x.Config.Tasks}
			o.Completions = x.CompletionProbe != "" && x.CompletionProbe != "answers -32601"
			var got []byte
			switch v.Direction {
			case "server-legacy-to-modern":
				got = ServerCapabilitiesToModern(v.Input, o)
			case "server-modern-to-legacy":
				got = ServerCapabilitiesToLegacy(v.Input)
			case "client-legacy-to-modern":
				got = ClientCapabilitiesToModern(v.Input)
			case "client-modern-to-legacy":
				got = ClientCapabilitiesToLegacy(v.Input)
			default:
				t.Fatalf("unknown direction %q", v.Direction)
			}
			sameJSON(t, string(got), string(v.Expect))
		})
	}
}

func TestHandshakeVersionVectors(t *testing.T) {
	for _, v := range vectors.Group(t, "handshake-version") {
		t.Run(v.ID, func(t *testing.T) {
			var in struct{ Requested json.RawMessage }
			var want struct {
				Answered string
				Error    int
			}
			decode(t, v.Input, &in)
			decode(t, v.Expect, &want)
			params := `{}`
			if in.Requested != nil {
				params = `{"protocolVersion":` + string(in.Requested) + `}`
			}
			o, err := ParseOpening(scan(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+params+`}`))
			if (err != nil) != (want.Error != 0) {
				t.Fatalf("error %v, want %+v", err, want)
			}
			if err == nil && string(mcp.NegotiateLegacy(o.Requested)) != want.Answered {
				t.Errorf("answered %q, want %q", mcp.NegotiateLegacy(o.Requested), want.Answered)
			}
		})
	}
}

func TestResultVectors(t *testing.T) {
	for _, v := range vectors.Group(t, "result-map") {
		t.Run(v.ID, func(t *testing.T) {
			r := Result{Method: v.Method, ID: []byte(`"c-1"`), ServerInfo: v.ServerInfo, ClientVersion: mcp.Version(v.ClientVersion)}
			r.From, r.To = eras(t, v.Direction)
			if strings.HasPrefix(v.ID, "map-res-invalid-annotation") {
				r.Tools = unannotate
				if v.Direction == "b3-to-any" {
					r.Tools = dropAnnotated
				}
			}
			m := result(t, string(v.Input))
			edits, err := r.Edits(m)
			if err != nil {
				t.Fatal(err)
			}
			out := apply(t, m, edits)
			if id := scan(t, out); string(id.Bytes(id.ID)) != `"c-1"` {
				t.Errorf("id is not the client's: %s", out)
			}
			checkResult(t, resultOf(t, out), v.Expect)
		})
	}
}

// checkResult compares with the exact result, or with the features a vector names instead.
func checkResult(t *testing.T, got string, expect json.RawMessage) {
	t.Helper()
	var want struct {
		ToolNames, ContentTypes, TextContains []string
	}
	decode(t, expect, &want)
	if want.ToolNames == nil && want.ContentTypes == nil {
		sameJSON(t, got, string(expect))
		return
	}
	var have struct {
		Tools   []struct{ Name string }
		Content []struct{ Type, Text string }
	}
	decode(t, []byte(got), &have)
	var names, types []string
	for _, tool := range have.Tools {
		names = append(names, tool.Name)
	}
	for _, c := range have.Content {
		types = append(types, c.Type)
	}
	if !slices.Equal(names, want.ToolNames) || !slices.Equal(types, want.ContentTypes) {
		t.Errorf("tools %v, content %v in %s; want %s", names, types, got, expect)
	}
	for _, s := range want.TextContains {
		if !strings.Contains(have.Content[0].Text, s) {
			t.Errorf("no %q in %s", s, got)
		}
	}
}

// unannotate removes x-mcp-header from the top properties of the inputSchema.
func unannotate(raw []byte, tool framing.Span) (edits []framing.Edit) {
	schema, _ := framing.Lookup(raw, framing.Members(raw, tool), "inputSchema")
	props, _ := framing.Lookup(raw, framing.Members(raw, schema), "properties")
	for _, p := range framing.Members(raw, props) {
		edits = framing.EditObject(edits, raw, p.Value, framing.Members(raw, p.Value), framing.Op{Name: "x-mcp-header"})
	}
	return edits
}

// dropAnnotated removes every tool that would need unannotate.
func dropAnnotated(raw []byte, tool framing.Span) []framing.Edit {
	if len(unannotate(raw, tool)) > 0 {
		return []framing.Edit{{At: tool}}
	}
	return nil
}

func TestErrorVectors(t *testing.T) {
	const uri = `"file:///gone"`
	for _, v := range vectors.Group(t, "error-map") {
		t.Run(v.ID, func(t *testing.T) {
			e := ErrorMap{Method: v.Method, URI: []byte(uri), ID: []byte(`"c-1"`), Capabilities: v.ClientCapabilities}
			e.From, e.To = eras(t, v.Direction)
			if v.Direction == "legacy-to-legacy" { // the vector's description names the pair
				e.ClientVersion, e.BackVersion = mcp.V20250618, mcp.V20251125
			}
			input := strings.ReplaceAll(string(v.Input), `"$uri"`, uri)
			m := scan(t, `{"jsonrpc":"2.0","id":57,"error":`+input+`}`)
			edits, status := e.Edits(m)
			out := apply(t, m, edits)
			checkError(t, out, status, strings.ReplaceAll(string(v.Expect), `"$uri"`, uri))
		})
	}
}

func checkError(t *testing.T, out string, status int, expect string) {
	t.Helper()
	var want struct {
		Code            int
		Message         *string
		Data            json.RawMessage
		DataHas         []string
		MessageContains string
		Status          int
	}
	var got struct {
		ID    json.RawMessage
		Error struct {
			Code    int
			Message string
			Data    json.RawMessage
		}
	}
	decode(t, []byte(expect), &want)
	decode(t, []byte(out), &got)
	if got.Error.Code != want.Code || string(got.ID) != `"c-1"` {
		t.Errorf("got %s, want %s", out, expect)
	}
	if want.Message != nil && got.Error.Message != *want.Message || !strings.Contains(got.Error.Message, want.MessageContains) {
		t.Errorf("message %q, want %s", got.Error.Message, expect)
	}
	if want.Status != 0 && status != want.Status {
		t.Errorf("status %d, want %s", status, expect)
	}
	switch {
	case want.Data != nil:
		sameJSON(t, string(got.Error.Data), string(want.Data))
	case want.DataHas != nil:
		for _, name := range want.DataHas {
			if member(got.Error.Data, name) == nil {
				t.Errorf("no %q in data of %s", name, out)
			}
		}
	case got.Error.Data != nil && want.MessageContains == "":
		t.Errorf("data appeared: %s", out)
	}
}

func decode(t testing.TB, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("cannot decode %s: %v", raw, err)
	}
}
