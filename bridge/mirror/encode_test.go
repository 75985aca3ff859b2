package mirror

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mcpbridge/framing"
)

// ENC-02: what goes out is one field value, and it comes back as it was.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.String(),
			rapid.StringMatching(`[ \t]?[ -~\t]*[ \t]?`),
			rapid.StringMatching(`(=\?base64\?)?[A-Za-z0-9+/=? ]*(\?=)?`),
		).Draw(t, "text")
		header := Encode(text)
		if !clean(header) || header != trimOWS(header) || header == "" || strings.Contains(header, "\t") {
			t.Fatalf("Encode(%q) = %q is no safe field value", text, header)
		}
		for _, wire := range []string{header, " \t" + header + "\t "} {
			got, err := Decode(wire)
			if err != nil || got != text {
				t.Fatalf("Decode(%q) = %q, %v; want %q", wire, got, err, text)
			}
			if err := CheckName([]string{wire}, text); err != nil {
				t.Fatalf("CheckName(%q, %q): %v", wire, text, err)
			}
		}
	})
}

func TestEncodeValue(t *testing.T) {
	tests := []struct {
		raw    string
		typ    Type
		header string
		skip   bool
		unsafe bool
	}{
		{raw: "", typ: String, skip: true},
		{raw: "null", typ: String, skip: true},
		{raw: "null", typ: Integer, skip: true},
		{raw: "null", typ: Boolean, skip: true},
		{raw: `"42"`, typ: Integer, skip: true},
		{raw: `"true"`, typ: Boolean, skip: true},
		{raw: `42`, typ: String, skip: true},
		{raw: `42`, typ: Boolean, skip: true},
		{raw: `true`, typ: String, skip: true},
		{raw: `true`, typ: Integer, skip: true},
		{raw: `{}`, typ: Boolean, skip: true},
		{raw: `[1]`, typ: Integer, skip: true},
		{raw: `"\u0061\/"`, typ: String, header: "a/"},
		{raw: `"\ud83d\ude80"`, typ: String, header: "=?base64?8J+agA==?="},
		{raw: `true`, typ: Boolean, header: "true"},
		{raw: `-0`, typ: Integer, header: "0"},
		{raw: `0.000`, typ: Integer, header: "0"},
		{raw: `0e99999999999999999999999`, typ: Integer, header: "0"},
		{raw: `1E+2`, typ: Integer, header: "100"},
		{raw: `120e-1`, typ: Integer, header: "12"},
		{raw: `-1.20e1`, typ: Integer, header: "-12"},
		{raw: `0.00012e5`, typ: Integer, header: "12"},
		{raw: `10000000000000000000e-19`, typ: Integer, header: "1"},
		{raw: `125e-1`, typ: Integer, skip: true},
		{raw: `1e-99999999999999999999999`, typ: Integer, skip: true},
		{raw: `0.1`, typ: Integer, skip: true},
		{raw: `9007199254740991`, typ: Integer, header: "9007199254740991"},
		{raw: `9007199254740991.0`, typ: Integer, header: "9007199254740991"},
		{raw: `9007199254740992`, typ: Integer, unsafe: true},
		{raw: `-9007199254740991`, typ: Integer, header: "-9007199254740991"},
		{raw: `-9007199254740992`, typ: Integer, unsafe: true},
		{raw: `9999999999999999`, typ: Integer, unsafe: true},
		{raw: `1e16`, typ: Integer, unsafe: true},
		{raw: `1e99999999999999999999999`, typ: Integer, unsafe: true},
		{raw: `1` + strings.Repeat("0", 400), typ: Integer, unsafe: true},
		{raw: `1` + strings.Repeat("0", 400) + `e-400`, typ: Integer, header: "1"},
	}
	for _, tt := range tests {
		header, skip, err := EncodeValue([]byte(tt.raw), tt.typ)
		if header != tt.header || skip != tt.skip || errors.Is(err, ErrUnsafe) != tt.unsafe || (err != nil) != tt.unsafe {
			t.Errorf("EncodeValue(%.40s, %v) = %q, %v, %v; want %q, %v, unsafe %v", tt.raw, tt.typ, header, skip, err, tt.header, tt.skip, tt.unsafe)
		}
	}
}

// ENC-12: parseInteger agrees with exact rational arithmetic.
func TestParseIntegerExact(t *testing.T) {
	limit := big.NewInt(maxSafe)
	rapid.Check(t, func(t *rapid.T) {
		num := rapid.StringMatching(`-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "num")
		exact, ok := new(big.Rat).SetString(num)
		if !ok {
			t.Fatalf("%s is no number", num)
		}
		got, err := parseInteger([]byte(num))
		switch {
		case !exact.IsInt():
			// The tail may lie below the point of a number that is too large anyway.
			if err == nil {
				t.Fatalf("parseInteger(%s) = %d for a fraction", num, got)
			}
		case exact.Num().CmpAbs(limit) > 0:
			if !errors.Is(err, ErrUnsafe) {
				t.Fatalf("parseInteger(%s) = %d, %v; want ErrUnsafe", num, got, err)
			}
		case err != nil || exact.Num().Cmp(big.NewInt(got)) != 0:
			t.Fatalf("parseInteger(%s) = %d, %v", num, got, err)
		}
	})
}

func TestPlainDecimal(t *testing.T) {
	for _, s := range []string{"0", "-0", "7", "42", "-42", "42.0", "0.5", "-10.00"} {
		if !plainDecimal(s) {
			t.Errorf("%q is a plain decimal", s)
		}
	}
	for _, s := range []string{"", "-", "+1", "1.", ".5", "1e3", "0x1", "007", "00", "-01", "1 2", "1.2.3", "1_0", "NaN", "١", "--1", "1.-2"} {
		if plainDecimal(s) {
			t.Errorf("%q is no plain decimal", s)
		}
	}
}

// ENC-06..08, HTTP-M-33: decoding is total, and what it accepts is text.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", " a ", "=?base64?SGVsbG8=?=", "=?base64?=", "=?base64??=", "=?base64?/w==?=", "caf\xe9", "a\tb", "=?base64?SGVs\nbG8=?="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		text, err := Decode(header)
		if err != nil {
			if text != "" {
				t.Fatalf("Decode(%q) = %q beside %v", header, text, err)
			}
			return
		}
		if !framing.Valid(framing.AppendString(nil, text)) || strings.ToValidUTF8(text, "") != text {
			t.Fatalf("Decode(%q) = %q is no text", header, text)
		}
		again, err := Decode(Encode(text))
		if err != nil || again != text {
			t.Fatalf("Decode(Encode(%q)) = %q, %v", text, again, err)
		}
	})
}
