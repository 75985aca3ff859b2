package mirror

import (
	"errors"
	"strings"
	"testing"

	"mcpbridge/framing"
)

var checkParams = []Param{
	{Header: "S", Path: []string{"s"}, Type: String},
	{Header: "I", Path: []string{"i"}, Type: Integer},
	{Header: "B", Path: []string{"b"}, Type: Boolean},
	{Header: "T", Path: []string{"o", "t"}, Type: String},
}

func TestCheck(t *testing.T) {
	type headers map[string][]string
	tests := []struct {
		name    string
		args    string
		headers headers
		at      string // header of the Mismatch, "" if all is well
		reason  string
	}{
		{"no arguments", ``, nil, "", ""},
		{"no object", `["s"]`, nil, "", ""},
		{"header without arguments", ``, headers{"S": {""}}, "Mcp-Param-S", reasonExtra},
		{"header for null", `{"s":null}`, headers{"S": {"null"}}, "Mcp-Param-S", reasonExtra},
		{"all", `{"s":"x","i":7,"b":false,"o":{"t":"ü"}}`, headers{"S": {"x"}, "I": {"7"}, "B": {"false"}, "T": {"=?base64?w7w=?="}}, "", ""},
		{"first of several", `{"b":true,"s":"x"}`, nil, "Mcp-Param-S", reasonMissing},
		{"differs", `{"s":"x"}`, headers{"S": {"X"}}, "Mcp-Param-S", reasonDiffers},
		{"twice", `{"s":"x"}`, headers{"S": {"x", "x"}}, "Mcp-Param-S", reasonRepeated},
		{"twice for absent", `{}`, headers{"S": {"x", "x"}}, "Mcp-Param-S", reasonExtra},
		{"raw bytes", `{"s":"ü"}`, headers{"S": {"ü"}}, "Mcp-Param-S", reasonCharacters},
		{"undecodable", `{"s":"x"}`, headers{"S": {"=?base64?x?="}}, "Mcp-Param-S", reasonUndecoded},
		{"argument twice", `{"s":"x","s":"y"}`, headers{"S": {"x"}}, "Mcp-Param-S", reasonTwice},
		{"way twice", `{"o":{"t":"x"},"o":{}}`, headers{"T": {"x"}}, "Mcp-Param-T", reasonTwice},
		{"twin elsewhere", `{"q":1,"q":2,"s":"x"}`, headers{"S": {"x"}}, "", ""},
		{"escaped value", `{"s":"\u0078\n"}`, headers{"S": {"=?base64?eAo=?="}}, "", ""},
		{"object", `{"s":{"a":1}}`, headers{"S": {`{"a":1}`}}, "Mcp-Param-S", reasonStructured},
		{"array", `{"s":["x"]}`, headers{"S": {"x"}}, "Mcp-Param-S", reasonStructured},
		{"object without header", `{"s":{}}`, nil, "Mcp-Param-S", reasonMissing},
		{"number for string", `{"s":42}`, headers{"S": {"42"}}, "", ""},
		{"boolean for string", `{"s":true}`, headers{"S": {"true"}}, "", ""},
		{"string for boolean", `{"b":"true"}`, headers{"B": {"true"}}, "", ""},
		{"string for integer", `{"i":"42"}`, headers{"I": {"42.0"}}, "Mcp-Param-I", reasonDiffers},
		{"fraction, same spelling", `{"i":1.50}`, headers{"I": {"1.50"}}, "", ""},
		{"fraction, other spelling", `{"i":1.50}`, headers{"I": {"1.5"}}, "Mcp-Param-I", reasonDiffers},
		{"fraction in the header", `{"i":1}`, headers{"I": {"1.5"}}, "Mcp-Param-I", reasonDiffers},
		{"exponent in the body", `{"i":1e3}`, headers{"I": {"1000"}}, "", ""},
		{"exponent in the header", `{"i":1000}`, headers{"I": {"1e3"}}, "Mcp-Param-I", reasonDecimal},
		{"minus zero", `{"i":-0}`, headers{"I": {"0"}}, "", ""},
		{"sign", `{"i":-5}`, headers{"I": {"5"}}, "Mcp-Param-I", reasonDiffers},
		{"at the edge", `{"i":9007199254740991}`, headers{"I": {"9007199254740991.0"}}, "", ""},
		{"beyond in the header", `{"i":9007199254740991}`, headers{"I": {"9007199254740992"}}, "Mcp-Param-I", reasonDiffers},
		{"beyond in both", `{"i":9007199254740992}`, headers{"I": {"9007199254740992"}}, "Mcp-Param-I", reasonUnsafe},
		{"white space", `{"b":true}`, headers{"B": {"\ttrue "}}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Check(checkParams, []byte(tt.args), func(name string) []string { return tt.headers[name] })
			wantMismatch(t, err, tt.at, tt.reason)
		})
	}
}

