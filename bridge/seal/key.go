package seal

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

// errKey never shows what was given: it may be a key with a slip of the pen.
var errKey = errors.New("cannot read key: want 64 hexadecimal digits, or 32 bytes in base64 or base64url")

// ParseKey reads a key from text: 64 hexadecimal digits, or base64 or base64url of 32 bytes, with padding or without.
func ParseKey(text string) (key [32]byte, err error) {
	if len(text) == hex.EncodedLen(keySize) {
		if _, err := hex.Decode(key[:], []byte(text)); err != nil {
			return [32]byte{}, errKey
		}
		return key, nil
	}
	raw, ok := fromBase64(text)
	if !ok {
		return [32]byte{}, errKey
	}
	return [32]byte(raw), nil
}

func fromBase64(text string) (raw []byte, ok bool) {
	bare := strings.TrimSuffix(text, "=")
	if len(bare) != base64.RawStdEncoding.EncodedLen(keySize) {
		return nil, false
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if raw, err := enc.Strict().DecodeString(bare); err == nil && len(raw) == keySize {
			return raw, true
		}
	}
	return nil, false
}
