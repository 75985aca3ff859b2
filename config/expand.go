package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"mcpbridge/bridge/mcp"
)

// maxSecretBytes bounds the file a ${file:PATH} may name.
const maxSecretBytes = 64 << 10

// expanded returns a string of the file with its variables replaced, and as it was written.
func (n node) expanded() (value, raw string) {
	raw, ok := n.text()
	if !ok {
		return "", ""
	}
	value, err := n.file.expand(raw)
	if err != nil {
		n.fail("%v", err)
		return "", raw
	}
	if strings.ContainsRune(value, 0) {
		n.fail("must not hold a zero byte")
		return "", raw
	}
	return value, raw
}

// readEnv reads variables. Numbers, which some hosts take, are read as they are written.
func (e *entry) readEnv(n node) {
	if e.Env == nil {
		e.Env = map[string]string{}
	}
	for _, m := range n.members() {
		var value string
		if m.kind() == '0' {
			m.warn("a number is read as text; write it in quotes")
			value = m.literal()
		} else {
			value, _ = m.expanded()
		}
		if err := checkVariable(m.name); err != nil {
			m.fail("%v", err)
		}
		e.Env[m.name] = value
	}
}

func checkVariable(name string) error {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return errors.New("this cannot be the name of a variable")
	}
	return nil
}

func (e *entry) readHeaders(n node) {
	e.Headers = map[string]string{}
	for _, m := range n.members() {
		value, _ := m.expanded()
		if err := checkHeader(m.name, value); err != nil {
			m.fail("%v", err)
		}
		e.Headers[m.name] = value
	}
}

func checkHeader(name, value string) error {
	if !isToken(name) {
		return errors.New("this cannot be the name of a header")
	}
	if mcp.ReservedHeader(name) {
		return errors.New("this header belongs to the protocol and cannot be set")
	}
	if strings.ContainsAny(value, "\r\n") {
		return errors.New("a header cannot hold a line break")
	}
	return nil
}

// expand replaces ${NAME}, ${NAME:-default}, ${env:NAME} and ${file:PATH}. Nothing else is touched: no $NAME, no $$, no
// %NAME%, and no shell ever sees the text. What is put in is not expanded again.
func (f *file) expand(text string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		reference, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", fmt.Errorf(`%q has no closing brace`, "${"+rest)
		}
		value, err := f.resolve(reference)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		text = after
	}
}

// resolve finds what a reference stands for. Errors name the reference, never a value.
func (f *file) resolve(reference string) (string, error) {
	written := "${" + reference + "}"
	name, fallback, hasFallback := strings.Cut(reference, ":-")
	kind, rest, hasKind := strings.Cut(reference, ":")
	switch {
	case isVariable(name):
		return f.variable(written, name, fallback, hasFallback)
	case hasKind && kind == "env":
		name, fallback, hasFallback = strings.Cut(rest, ":-")
		if isVariable(name) {
			return f.variable(written, name, fallback, hasFallback)
		}
	case hasKind && kind == "file" && rest != "":
		return f.secret(written, rest)
	case hasKind && kind == "keyring":
		return "", fmt.Errorf("%s: the keyring is not supported yet by this version; use ${env:NAME} or ${file:PATH}", written)
	case hasKind && kind == "input":
		return "", fmt.Errorf("%s: a bridge cannot ask for inputs; use ${env:NAME} or ${file:PATH}", written)
	}
	return "", fmt.Errorf("%s cannot be understood; use ${NAME}, ${NAME:-default}, ${env:NAME} or ${file:PATH}", written)
}

// variable looks a name up. As in a shell, an empty value counts as none if there is a default.
func (f *file) variable(written, name, fallback string, hasFallback bool) (string, error) {
	value, ok := f.env(name)
	switch {
	case hasFallback && value == "":
		return fallback, nil
	case !ok:
		return "", fmt.Errorf("%s: the variable %s is not set; set it or write ${%s:-default}", written, name, name)
	}
	return value, nil
}

// secret reads a file without its last newline.
func (f *file) secret(written, path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.dir, path)
	}
	data, err := readBounded(path, maxSecretBytes)
	if err != nil {
		return "", fmt.Errorf("%s: cannot read secret: %w", written, err)
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if text == "" {
		return "", fmt.Errorf("%s: %w", written, errEmptySecret)
	}
	return text, nil
}

var errEmptySecret = errors.New("the file is empty")

// isVariable reports whether name is a variable name as shells know it.
func isVariable(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
