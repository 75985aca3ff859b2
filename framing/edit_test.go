package framing_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"mcpbridge/framing"
	"pgregory.net/rapid"
)

func edit(raw string, ops ...framing.Op) string {
	b := []byte(raw)
	obj := framing.Span{Start: uint32(strings.IndexByte(raw, '{')), End: uint32(strings.LastIndexByte(raw, '}') + 1)}
	return string(framing.Rewrite(b, framing.EditObject(nil, b, obj, framing.Members(b, obj), ops...)).Bytes())
}

func set(name, value string) framing.Op { return framing.Op{Name: name, Value: []byte(value)} }
func del(name string) framing.Op        { return framing.Op{Name: name} }

func TestEditObject(t *testing.T) {
	tests := []struct {
		raw  string
		ops  []framing.Op
		want string
	}{
		{`{}`, nil, `{}`},
		{`{ }`, []framing.Op{del("a")}, `{ }`},
		{`{}`, []framing.Op{set("a", "1")}, `{"a":1}`},
		{`{ }`, []framing.Op{set("a", "1"), set("b", "2")}, `{"a":1,"b":2 }`},
		{`{"a":1}`, []framing.Op{del("a")}, `{}`},
		{`{ "a" : 1 }`, []framing.Op{del("a")}, `{  }`},
		{`{ "a" : 1 }`, []framing.Op{set("a", "2")}, `{ "a" : 2 }`},
		{`{"a":1,"b":2,"c":3}`, []framing.Op{del("a")}, `{"b":2,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, []framing.Op{del("b")}, `{"a":1,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, []framing.Op{del("c")}, `{"a":1,"b":2}`},
		{`{"a":1,"b":2,"c":3}`, []framing.Op{del("a"), del("b")}, `{"c":3}`},
		{`{"a":1,"b":2,"c":3}`, []framing.Op{del("c"), del("b")}, `{"a":1}`},
		{`{"a":1,"b":2,"c":3}`, []framing.Op{del("a"), del("c")}, `{"b":2}`},
		{`{"a":1,"b":2,"c":3}`, []framing.Op{del("a"), del("b"), del("c")}, `{}`},
		{`{"a":1,"b":2,"c":3,"d":4,"e":5}`, []framing.Op{del("b"), del("d")}, `{"a":1,"c":3,"e":5}`},
		{`{"a":1}`, []framing.Op{set("b", "2")}, `{"a":1,"b":2}`},
		{`{"a":1}`, []framing.Op{del("a"), set("b", "2")}, `{"b":2}`},
		{`{"a":1,"b":2}`, []framing.Op{del("b"), set("c", "3"), set("d", "4")}, `{"a":1,"c":3,"d":4}`},
		{`{"a":1,"b":2}`, []framing.Op{del("a"), del("b"), set("c", "3"), set("d", "4")}, `{"c":3,"d":4}`},
		{`{"a":1,"b":2}`, []framing.Op{del("a"), set("b", "3"), set("c", "4")}, `{"b":3,"c":4}`},
		{`{"a":1,"b":2}`, []framing.Op{set("z", "1"), set("y", "2")}, `{"a":1,"b":2,"z":1,"y":2}`},
		{`{"a":1}`, []framing.Op{del("a"), set("a", "2")}, `{"a":2}`},
		{`{"a":1}`, []framing.Op{set("a", "2"), del("a")}, `{}`},
		{`{}`, []framing.Op{set("a", "1"), set("a", "2")}, `{"a":2}`},
		{`{}`, []framing.Op{set("a", "1"), del("a")}, `{}`},
		{`{"\u0061":1,"A":2}`, []framing.Op{set("a", "9")}, `{"\u0061":9,"A":2}`},
		{`{"b":1,"a":1,"a":2,"c":{"a":3}}`, []framing.Op{del("a")}, `{"b":1,"c":{"a":3}}`},
		{`{"b":1,"a":1,"x":0,"a":2}`, []framing.Op{set("a", "9")}, `{"b":1,"a":9,"x":0}`},
		{`{}`, []framing.Op{set("a\"\n", `{}`)}, `{"a\"\n":{}}`},
		{"{\n  \"a\" : 1 ,\n  \"b\" : 2 ,\n  \"c\" : 3\n}", []framing.Op{del("b")}, "{\n  \"a\" : 1 ,\n  \"c\" : 3\n}"},
		{"{\n  \"a\" : 1 ,\n  \"b\" : 2\n}", []framing.Op{del("b"), set("c", "3")}, "{\n  \"a\" : 1,\"c\":3\n}"},
	}
	for _, tt := range tests {
		if got := edit(tt.raw, tt.ops...); got != tt.want {
			t.Errorf("%s with %v: %s, want %s", tt.raw, tt.ops, got, tt.want)
		}
	}
}

// An object inside a message, edits of several objects together, edits already collected kept.
func TestEditObjectInside(t *testing.T) {
	m := mustScan(t, `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"_meta":{"x":1}},"keep":1.10}`)
	edits := []framing.Edit{{At: m.ID, New: []byte(`"new"`)}}
	edits = framing.EditObject(edits, m.Raw, m.Params, m.ParamMembers(), del("a"), set("b", "2"))
	edits = framing.EditObject(edits, m.Raw, m.Meta, m.MetaMembers(), del("x"), set("y", "3"))
	got := string(framing.Rewrite(m.Raw, edits).Bytes())
	if want := `{"jsonrpc":"2.0","id":"new","method":"m","params":{"_meta":{"y":3},"b":2},"keep":1.10}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// pair is one member as its bytes stand in a text.
type pair struct{ name, key, value string }

// pairs reads the direct members of an object with an independent decoder.
func pairs(t interface{ Fatalf(string, ...any) }, raw []byte) []pair {
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	if tok, err := d.ReadToken(); err != nil || tok.Kind() != '{' {
		t.Fatalf("no object: %.200q: %v", raw, err)
	}
	var out []pair
	for d.PeekKind() != '}' {
		key, err := d.ReadValue()
		if err != nil {
			t.Fatalf("%.200q: %v", raw, err)
		}
		p := pair{key: string(key)}
		name, err := jsontext.AppendUnquote(nil, key)
		if err != nil {
			t.Fatalf("%q: %v", key, err)
		}
		value, err := d.ReadValue()
		if err != nil {
			t.Fatalf("%.200q: %v", raw, err)
		}
		p.name, p.value = string(name), string(value)
		out = append(out, p)
	}
	return out
}

// model does what EditObject promises on a list of members.
func model(list []pair, ops []framing.Op) []pair {
	final := map[string][]byte{}
	for _, op := range ops {
		final[op.Name] = op.Value
	}
	var out []pair
	met := map[string]bool{}
	for _, p := range list {
		value, named := final[p.name]
		switch {
		case !named:
			out = append(out, p)
		case value != nil && !met[p.name]:
			out = append(out, pair{p.name, p.key, string(value)})
		}
		met[p.name] = true
	}
	for i, op := range ops {
		last := true
		for _, later := range ops[i+1:] {
			last = last && later.Name != op.Name
		}
		if last && op.Value != nil && !met[op.Name] {
			out = append(out, pair{op.Name, string(framing.AppendString(nil, op.Name)), string(op.Value)})
		}
	}
	return out
}

var (
	genSpace = rapid.StringMatching(`[ \t\r\n]{0,2}`)
	genName  = rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "_meta", "", "é"}), rapid.StringN(0, 6, -1))
	genValue = rapid.OneOf(rapid.SampledFrom([]string{`1`, `1.10`, `12345678901234567890`, `null`, `true`, `""`, `"\u00e9\n"`, `{}`, `[ ]`, `{"a":1, "a":2}`, `[1,{"b":"}"}]`, `"],}"`}),
		rapid.Custom(func(t *rapid.T) string {
			return string(framing.AppendString(nil, rapid.String().Draw(t, "text")))
		}))
)

// spell writes a name as a literal, sometimes with needless escapes.
func spell(t *rapid.T, name string) string {
	if rapid.Bool().Draw(t, "plain") {
		return string(framing.AppendString(nil, name))
	}
	var b strings.Builder
	for _, r := range name {
		if r > 0xffff {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return `"` + b.String() + `"`
}

// genObject makes an object of n members and returns the pieces between which nothing may change.
func genObject(t *rapid.T, n int) string {
	var b strings.Builder
	b.WriteString("{" + genSpace.Draw(t, "space"))
	for i := range n {
		if i > 0 {
			b.WriteString(genSpace.Draw(t, "space") + "," + genSpace.Draw(t, "space"))
		}
		b.WriteString(spell(t, genName.Draw(t, "name")) + genSpace.Draw(t, "space") + ":" + genSpace.Draw(t, "space") + genValue.Draw(t, "value"))
	}
	b.WriteString(genSpace.Draw(t, "space") + "}")
	return b.String()
}

func genOps(t *rapid.T) []framing.Op {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) framing.Op {
		if rapid.Bool().Draw(t, "remove") {
			return del(genName.Draw(t, "name"))
		}
		return set(genName.Draw(t, "name"), genValue.Draw(t, "value"))
	}), 0, 6).Draw(t, "ops")
}

func comparePairs(t interface{ Fatalf(string, ...any) }, got, want []pair, about string) {
	if len(got) != len(want) {
		t.Fatalf("%s: %d members, want %d: %q, want %q", about, len(got), len(want), got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: member %d is %q, want %q", about, i, got[i], want[i])
		}
	}
}

// Against decode, edit, compare: the same members in the same order, and the bytes of all that is not named unchanged.
func TestEditObjectProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := genObject(t, rapid.IntRange(0, 8).Draw(t, "members"))
		before, after := rapid.SampledFrom([]string{"", `{"x":`, `[{"a":0},`}).Draw(t, "before"), ""
		if before != "" {
			after = map[byte]string{'{': ` ,"y":1}`, '[': ` ]`}[before[0]]
		}
		raw := []byte(before + object + after)
		obj := framing.Span{Start: uint32(len(before)), End: uint32(len(before) + len(object))}
		ops := genOps(t)
		edits := framing.EditObject(nil, raw, obj, framing.Members(raw, obj), ops...)
		got := framing.Rewrite(raw, edits).Bytes()
		if !framing.Valid(got) {
			t.Fatalf("%s with %v: not JSON: %s", raw, ops, got)
		}
		inner, ok := bytes.CutPrefix(got, []byte(before))
		inner, ok2 := bytes.CutSuffix(inner, []byte(after))
		if !ok || !ok2 {
			t.Fatalf("bytes around the object changed: %s", got)
		}
		comparePairs(t, pairs(t, inner), model(pairs(t, []byte(object)), ops), fmt.Sprintf("%s with %v: %s", object, ops, inner))
		if len(edits) == 0 && !bytes.Equal(got, raw) {
			t.Fatalf("no edits, other bytes")
		}
		checkOutsideEdits(t, raw, got, edits)
	})
}

// checkOutsideEdits checks that every byte no edit covers is still there, in order, with nothing else between.
func checkOutsideEdits(t interface{ Fatalf(string, ...any) }, raw, got []byte, edits []framing.Edit) {
	sorted := append([]framing.Edit(nil), edits...)
	for i := range sorted { // insertion sort: independent of the code under test, and stable
		for j := i; j > 0 && (sorted[j].At.Start < sorted[j-1].At.Start || sorted[j].At.Start == sorted[j-1].At.Start && sorted[j].At.End < sorted[j-1].At.End); j-- {
			sorted[j], sorted[j-1] = sorted[j-1], sorted[j]
		}
	}
	at := 0
	for _, e := range sorted {
		keep := raw[at:e.At.Start]
		if !bytes.HasPrefix(got, keep) || !bytes.HasPrefix(got[len(keep):], e.New) {
			t.Fatalf("bytes before or in the edit at %d differ", e.At.Start)
		}
		got, at = got[len(keep)+len(e.New):], int(e.At.End)
	}
	if !bytes.Equal(got, raw[at:]) {
		t.Fatalf("bytes behind the last edit differ")
	}
}

// Messages up to 1 MiB through scan, edits at three levels and rewrite: semantics by an independent decoder, bytes
// outside the edits unchanged (FRM-30).
func TestRewriteLargeMessages(t *testing.T) {
	filler := strings.Repeat(`"\u00e9 1.10 読む",12345678901234567890, {"a":1,"a":2} ,`, 1<<20/50)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(0, 1<<20), rapid.IntRange(64<<10-400, 64<<10+100), rapid.IntRange(0, 2000)).Draw(t, "size")
		pad := filler[:0]
		if i := strings.LastIndex(filler[:size], `} ,`); i >= 0 {
			pad = filler[:i+3]
		}
		big := "[" + pad + "0]"
		params := `{"name":"t", "big": ` + big + ` ,"_meta":{"progressToken":1,"v/k":{"a":1}},"tail":` + big[:1] + `]}`
		raw := []byte(`{"jsonrpc":"2.0", "id":1,"method":"tools/call","params":` + params + `,"extra": 1.10}`)
		m, err := framing.Scan(raw)
		if err != nil {
			t.Fatalf("%v", err)
		}
		top, inner, meta := genOps(t), []framing.Op{del("tail"), set("name", `"other"`)}, genOps(t)
		for i := range top {
			if top[i].Name == "params" {
				top[i].Name = "other"
			}
		}
		edits := framing.EditObject(nil, raw, framing.Span{End: uint32(len(raw))}, m.TopMembers(), top...)
		edits = framing.EditObject(edits, raw, m.Params, m.ParamMembers(), inner...)
		edits = framing.EditObject(edits, raw, m.Meta, m.MetaMembers(), meta...)
		order := rapid.Permutation(edits).Draw(t, "order")
		f := framing.Rewrite(raw, order)
		got := f.Bytes()
		if f.Len() != len(got) || !bytes.Equal(bytes.Join(f.Parts(), nil), got) {
			t.Fatalf("Len, Parts and Bytes differ")
		}
		checkOutsideEdits(t, raw, got, edits)
		wantTop := model(pairs(t, raw), top)
		gotTop := pairs(t, got)
		for i := range wantTop {
			if wantTop[i].name != "params" {
				continue
			}
			if i >= len(gotTop) || gotTop[i].name != "params" {
				t.Fatalf("params moved")
			}
			wantParams, gotParams := model(pairs(t, []byte(wantTop[i].value)), inner), pairs(t, []byte(gotTop[i].value))
			for j := range wantParams {
				if wantParams[j].name == "_meta" && j < len(gotParams) {
					comparePairs(t, pairs(t, []byte(gotParams[j].value)), model(pairs(t, []byte(wantParams[j].value)), meta), "_meta")
					wantParams[j].value = gotParams[j].value
				}
			}
			comparePairs(t, gotParams, wantParams, "params")
			wantTop[i].value = gotTop[i].value
		}
		comparePairs(t, gotTop, wantTop, "message")
	})
}
