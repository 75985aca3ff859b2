package framing_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"mcpbridge/framing"
	"pgregory.net/rapid"
)

func TestString(t *testing.T) {
	tests := map[string]string{
		`""`: "", `"a"`: "a", `"\"\\\/\b\f\n\r\t"`: "\"\\/\b\f\n\r\t", `"\u0041\u00e9\u4e16"`: "Aé世", `"\ud83d\uDE00x"`: "😀x", `"世\u0000界"`: "世\x00界",
		`"` + strings.Repeat(`\n`, 500) + `"`: strings.Repeat("\n", 500), `"` + strings.Repeat(`x`, 500) + `"`: strings.Repeat("x", 500),
	}
	for raw, want := range tests {
		if got, ok := framing.String([]byte(raw)); !ok || got != want {
			t.Errorf("String(%s) = %q, %v", raw, got, ok)
		}
	}
	for _, raw := range []string{``, `x`, `5`, `null`, `"`, `"a`, `a"`, `"a"b`, `"a" `, ` "a"`, `"\"`, `"\ud800"`, "\"\xff\"", `{}`} {
		if got, ok := framing.String([]byte(raw)); ok || got != "" {
			t.Errorf("String(%s) = %q, %v", raw, got, ok)
		}
	}
	raw := []byte(`"plain text that is long enough to need the heap"`)
	if n := testing.AllocsPerRun(100, func() { text, _ = framing.String(raw) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

var text string

func TestAppendString(t *testing.T) {
	if got := string(framing.AppendString([]byte("x"), "a\"\\\n\r\t\x00\x1f\x7f/é😀\u2028")); got != "x\"a\\\"\\\\\\n\\r\\t\\u0000\\u001f\x7f/é😀\u2028\"" {
		t.Errorf("got %s", got)
	}
	if got := string(framing.AppendString(nil, "a\xffb\xe4\xb8c\xed\xa0\x80")); got != `"a`+"\ufffdb\ufffd\ufffdc\ufffd\ufffd\ufffd"+`"` {
		t.Errorf("got %q", got)
	}
}

// String and AppendString agree with each other and with encoding/json.
func TestStringProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		if rapid.Bool().Draw(t, "valid") {
			s = rapid.String().Draw(t, "text")
		}
		lit := framing.AppendString(nil, s)
		var want string
		if err := json.Unmarshal(lit, &want); err != nil || !framing.Valid(lit) {
			t.Fatalf("AppendString(%q) = %s: %v", s, lit, err)
		}
		got, ok := framing.String(lit)
		if !ok || got != want || got != strings.ToValidUTF8(got, "?") || utf8.ValidString(s) && got != s {
			t.Fatalf("%q -> %s -> %q, %v", s, lit, got, ok)
		}
		other, _ := json.Marshal(s)
		if got, ok := framing.String(other); !ok || got != want {
			t.Fatalf("String(%s) = %q, want %q", other, got, want)
		}
	})
}

func TestTypes(t *testing.T) {
	tests := map[string]func([]byte) bool{
		"string": framing.IsString, "object": framing.IsObject, "array": framing.IsArray, "number": framing.IsNumber, "bool": framing.IsBool, "null": framing.IsNull,
	}
	values := map[string]string{`""`: "string", `{}`: "object", `[]`: "array", `0`: "number", `9`: "number", `-1`: "number", `true`: "bool", `false`: "bool", `null`: "null", ``: "none"}
	for raw, kind := range values {
		for name, is := range tests {
			if is([]byte(raw)) != (name == kind) {
				t.Errorf("Is %s of %q is wrong", name, raw)
			}
		}
	}
}

func TestValid(t *testing.T) {
	for _, raw := range []string{`0`, `-0`, `-0.0e-0`, `1E+2`, `10.01`, ` true `, "\n\t\r null\n", `"\u0000"`, `[]`, `[ ]`, `{ }`, `[[],{}]`, `{"a":{"a":1},"a":2}`, "\"\u007f\u0080\uffff\U0010ffff\"", `[1 , 2]`, `{"a" : 1}`} {
		if !framing.Valid([]byte(raw)) {
			t.Errorf("Valid(%q) = false", raw)
		}
	}
}

