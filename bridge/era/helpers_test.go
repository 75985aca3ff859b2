package era

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// scan is a message that must be valid.
func scan(t testing.TB, raw string) *framing.Message {
	t.Helper()
	m, err := framing.Scan([]byte(raw))
	if err != nil {
		t.Fatalf("cannot scan %s: %v", raw, err)
	}
	return m
}

// apply carries out edits and checks that a valid message comes out and that the input was left alone.
func apply(t testing.TB, m *framing.Message, edits []framing.Edit) string {
	t.Helper()
	before := string(m.Raw)
	out := framing.Rewrite(m.Raw, edits).Bytes()
	if string(m.Raw) != before {
		t.Fatalf("the message was changed in place: %s", m.Raw)
	}
	scan(t, string(out))
	return string(out)
}

// value decodes JSON without rounding numbers.
func value(t testing.TB, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("cannot decode %s: %v", raw, err)
	}
	return v
}

// sameJSON compares by meaning.
func sameJSON(t testing.TB, got, want string) {
	t.Helper()
	if d := cmp.Diff(value(t, []byte(want)), value(t, []byte(got))); d != "" {
		t.Errorf("got  %s\nwant %s\n%s", got, want, d)
	}
}

func result(t testing.TB, body string) *framing.Message {
	t.Helper()
	return scan(t, `{"jsonrpc":"2.0","id":57,"result":`+body+`}`)
}

// resultOf is the raw result of a response.
func resultOf(t testing.TB, raw string) string {
	t.Helper()
	m := scan(t, raw)
	return string(m.Bytes(m.Result))
}

func eras(t testing.TB, direction string) (from, to mcp.Era) {
	t.Helper()
	switch direction {
	case "legacy-to-modern":
		return mcp.Legacy, mcp.Modern
	case "modern-to-legacy":
		return mcp.Modern, mcp.Legacy
	case "legacy-to-legacy":
		return mcp.Legacy, mcp.Legacy
	case "b3-to-any":
		return mcp.Modern, mcp.Modern
	}
	t.Fatalf("unknown direction %q", direction)
	return 0, 0
}
