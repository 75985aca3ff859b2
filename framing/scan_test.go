package framing_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"mcpbridge/framing"
)

func mustScan(t testing.TB, text string) *framing.Message {
	t.Helper()
	m, err := framing.Scan([]byte(text))
	if err != nil {
		t.Fatalf("Scan(%.200q): %v", text, err)
	}
	return m
}

func scanError(t testing.TB, text string) *framing.ScanError {
	t.Helper()
	m, err := framing.Scan([]byte(text))
	if err == nil {
		t.Fatalf("Scan(%.200q) accepted as %v", text, m.Kind)
	}
	if m != nil {
		t.Errorf("Scan(%.200q) returned a message beside an error", text)
	}
	var e *framing.ScanError
	if !errors.As(err, &e) {
		t.Fatalf("Scan(%.200q): error of type %T", text, err)
	}
	if e.Reason == "" || !strings.HasPrefix(e.Error(), "cannot read message: ") {
		t.Errorf("Scan(%.200q): error text %q", text, e.Error())
	}
	if e.Offset < 0 || e.Offset > len(text) {
		t.Errorf("Scan(%.200q): offset %d lies outside", text, e.Offset)
	}
	return e
}

func TestScanKinds(t *testing.T) {
	tests := []struct {
		text                      string
		kind                      framing.Kind
		id, method, params        string
		result, errorObject, meta string
	}{
		{text: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, kind: framing.Request, id: `1`, method: `"ping"`},
		{text: `{"jsonrpc":"2.0","method":"n"}`, kind: framing.Notification, method: `"n"`},
		{text: `{"method":"ping","jsonrpc":"2.0","id":"x"}`, kind: framing.Request, id: `"x"`, method: `"ping"`},
		{text: `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"a":1},"b":2}}`, kind: framing.Request, id: `1`, method: `"m"`, params: `{"_meta":{"a":1},"b":2}`, meta: `{"a":1}`},
		{text: `{"jsonrpc":"2.0","id":1,"method":"m","params":[1,{}]}`, kind: framing.Request, id: `1`, method: `"m"`, params: `[1,{}]`},
		{text: `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":5}}`, kind: framing.Request, id: `1`, method: `"m"`, params: `{"_meta":5}`},
		{text: `{"jsonrpc":"2.0","id":1,"result":{"_meta":{},"x":[]}}`, kind: framing.Result, id: `1`, result: `{"_meta":{},"x":[]}`, meta: `{}`},
		{text: `{"jsonrpc":"2.0","id":1,"result":null}`, kind: framing.Result, id: `1`, result: `null`},
		{text: `{"jsonrpc":"2.0","id":1,"result":{},"params":{"_meta":{"q":1},"a":1,"a":2}}`, kind: framing.Result, id: `1`, result: `{}`},
		{text: `{"jsonrpc":"2.0","id":1,"params":{"_meta":{"q":1}},"result":{"_meta":{"r":1}}}`, kind: framing.Result, id: `1`, result: `{"_meta":{"r":1}}`, meta: `{"r":1}`},
		{text: `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`, kind: framing.Error, id: `1`, errorObject: `{"code":-32601,"message":"no"}`},
		{text: `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`, kind: framing.Error, errorObject: `{"code":1,"message":""}`},
		{text: `{"jsonrpc":"2.0","error":{"message":"m","data":[1],"code":0}}`, kind: framing.Error, errorObject: `{"message":"m","data":[1],"code":0}`},
		{text: " \t\r\n{\n \"jsonrpc\" :\t\"2.0\" , \"id\" : 1,\r\n\"method\":\"p\" }\n", kind: framing.Request, id: `1`, method: `"p"`},
		{text: `{"jsonrpc":"2.0","\u0069d":7,"\u006dethod":"p","par\u0061ms":{"\u005fmeta":{"k":0}}}`, kind: framing.Request, id: `7`, method: `"p"`, params: `{"\u005fmeta":{"k":0}}`, meta: `{"k":0}`},
		{text: `{"jsonrpc":"\u0032.0","id":1,"method":"p"}`, kind: framing.Request, id: `1`, method: `"p"`},
		{text: `{"jsonrpc":"2.0","id":1,"method":"p","x":{"a":1,"a":2},"params":{"arguments":{"a":1,"a":2}}}`, kind: framing.Request, id: `1`, method: `"p"`, params: `{"arguments":{"a":1,"a":2}}`},
	}
	for _, tt := range tests {
		m := mustScan(t, tt.text)
		if want := strings.Trim(tt.text, " \t\r\n"); string(m.Raw) != want {
			t.Errorf("%s: Raw is %q", tt.text, m.Raw)
		}
		if m.Kind.String() != map[framing.Kind]string{framing.Request: "request", framing.Notification: "notification", framing.Result: "result", framing.Error: "error"}[tt.kind] || framing.Invalid.String() != "invalid" {
			t.Errorf("%s: kind spelt %v", tt.text, m.Kind)
		}
		if m.Kind != tt.kind {
			t.Errorf("%s: kind %v, want %v", tt.text, m.Kind, tt.kind)
		}
		for _, part := range []struct {
			name string
			span framing.Span
			want string
		}{{"id", m.ID, tt.id}, {"method", m.Method, tt.method}, {"params", m.Params, tt.params}, {"result", m.Result, tt.result}, {"error", m.Error, tt.errorObject}, {"meta", m.Meta, tt.meta}} {
			if got := m.Bytes(part.span); string(got) != part.want || (got == nil) != (part.want == "") {
				t.Errorf("%s: %s is %q, want %q", tt.text, part.name, got, part.want)
			}
		}
	}
}

