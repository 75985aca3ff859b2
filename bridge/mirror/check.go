package mirror

import (
	"errors"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Mismatch is a header that disagrees with the body, is missing, malformed or sent twice: HTTP 400 with -32020
// (HTTP-M-28, HTTP-M-29). It holds the header's name and never a value (XMH-19, SEC-09).
type Mismatch struct {
	Header string
	Reason string
}

func (e *Mismatch) Error() string { return "cannot accept header " + e.Header + ": " + e.Reason }

// The reasons of a Mismatch.
const (
	reasonMissing    = "it is missing"
	reasonRepeated   = "it is sent more than once"
	reasonCharacters = "it holds characters that a header value must not hold"
	reasonUndecoded  = "its encoded value cannot be decoded"
	reasonDiffers    = "it differs from the body"
	reasonExtra      = "the argument is absent or null"
	reasonDecimal    = "it is no plain decimal number"
	reasonUnsafe     = "the argument lies outside +-(2^53-1)"
	reasonStructured = "the argument is an object or array"
	reasonTwice      = "the argument is given twice"
)

// CheckName compares the Mcp-Name header with the decoded text of the body member it mirrors (HTTP-M-26..33). headers
// are the raw field values received under that name. The error is a *Mismatch.
func CheckName(headers []string, text string) error {
	value, err := decodeOne(mcp.HeaderName, headers)
	if err != nil {
		return err
	}
	if value != text {
		return &Mismatch{mcp.HeaderName, reasonDiffers}
	}
	return nil
}

// CheckPlain compares a header that is never encoded, such as Mcp-Method, with the text it must have, byte for byte
// (HTTP-M-25, HTTP-M-27). name is the header's name for the *Mismatch.
func CheckPlain(headers []string, name, want string) error {
	value, err := one(name, headers)
	if err != nil {
		return err
	}
	switch value = trimOWS(value); {
	case !clean(value):
		return &Mismatch{name, reasonCharacters}
	case value != want:
		return &Mismatch{name, reasonDiffers}
	}
	return nil
}

// Check compares the Mcp-Param-* headers of a request with the values of params in its raw arguments object, nil if it
// has none (XMH-14..17, ENC-12). header returns all field values received under the name "Mcp-Param-" + name. An
// argument that is there needs its header, whatever its type; whether the type is right is for the server to judge.
// Headers that belong to no param are not looked at (HTTP-M-34). The error is a *Mismatch, the first in the order of
// params.
func Check(params []Param, args []byte, header func(name string) []string) error {
	err := Each(params, args, func(p *Param, value []byte) error {
		return checkParam(mcp.HeaderParamPrefix+p.Header, value, header(p.Header))
	})
	if dup := (*twice)(nil); errors.As(err, &dup) {
		return &Mismatch{mcp.HeaderParamPrefix + dup.param.Header, reasonTwice}
	}
	return err
}

func checkParam(name string, value []byte, headers []string) error {
	if len(value) == 0 || value[0] == 'n' {
		if len(headers) > 0 {
			return &Mismatch{name, reasonExtra}
		}
		return nil
	}
	text, err := decodeOne(name, headers)
	if err != nil {
		return err
	}
	if reason := compare(value, text); reason != "" {
		return &Mismatch{name, reason}
	}
	return nil
}

// compare returns why a header's decoded text does not stand for a raw JSON value, "" if it does.
func compare(value []byte, text string) string {
	switch c := value[0]; {
	case c == '{' || c == '[':
		return reasonStructured
	case isNumber(c):
		return compareNumber(value, text)
	case c == '"':
		if s, ok := framing.String(value); ok && s == text {
			return ""
		}
	case string(value) == text: // true, false
		return ""
	}
	return reasonDiffers
}

// compareNumber compares integers by value and fractions, which no schema allows here, by spelling (ENC-12, ENC-13).
func compareNumber(value []byte, text string) string {
	want, err := parseInteger(value)
	if errors.Is(err, ErrUnsafe) {
		return reasonUnsafe
	}
	if !plainDecimal(text) {
		return reasonDecimal
	}
	if err != nil {
		if string(value) == text {
			return ""
		}
		return reasonDiffers
	}
	if got, err := parseInteger([]byte(text)); err != nil || got != want {
		return reasonDiffers
	}
	return ""
}

// decodeOne returns the decoded text of a header that must be there once.
func decodeOne(name string, headers []string) (string, error) {
	value, err := one(name, headers)
	if err != nil {
		return "", err
	}
	text, err := Decode(value)
	switch {
	case errors.Is(err, ErrCharacters):
		return "", &Mismatch{name, reasonCharacters}
	case err != nil:
		return "", &Mismatch{name, reasonUndecoded}
	}
	return text, nil
}

// one returns the value of a header that must be there once (HTTP-M-32).
func one(name string, headers []string) (string, error) {
	switch len(headers) {
	case 0:
		return "", &Mismatch{name, reasonMissing}
	case 1:
		return headers[0], nil
	}
	return "", &Mismatch{name, reasonRepeated}
}