func TestMembersElementsLookup(t *testing.T) {
	raw := []byte(` {"a": [1, "x" ,{}, [ ]] , "b":{ }, "\u0061":null, "c":[ ]}`)
	obj := framing.Span{Start: 1, End: uint32(len(raw))}
	members := framing.Members(raw, obj)
	var got []string
	for _, m := range members {
		got = append(got, string(raw[m.Key.Start:m.Key.End])+"="+string(raw[m.Value.Start:m.Value.End]))
	}
	if s := strings.Join(got, "|"); s != `a=[1, "x" ,{}, [ ]]|b={ }|\u0061=null|c=[ ]` {
		t.Errorf("members %s", s)
	}
	v, dup := framing.Lookup(raw, members, "a")
	if !dup || raw[v.Start] != '[' {
		t.Errorf("Lookup a: %v, dup %v", v, dup)
	}
	got = nil
	for _, e := range framing.Elements(raw, v) {
		got = append(got, string(raw[e.Start:e.End]))
	}
	if s := strings.Join(got, "|"); s != `1|"x"|{}|[ ]` {
		t.Errorf("elements %s", s)
	}
	b, dup := framing.Lookup(raw, members, "b")
	if dup || string(raw[b.Start:b.End]) != "{ }" {
		t.Errorf("Lookup b: %v, dup %v", b, dup)
	}
	if m := framing.Members(raw, b); m == nil || len(m) != 0 {
		t.Errorf("members of an empty object: %v", m)
	}
	c, _ := framing.Lookup(raw, members, "c")
	if e := framing.Elements(raw, c); e == nil || len(e) != 0 {
		t.Errorf("elements of an empty array: %v", e)
	}
	if none, dup := framing.Lookup(raw, members, "A"); none.OK() || dup {
		t.Errorf("Lookup A: %v", none)
	}
	if framing.Members(raw, v) != nil || framing.Elements(raw, b) != nil || framing.Members(raw, framing.Span{}) != nil || framing.Elements(raw, framing.Span{}) != nil {
		t.Error("members of an array, elements of an object, or either of an absent span")
	}
	// A value that starts the text.
	if m := framing.Members([]byte(`{"a":1}`), framing.Span{End: 7}); len(m) != 1 {
		t.Errorf("members of a whole text: %v", m)
	}
}

func TestSplitBatch(t *testing.T) {
	raw := " [ {\"a\":[1,2]} ,5,\"x\\n\"\n, [ ] ] \n"
	list, err := framing.SplitBatch([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		got = append(got, string(e))
	}
	if s := strings.Join(got, "|"); s != `{"a":[1,2]}|5|"x\n"|[ ]` {
		t.Errorf("elements %s", s)
	}
	if list, err := framing.SplitBatch([]byte(" [ ] ")); err != nil || len(list) != 0 {
		t.Errorf("empty array: %v, %v", list, err)
	}
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, err := framing.SplitBatch(deep(framing.MaxDepth)); err != nil {
		t.Errorf("depth %d: %v", framing.MaxDepth, err)
	}
	for raw, code := range map[string]int{
		``: -32700, `[`: -32700, `[1`: -32700, `[1,`: -32700, `[1,]`: -32700, `[,]`: -32700, `[1 2]`: -32700, `[] x`: -32700, `[]]`: -32700, "[\"\xff\"]": -32700, `[01]`: -32700, `[{]`: -32700, `x`: -32700, `5 5`: -32700,
		`{}`: -32600, `5`: -32600, `"[]"`: -32600, ` null `: -32600, string(deep(framing.MaxDepth + 1)): -32700,
	} {
		_, err := framing.SplitBatch([]byte(raw))
		var e *framing.ScanError
		if !errors.As(err, &e) || e.Code != code {
			t.Errorf("SplitBatch(%.50q): %v, want code %d", raw, err, code)
		}
	}
}

// A limit is held at n and n+1, whatever the elements are, without memory spent (rule 4).
func TestArrayLonger(t *testing.T) {
	elements := []string{`1`, `{"a":[1,2],"b":","}`, `"x\",y"`, `[[],[1,2,3]]`, `"["`, `{"\\":"\\"}`, `"\\\""`, ` null `}
	for n := 1; n <= len(elements); n++ {
		raw := []byte(" [" + strings.Join(elements[:n], ",") + "] ")
		if list, err := framing.SplitBatch(raw); err != nil || len(list) != n {
			t.Fatalf("%s: %d elements, %v", raw, len(list), err)
		}
		if framing.ArrayLonger(raw, n) || framing.ArrayLonger(raw, n+1) || n > 1 && !framing.ArrayLonger(raw, n-1) {
			t.Errorf("%s has %d elements", raw, n)
		}
		if allocs := testing.AllocsPerRun(10, func() { framing.ArrayLonger(raw, n) }); allocs != 0 {
			t.Errorf("%v allocations", allocs)
		}
	}
	if framing.ArrayLonger([]byte("[ ]"), 1) {
		t.Error("an empty array has elements")
	}
	for _, none := range []string{``, `[`, `"`, `"\`, `[1,"\`, `]],[`, `5`} { // not valid: no verdict, no panic
		framing.ArrayLonger([]byte(none), 1)
	}
}