// FRM-08: ids are strings or integers and keep their spelling.
func TestScanIDs(t *testing.T) {
	for _, id := range []string{`0`, `-0`, `-1`, `1`, `""`, `"1"`, `9007199254740991`, `9007199254740993`, `123456789012345678901234567890`, `"\u0041é"`, `"a\"b"`} {
		m := mustScan(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`)
		if got := string(m.Bytes(m.ID)); got != id {
			t.Errorf("id %s came back as %s", id, got)
		}
	}
	for _, id := range []string{`null`, `true`, `false`, `1.5`, `1.0`, `1e3`, `1E3`, `{}`, `[]`, `[1]`} {
		e := scanError(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`)
		if e.Code != -32600 || e.ID != nil || e.Kind != framing.Request {
			t.Errorf("id %s: code %d, id %q, kind %v", id, e.Code, e.ID, e.Kind)
		}
	}
}

func TestScanRefusesShapes(t *testing.T) {
	tests := []struct {
		text string
		kind framing.Kind
		id   string
	}{
		{`{}`, framing.Invalid, ""},
		{`{"jsonrpc":"2.0","id":4}`, framing.Invalid, "4"},
		{`{"level":"info","msg":"up"}`, framing.Invalid, ""},
		{`{"id":1,"method":"m"}`, framing.Request, "1"},                  // FRM-01
		{`{"jsonrpc":"1.0","id":1,"method":"m"}`, framing.Request, "1"},  // FRM-01
		{`{"jsonrpc":2.0,"id":1,"method":"m"}`, framing.Request, "1"},    // FRM-01
		{`{"jsonrpc":"2.0 ","id":1,"method":"m"}`, framing.Request, "1"}, // FRM-01
		{`{"JSONRPC":"2.0","id":1,"method":"m"}`, framing.Request, "1"},  // FRM-34
		{`{"jsonrpc":"2.0","ID":1,"result":{}}`, framing.Result, ""},     // FRM-34
		{`{"jsonrpc":"2.0","id":null,"result":{}}`, framing.Result, ""},  // FRM-12
		{`{"jsonrpc":"2.0","result":{}}`, framing.Result, ""},            // FRM-12
		{`{"jsonrpc":"2.0","id":1,"method":5}`, framing.Request, "1"},    // method type
		{`{"jsonrpc":"2.0","id":1,"method":null}`, framing.Request, "1"}, // method type
		{`{"jsonrpc":"2.0","method":["m"]}`, framing.Notification, ""},   // method type
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, framing.Request, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}`, framing.Request, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":5}`, framing.Request, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, framing.Request, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","error":{"code":1,"message":"x"}}`, framing.Request, "1"},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`, framing.Result, "1"}, // FRM-13
		{`{"jsonrpc":"2.0","id":1,"error":null}`, framing.Error, "1"},                                  // FRM-13
		{`{"jsonrpc":"2.0","id":1,"error":"x"}`, framing.Error, "1"},
		{`{"jsonrpc":"2.0","id":1,"error":[]}`, framing.Error, "1"},
		{`{"jsonrpc":"2.0","id":1,"error":{}}`, framing.Error, "1"},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, framing.Error, "1"},
		{`{"jsonrpc":"2.0","id":1,"error":{"message":"x"}}`, framing.Error, "1"},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":"E1","message":"x"}}`, framing.Error, "1"},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"x"}}`, framing.Error, "1"},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":7}}`, framing.Error, "1"},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x","code":"y"}}`, framing.Error, "1"},
		{`{"jsonrpc":"2.0","id":true,"error":{"code":1,"message":"x"}}`, framing.Error, ""},
	}
	for _, tt := range tests {
		e := scanError(t, tt.text)
		if e.Code != -32600 || e.Kind != tt.kind || string(e.ID) != tt.id || e.Array {
			t.Errorf("%s: code %d kind %v id %q array %v; want -32600 %v %q", tt.text, e.Code, e.Kind, e.ID, e.Array, tt.kind, tt.id)
		}
	}
}

