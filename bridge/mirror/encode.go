package mirror

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpbridge/framing"
)

// The markers of an encoded header value. They are case-sensitive (ENC-04).
const (
	sentinelOpen  = "=?base64?"
	sentinelClose = "?="
)

// Reasons for which a header value is refused or cannot be made.
var (
	ErrCharacters = errors.New("bytes outside printable ASCII") // HTTP-M-33
	ErrBase64     = errors.New("payload is not valid base64")   // ENC-07
	ErrUTF8       = errors.New("payload is not valid UTF-8")    // ENC-08
	ErrUnsafe     = errors.New("integer outside +-(2^53-1)")    // ENC-13
)

var strictBase64 = base64.StdEncoding.Strict()

// Encode returns the header value of a text: the text itself if it is plain, else its Base64 form between markers
// (ENC-02, ENC-03). The empty text, an interior tab and overlapping markers are encoded, since receivers read their
// plain forms differently (ENC-09, ENC-10, ENC-11). The text must be valid UTF-8.
func Encode(text string) string {
	if plain(text) {
		return text
	}
	return sentinelOpen + base64.StdEncoding.EncodeToString([]byte(text)) + sentinelClose
}

func plain(text string) bool {
	if text == "" || text[0] == ' ' || text[len(text)-1] == ' ' {
		return false
	}
	for i := range len(text) {
		if text[i] < 0x20 || text[i] > 0x7e {
			return false
		}
	}
	return !strings.HasPrefix(text, sentinelOpen) || !strings.HasSuffix(text, sentinelClose)
}

// Decode returns the text of a header value after cutting off optional white space (HTTP-M-31). Values without both
// markers are literal (ENC-06); so are overlapping markers (ENC-11). The error is ErrCharacters, ErrBase64 or ErrUTF8
// and never quotes the value.
func Decode(header string) (string, error) {
	header = trimOWS(header)
	if !clean(header) {
		return "", ErrCharacters
	}
	payload, ok := strings.CutPrefix(header, sentinelOpen)
	if !ok {
		return header, nil
	}
	if payload, ok = strings.CutSuffix(payload, sentinelClose); !ok {
		return header, nil
	}
	text, err := strictBase64.DecodeString(payload)
	if err != nil {
		return "", ErrBase64
	}
	if !utf8.Valid(text) {
		return "", ErrUTF8
	}
	return string(text), nil
}

func trimOWS(s string) string { return strings.Trim(s, " \t") }

// clean reports whether a field value holds printable ASCII, spaces and tabs only (HTTP-M-33, ENC-09).
func clean(s string) bool {
	for i := range len(s) {
		if (s[i] < 0x20 && s[i] != '\t') || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// EncodeValue returns the header value of a raw JSON value for a parameter of type t (ENC-01). skip means: send no
// header, because the value is absent (empty raw) or null (XMH-15), or of another JSON type than t, a fraction for an
// Integer included; the server judges such a body. The error is ErrUnsafe (ENC-13).
func EncodeValue(raw []byte, t Type) (header string, skip bool, err error) {
	if len(raw) == 0 {
		return "", true, nil
	}
	switch c := raw[0]; {
	case t == String && c == '"':
		text, ok := framing.String(raw)
		return Encode(text), !ok, nil
	case t == Boolean && (c == 't' || c == 'f'):
		return string(raw), false, nil
	case t == Integer && isNumber(c):
		return encodeInteger(raw)
	}
	return "", true, nil
}

func encodeInteger(raw []byte) (header string, skip bool, err error) {
	n, err := parseInteger(raw)
	switch {
	case errors.Is(err, ErrUnsafe):
		return "", false, fmt.Errorf("cannot mirror argument: %w", err)
	case err != nil:
		return "", true, nil
	}
	return strconv.FormatInt(n, 10), false, nil
}

func isNumber(c byte) bool { return c == '-' || ('0' <= c && c <= '9') }
