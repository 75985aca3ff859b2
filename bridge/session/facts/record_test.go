package facts

import (
	"reflect"
	"strings"
	"testing"

	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/session"
)

func TestRecord(t *testing.T) {
	for _, f := range []session.Fact{
		{Level: mcp.NoLevel},
		{Level: 0, Used: at(1), End: at(2)},
		{Level: 7, Used: at(1), Running: true, Subscriptions: []string{`"a"`, `"` + strings.Repeat("x", 300) + `"`}},
		{Level: mcp.NoLevel, Buried: true, End: at(3)},
	} {
		got, ok := decode(encode(f))
		if !ok || !reflect.DeepEqual(got, f) {
			t.Errorf("%+v became %+v, %v", f, got, ok)
		}
	}
	full := encode(session.Fact{Level: 3, Subscriptions: []string{`"ab"`}})
	for n := range full {
		if _, ok := decode(full[:n]); ok && n != fixedSize {
			t.Errorf("a record cut to %d bytes is read", n)
		}
	}
	for i, b := range map[int]byte{0: 2, fixedSize: 5} {
		wrong := append([]byte(nil), full...)
		wrong[i] = b
		if _, ok := decode(wrong); ok {
			t.Errorf("a record with byte %d wrong is read", i)
		}
	}
	full[2] = 200
	if f, ok := decode(full); !ok || f.Level != mcp.NoLevel {
		t.Errorf("a level nobody knows: %+v, %v", f, ok)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(session.Fact{Level: 3, Used: at(1), End: at(2), Subscriptions: []string{`"a"`}}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		fact, ok := decode(b)
		if !ok {
			return
		}
		if back, ok := decode(encode(fact)); !ok || !reflect.DeepEqual(back, fact) {
			t.Errorf("%+v became %+v", fact, back)
		}
	})
}