// FRM-34: duplicates among the members that are read, decoded and case-sensitive.
func TestScanDuplicates(t *testing.T) {
	const head = `{"jsonrpc":"2.0","id":1,"method":"m"`
	many := func(n int, last string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":0,`, i)
		}
		return b.String() + last
	}
	tests := []struct {
		text, id string
		dup      bool
	}{
		{head + `,"method":"n"}`, "1", true},
		{head + `,"m\u0065thod":"n"}`, "1", true},
		{head + `,"METHOD":"n"}`, "1", false},
		{head + `,"id":2}`, "", true},
		{head + `,"x":1,"x":1}`, "1", true},
		{head + `,"":1,"":1}`, "1", true},
		{head + `,"x":1,"X":1}`, "1", false},
		{head + `,"params":{},"params":{}}`, "1", true},
		{head + `,"params":{"name":"a","name":"b"}}`, "1", true},
		{head + `,"params":{"name":"a","n\u0061me":"b"}}`, "1", true},
		{head + `,"params":{"name":"a","Name":"b"}}`, "1", false},
		{head + `,"params":{"_meta":{},"_meta":{}}}`, "1", true},
		{head + `,"params":{"_meta":{},"_meta":1}}`, "1", true},
		{head + `,"params":{"_meta":{"a":1,"b":2,"a":1}}}`, "1", true},
		{head + `,"params":{"_meta":{"\ud83d\ude00":1,"😀":2}}}`, "1", true},
		{head + `,"params":{"_meta":{"x":{"a":1,"a":1}}}}`, "1", false},
		{head + `,"params":{"arguments":{"a":1,"a":2}}}`, "1", false},
		{head + `,"params":[{"a":1,"a":2}]}`, "1", false},
		{`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`, "1", true},
		{`{"jsonrpc":"2.0","id":1,"result":{"_meta":{"a":1,"a":2}}}`, "1", true},
		{`{"jsonrpc":"2.0","id":1,"result":[{"a":1,"a":2}]}`, "1", false},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x","data":1,"data":2}}`, "1", false},
		{head + `,"params":{` + many(31, `"k0":1`) + `}}`, "1", true},
		{head + `,"params":{` + many(31, `"z":1`) + `}}`, "1", false},
		{head + `,"params":{` + many(32, `"k31":1`) + `}}`, "1", true},
		{head + `,"params":{` + many(32, `"z":1`) + `}}`, "1", false},
		{head + `,"params":{` + many(1000, `"\u006b500":1`) + `}}`, "1", true},
		{head + `,"params":{` + many(1000, `"\u006b1000":1`) + `}}`, "1", false},
	}
	for _, tt := range tests {
		if !tt.dup {
			mustScan(t, tt.text)
			continue
		}
		if e := scanError(t, tt.text); e.Code != -32600 || string(e.ID) != tt.id || !strings.HasPrefix(e.Reason, "duplicate member") {
			t.Errorf("%.100s: code %d, id %q, reason %q; want a duplicate and id %q", tt.text, e.Code, e.ID, e.Reason, tt.id)
		}
	}
}