func wantMismatch(t *testing.T, err error, header, reason string) {
	t.Helper()
	if header == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	var m *Mismatch
	if !errors.As(err, &m) || m.Header != header || m.Reason != reason {
		t.Errorf("got %v, want header %s: %s", err, header, reason)
	}
}

// HTTP-M-25, HTTP-M-27, HTTP-M-31..33.
func TestCheckPlain(t *testing.T) {
	tests := []struct {
		headers []string
		want    string
		reason  string
	}{
		{[]string{"tools/list"}, "tools/list", ""},
		{[]string{"\t tools/list "}, "tools/list", ""},
		{nil, "tools/list", reasonMissing},
		{[]string{}, "", reasonMissing},
		{[]string{"a", "a"}, "a", reasonRepeated},
		{[]string{"Tools/list"}, "tools/list", reasonDiffers},
		{[]string{""}, "tools/list", reasonDiffers},
		{[]string{"tools/list, tools/list"}, "tools/list", reasonDiffers},
		{[]string{"=?base64?YQ==?="}, "a", reasonDiffers},
		{[]string{"=?base64?YQ==?="}, "=?base64?YQ==?=", ""},
		{[]string{"größe"}, "größe", reasonCharacters},
		{[]string{"a\x7f"}, "a\x7f", reasonCharacters},
	}
	for _, tt := range tests {
		header := "Mcp-Method"
		if tt.reason == "" {
			header = ""
		}
		wantMismatch(t, CheckPlain(tt.headers, "Mcp-Method", tt.want), header, tt.reason)
	}
}

func TestCheckName(t *testing.T) {
	wantMismatch(t, CheckName(nil, ""), "Mcp-Name", reasonMissing)
	wantMismatch(t, CheckName([]string{""}, ""), "", "")
	wantMismatch(t, CheckName([]string{"a", "b"}, "a"), "Mcp-Name", reasonRepeated)
	wantMismatch(t, CheckName([]string{"=?base64?YQ0KWC1FdmlsOiAx?="}, "a\r\nX-Evil: 1"), "", "")
}

// XMH-19, SEC-09: no value of a header or an argument shows in an error.
func TestErrorsHideValues(t *testing.T) {
	const secret = "hunter2"
	header := func(string) []string { return []string{secret} }
	for _, args := range []string{`{"s":"x` + secret + `"}`, `{"i":1}`, `{"b":true}`, `{}`, `{"s":"` + secret + `","s":1}`, `{"s":{"k":"` + secret + `"}}`} {
		err := Check(checkParams, []byte(args), header)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("Check(%s) = %v", args, err)
		}
	}
	for _, err := range []error{CheckName([]string{secret}, "x"), CheckName([]string{"=?base64?" + secret + "?="}, "x"), CheckPlain([]string{secret}, "H", "x")} {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("got %v", err)
		}
	}
	if _, _, err := EncodeValue([]byte("12345678901234567890"), Integer); err == nil || strings.Contains(err.Error(), "1234567") {
		t.Errorf("EncodeValue: %v", err)
	}
}

// The check of a large body costs a handful of small allocations.
func TestCheckAllocates(t *testing.T) {
	args := []byte(`{"query":"` + strings.Repeat("x", 1<<20) + `","region":"us"}`)
	params := []Param{{Header: "Region", Path: []string{"region"}, Type: String}}
	header := []string{"us"}
	got := testing.AllocsPerRun(100, func() {
		if err := Check(params, args, func(string) []string { return header }); err != nil {
			t.Fatal(err)
		}
	})
	if got > 10 {
		t.Errorf("Check allocates %.0f times", got)
	}
}

// Whatever EncodeValue sends, Check accepts; and Check is total.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"s":"x","i":7,"b":false,"o":{"t":"y"}}`), "x")
	f.Add([]byte(`{"s":"\u00fc","i":-4.20e1,"o":{"t":null}}`), "=?base64?w7w=?=")
	f.Add([]byte(`{"s":1,"s":2}`), "")
	f.Add([]byte(`{"o":{"o":{"t`), "a")
	f.Add([]byte(`{"i":1e`), "1e")
	f.Fuzz(func(t *testing.T, args []byte, value string) {
		err := Check(checkParams, args, func(string) []string { return []string{value} })
		if m := (*Mismatch)(nil); err != nil && !errors.As(err, &m) {
			t.Fatalf("Check = %v, want *Mismatch", err)
		}
		if !framing.Valid(args) {
			return
		}
		headers := make(map[string][]string)
		mirrored := true
		err = Each(checkParams, args, func(p *Param, value []byte) error {
			header, skip, err := EncodeValue(value, p.Type)
			if err == nil && !skip {
				headers[p.Header] = []string{header}
			}
			mirrored = mirrored && err == nil && (!skip || len(value) == 0 || framing.IsNull(value))
			return nil
		})
		if err != nil || !mirrored {
			return
		}
		if err := Check(checkParams, args, func(name string) []string { return headers[name] }); err != nil {
			t.Fatalf("Check refuses what EncodeValue made of %s: %v", args, err)
		}
	})
}
