package framing_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"mcpbridge/framing"
)

// oracleJSON is the strict opinion of another implementation. Duplicate names are looked at separately, because they are
// refused at some levels only.
func oracleJSON(raw []byte) bool {
	return jsontext.Value(raw).IsValid(jsontext.AllowDuplicateNames(true))
}

// oracleMessage judges valid JSON the slow way: is it an acceptable message?
func oracleMessage(t testing.TB, raw []byte) bool {
	if bytes.TrimLeft(raw, " \t\r\n")[0] != '{' {
		return false
	}
	top, unique := asMap(pairs(t, raw))
	if !unique || unquote(top["jsonrpc"]) != "2.0" {
		return false
	}
	id, hasID := top["id"]
	okID := kind(id) == '"' || isInt(id)
	_, hasMethod := top["method"]
	res, hasResult := top["result"]
	fault, hasError := top["error"]
	switch {
	case hasMethod:
		p, hasParams := top["params"]
		return kind(top["method"]) == '"' && !hasResult && !hasError && (!hasID || okID) && (!hasParams || kind(p) == '{' || kind(p) == '[') && uniqueBody(t, p)
	case hasResult:
		return !hasError && okID && uniqueBody(t, res)
	case hasError:
		return (!hasID || okID || id == "null") && okError(t, fault)
	}
	return false
}

func okError(t testing.TB, fault string) bool {
	if kind(fault) != '{' {
		return false
	}
	var code, message bool
	for _, p := range pairs(t, []byte(fault)) {
		switch p.name {
		case "code":
			if code = isInt(p.value); !code {
				return false
			}
		case "message":
			if message = kind(p.value) == '"'; !message {
				return false
			}
		}
	}
	return code && message
}

func uniqueBody(t testing.TB, body string) bool {
	if kind(body) != '{' {
		return true
	}
	m, unique := asMap(pairs(t, []byte(body)))
	if unique && kind(m["_meta"]) == '{' {
		_, unique = asMap(pairs(t, []byte(m["_meta"])))
	}
	return unique
}

func asMap(list []pair) (map[string]string, bool) {
	m := map[string]string{}
	for _, p := range list {
		if _, dup := m[p.name]; dup {
			return m, false
		}
		m[p.name] = p.value
	}
	return m, true
}

func kind(raw string) byte {
	if raw == "" {
		return 0
	}
	return raw[0]
}