// FRM-02, RFC 8259: what is not JSON is -32700 and gives no id to echo.
func TestScanRefusesBrokenText(t *testing.T) {
	request := func(value string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":` + value + `}}`
	}
	texts := []string{
		``, ` `, `{`, `{"jsonrpc":`, `}`, "\xef\xbb\xbf{}", `{"a" 1}`, `{"a":1,}`, `{,}`, `{a:1}`, `{'a':1}`, `{"a":1 "b":2}`, `nul`, `[1`, `[1,]`, `[,]`, `"x`, `5 5`, `[] []`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"} x`, `{"jsonrpc":"2.0","id":1,"method":"ping"}}`, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\x00",
		"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", "{\"jsonrpc\":\"\xff\"}", "{\"\xff\":1}", "[\"\xff\"]",
		request(``), request(`]`), request(`{]`), request(`[}`), request(`{"a":1]`), request(`[1}`), request(`[1,]`), request(`[,1]`), request(`{"a":1,}`), request(`{"a"}`), request(`{1:2}`), request(`[1 2]`), request(`{"a":}`),
		request(`01`), request(`-`), request(`+1`), request(`.5`), request(`1.`), request(`1e`), request(`1e+`), request(`1.e1`), request(`-01`), request(`0x1`), request(`NaN`), request(`Infinity`), request(`1a`),
		request(`tru`), request(`truE`), request(`True`), request(`nulL`), request(`falsey`), request(`undefined`), request(`'x'`), request(`/**/1`),
		request("\"a\nb\""), request("\"a\x00b\""), request("\"a\x1fb\""), request("\"\t\""), request(`"\x"`), request(`"\u12"`), request(`"\u12g4"`), request(`"\U0041"`), request(`"\`), request(`"\"`),
		request(`"\ud800"`), request(`"\udc00"`), request(`"\ud800x"`), request(`"\ud800\u0041"`), request(`"\ud800\ud800"`), request(`"\udc00\ud800"`), request(`"\ud800\`), request(`"\ud800\udfg0"`),
		request("\"\x80\""), request("\"\xc0\x80\""), request("\"\xc1\xbf\""), request("\"\xc3\""), request("\"\xc3(\""), request("\"\xe2\x82\""), request("\"\xe0\x80\x80\""), request("\"\xe0\x9f\xbf\""), request("\"\xed\xa0\x80\""),
		request("\"\xf0\x8f\xbf\xbf\""), request("\"\xf4\x90\x80\x80\""), request("\"\xf5\x80\x80\x80\""), request("\"\xf0\x9f\x98\""), request("\"\xe4\xb8\xc3\""), request("\v1"), request("\u00a01"),
	}
	for _, text := range texts {
		e := scanError(t, text)
		if e.Code != -32700 || e.ID != nil || e.Kind != framing.Invalid || e.Array {
			t.Errorf("%q: code %d, id %q, kind %v, array %v", text, e.Code, e.ID, e.Kind, e.Array)
		}
		if framing.Valid([]byte(text)) {
			t.Errorf("Valid(%q)", text)
		}
	}
}

func TestScanOtherValues(t *testing.T) {
	for text, array := range map[string]bool{`5`: false, `"x"`: false, `null`: false, `true`: false, `-1.5e3`: false, `[]`: true, ` [1] `: true, `[{"jsonrpc":"2.0"}]`: true} {
		e := scanError(t, text)
		if e.Code != -32600 || e.Array != array || e.ID != nil || e.Kind != framing.Invalid {
			t.Errorf("%s: code %d, array %v, id %q, kind %v", text, e.Code, e.Array, e.ID, e.Kind)
		}
	}
}

func TestScanOffset(t *testing.T) {
	for text, want := range map[string]int{
		`  {"jsonrpc":"2.0","id":1,"method":x}`: 35, `  [1,x]`: 5, "\n{} {}": 4, `  {"jsonrpc":"2.0","id":1.5,"method":"m"}`: 24,
	} {
		if e := scanError(t, text); e.Offset != want {
			t.Errorf("%q: offset %d, want %d", text, e.Offset, want)
		}
	}
}

// Nesting is bound at n and n+1, for arrays, objects and mixtures, at every place of a message.
func TestScanDepth(t *testing.T) {
	nest := func(n int, open, inner, shut string) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
	}
	for _, n := range []int{1, 62, 63, 64, 65, 66, 127, 128, 129, 200, framing.MaxDepth - 2, framing.MaxDepth - 1, framing.MaxDepth, framing.MaxDepth + 1} {
		for name, value := range map[string]string{"arrays": nest(n, "[", "", "]"), "objects": nest(n, `{"a":`, "1", "}"), "mixed": nest(n/2, `{"a":[`, "1", "]}")} {
			depth := n
			if name == "mixed" {
				depth = n / 2 * 2
			}
			if got, want := framing.Valid([]byte(value)), depth <= framing.MaxDepth; got != want {
				t.Errorf("Valid of %d nested %s: %v", n, name, got)
			}
			_, err := framing.Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","x":` + value + `}`))
			if got, want := err == nil, depth+1 <= framing.MaxDepth; got != want {
				t.Errorf("Scan with %d nested %s at the top: %v", n, name, err)
			}
			_, err = framing.Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"x":` + value + `}}}`))
			if got, want := err == nil, depth+3 <= framing.MaxDepth; got != want {
				t.Errorf("Scan with %d nested %s in _meta: %v", n, name, err)
			}
		}
		// A wrong bracket at any distance is noticed: the kinds of all levels are remembered.
		wrong := strings.Repeat(`[{"a":`, n/2) + "1" + strings.Repeat("}]", n/2)
		if n > 1 {
			wrong = wrong[:len(wrong)-1] + "}"
			if framing.Valid([]byte(wrong)) {
				t.Errorf("wrong outermost bracket of %d accepted", n)
			}
		}
	}
}
