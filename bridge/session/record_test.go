package session

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

func TestRecord(t *testing.T) {
	full := record{uid: [16]byte{1, 15: 2}, issued: time.Unix(1, 999), server: [8]byte{3, 7: 4}, version: mcp.V20250618, params: []byte(`{"a":1}`)}
	for _, r := range []record{full, {issued: time.Unix(0, -1), version: "x", params: []byte{}}} {
		got, ok := decodeRecord(r.encode())
		if !ok || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v became %+v, %v", r, got, ok)
		}
	}
	raw := full.encode()
	for n := range len(raw) - len(full.params) {
		if _, ok := decodeRecord(raw[:n]); ok {
			t.Errorf("a record cut to %d bytes is read", n)
		}
	}
	raw[0]++
	if _, ok := decodeRecord(raw); ok {
		t.Error("a record of another format is read")
	}
}

// Names cannot be shifted between endpoint and principal.
func TestBound(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range [][2]string{{"", ""}, {"a", "b"}, {"", "ab"}, {"ab", ""}, {"a", ""}, {"", "a"}, {"\x01a", "b"}, {"\x01", "ab"}} {
		full := string(bound(n[0], bridge.Principal(n[1])))
		if seen[full] {
			t.Errorf("%q is bound as another", n)
		}
		seen[full] = true
	}
}

func FuzzDecodeRecord(f *testing.F) {
	r := record{issued: time.Unix(1, 0), version: mcp.V20251125, params: []byte(`{}`)}
	f.Add(r.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, ok := decodeRecord(b); ok && !bytes.Equal(r.encode(), b) {
			t.Errorf("%x is read as %+v", b, r)
		}
	})
}