func isInt(raw string) bool {
	digits := strings.TrimPrefix(raw, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

func unquote(lit string) string {
	if kind(lit) != '"' {
		return ""
	}
	s, _ := jsontext.AppendUnquote(nil, lit)
	return string(s)
}

func FuzzScan(f *testing.F) {
	for _, s := range []string{
		smallRequest, `{"jsonrpc":"2.0","id":1,"result":{"_meta":{"a":1,"a":2}}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"\ud83d\ude00"}}`,
		`{"jsonrpc":"2.0","method":"m","params":[1,2.5e-3,[],{},"é"],"params":{}}`, "[{\"a\":\"\\u0061\xff\"}]", ` {"jsonrpc":"2.0","\u0069d":"\"","method":"a\/b"} `,
		strings.Repeat("[", 70) + strings.Repeat("]", 70), `"` + strings.Repeat("x", 40) + `世` + strings.Repeat(`\n`, 20) + `"`, `{"jsonrpc":"2.0","id":1,"result":{},"params":{"a":0,"a":0}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		given := bytes.Clone(raw)
		valid := oracleJSON(raw)
		if framing.Valid(raw) != valid {
			t.Fatalf("Valid(%q) = %v", raw, !valid)
		}
		m, err := framing.Scan(raw)
		want := valid && oracleMessage(t, raw)
		if (err == nil) != want {
			t.Fatalf("Scan(%q): %v; the oracle says %v", raw, err, want)
		}
		if !bytes.Equal(raw, given) {
			t.Fatal("Scan changed its input")
		}
		if err != nil {
			var e *framing.ScanError
			if !errors.As(err, &e) || (e.Code == -32700) == valid || e.Code != -32700 && e.Code != -32600 || e.Array != (valid && bytes.TrimLeft(raw, " \t\r\n")[0] == '[') {
				t.Fatalf("Scan(%q): %+v", raw, err)
			}
			return
		}
		comparePairs(t, asPairs(t, m, m.TopMembers()), pairs(t, m.Raw), "top level")
		for _, body := range []struct {
			at      framing.Span
			members []framing.Member
		}{{m.Params, m.ParamMembers()}, {m.Result, m.ResultMembers()}, {m.Meta, m.MetaMembers()}} {
			if b := m.Bytes(body.at); framing.IsObject(b) {
				comparePairs(t, asPairs(t, m, body.members), pairs(t, b), "body")
			} else if body.members != nil {
				t.Fatalf("members of no object in %q", raw)
			}
		}
	})
}

func asPairs(t testing.TB, m *framing.Message, members []framing.Member) (list []pair) {
	for _, mem := range members {
		key := `"` + string(m.Bytes(mem.Key)) + `"`
		if mem.Key.Len() == 0 {
			key = `""`
		}
		name, err := jsontext.AppendUnquote(nil, key)
		if err != nil || mem.Escaped != strings.Contains(key, `\`) {
			t.Fatalf("key %s, escaped %v: %v", key, mem.Escaped, err)
		}
		list = append(list, pair{string(name), key, string(m.Bytes(mem.Value))})
	}
	return list
}

func FuzzEditObject(f *testing.F) {
	f.Add([]byte(`{"a":1, "b":{"c":2} ,"\u0061":3}`), "a", []byte(`9`), "z", []byte(`[]`))
	f.Add([]byte(`{ }`), "", []byte(`""`), "b", []byte(nil))
	f.Add([]byte(`{"a":1,"b":2,"c":3}`), "a", []byte(nil), "c", []byte(nil))
	f.Fuzz(func(t *testing.T, raw []byte, name1 string, value1 []byte, name2 string, value2 []byte) {
		raw = bytes.Trim(raw, " \t\r\n")
		if !oracleJSON(raw) || raw[0] != '{' {
			return
		}
		ops := []framing.Op{{Name: name1, Value: value1}, {Name: name2, Value: value2}}
		for i := range ops {
			ops[i].Name = strings.ToValidUTF8(ops[i].Name, "?")
			if v := bytes.Trim(ops[i].Value, " \t\r\n"); oracleJSON(v) {
				ops[i].Value = v
			} else {
				ops[i].Value = nil
			}
		}
		obj := framing.Span{End: uint32(len(raw))}
		edits := framing.EditObject(nil, raw, obj, framing.Members(raw, obj), ops...)
		out := framing.Rewrite(raw, edits).Bytes()
		if !oracleJSON(out) {
			t.Fatalf("%q with %q: %q", raw, ops, out)
		}
		comparePairs(t, pairs(t, out), model(pairs(t, raw), ops), string(out))
		checkOutsideEdits(t, raw, out, edits)
	})
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("a\r\n\n bc\n\xef\xbb\xbfd"), 3, 1, 2)
	f.Add([]byte("\xef\xbb\xbf123456\r\n12345\r\n"), 5, 3, 4)
	f.Fuzz(func(t *testing.T, raw []byte, limit, size1, size2 int) {
		limit &= 63
		sizes := []int{1 + size1&31, 1 + size2&7}
		list, err := readAll(framing.NewReader(&chunked{data: raw, sizes: sizes, err: io.EOF}, limit))
		want := oracle(string(raw), limit)
		if err != io.EOF || len(list) != len(want) {
			t.Fatalf("%q: %+v, want %+v, %v", raw, list, want, err)
		}
		for i := range list {
			if list[i] != want[i] {
				t.Fatalf("%q: line %d is %+v, want %+v", raw, i, list[i], want[i])
			}
		}
	})
}
