// Package jscan finds raw JSON values by key path without decoding or copying.
// It owns nothing and is for fixtures and load generators only: it takes
// well-formed text on trust. The bridge itself must not use it; its strict scanner
// lives in package framing, and a check of the bridge should not rest on the same
// code.
package jscan

import (
	"bytes"
	"strings"
)

// Get returns the raw bytes of the value at path, or nil if there is none or the
// text is malformed. A path element names an object's member; on an array only
// the element "0" is known.
func Get(b []byte, path ...string) []byte {
	for _, key := range path {
		if b = child(b, key); b == nil {
			return nil
		}
	}
	return b
}

// Text returns a raw string without its quotes. Escapes stay as they are.
func Text(v []byte) string {
	if len(v) < 2 || v[0] != '"' {
		return string(v)
	}
	return string(v[1 : len(v)-1])
}

func child(b []byte, key string) []byte {
	i := skipSpace(b, 0)
	if i >= len(b) {
		return nil
	}
	switch b[i] {
	case '[':
		return first(b, i+1, key)
	case '{':
		return member(b, i+1, key)
	}
	return nil
}

func first(b []byte, i int, key string) []byte {
	i = skipSpace(b, i)
	if key != "0" || i >= len(b) || b[i] == ']' {
		return nil
	}
	end := skipValue(b, i)
	if end < 0 {
		return nil
	}
	return b[i:end]
}

func member(b []byte, i int, key string) []byte {
	for {
		i = skipSpace(b, i)
		if i >= len(b) || b[i] != '"' {
			return nil
		}
		keyEnd := skipString(b, i)
		if keyEnd < 0 {
			return nil
		}
		name := b[i+1 : keyEnd-1]
		i = skipSpace(b, keyEnd)
		if i >= len(b) || b[i] != ':' {
			return nil
		}
		i = skipSpace(b, i+1)
		end := skipValue(b, i)
		if end < 0 {
			return nil
		}
		if string(name) == key {
			return b[i:end]
		}
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ',' {
			return nil
		}
		i++
	}
}

// skipSpace returns the index of the first byte at or after i that is no white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index just past the string that starts at i, or -1.
func skipString(b []byte, i int) int {
	for i++; ; {
		quote := bytes.IndexByte(b[i:], '"')
		if quote < 0 {
			return -1
		}
		end := i + quote
		slashes := 0
		for k := end - 1; k >= i && b[k] == '\\'; k-- {
			slashes++
		}
		i = end + 1
		if slashes%2 == 0 {
			return i
		}
	}
}

// skipValue returns the index just past the value that starts at or after i, or -1.
func skipValue(b []byte, i int) int {
	i = skipSpace(b, i)
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	end := i
	for end < len(b) && strings.IndexByte(",}] \n\r\t", b[end]) < 0 {
		end++
	}
	if end == i {
		return -1
	}
	return end
}

func skipNested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}
