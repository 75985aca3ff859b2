package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"
)

// node is a value of the file with its place in it. Findings about it go to errs, those of the file or those of one
// server.
type node struct {
	file  *file
	value *hujson.Value
	path  string // "mcpServers.files.args", "" for the root
	errs  *Errors
}

func (n node) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if n.path != "" {
		text = n.path + ": " + text
	}
	*n.errs = append(*n.errs, n.file.errorAt(n.value.StartOffset, "%s", text))
}

func (n node) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if n.path != "" {
		text = n.path + ": " + text
	}
	line, col := n.file.position(n.value.StartOffset)
	n.file.warnings = append(n.file.warnings, Warning{File: n.file.name, Line: line, Col: col, Text: text})
}

func (n node) kind() hujson.Kind { return n.value.Value.Kind() }

// at is the child of that name.
func (n node) at(name string, v *hujson.Value) node {
	if n.path != "" {
		name = n.path + "." + name
	}
	return node{file: n.file, value: v, path: name, errs: n.errs}
}

// member is a name of an object with its value.
type member struct {
	key  node // at the name
	name string
	node // at the value
}

// members lists an object, nil if it is none. A name that comes twice is an error.
func (n node) members() []member {
	object, ok := n.value.Value.(*hujson.Object)
	if !ok {
		n.fail("must be an object")
		return nil
	}
	var list []member
	seen := map[string]bool{}
	for i := range object.Members {
		m := &object.Members[i]
		name := m.Name.Value.(hujson.Literal).String()
		key := n.at(name, &m.Name)
		if seen[name] {
			key.fail("the key stands twice")
			continue
		}
		seen[name] = true
		list = append(list, member{key: key, name: name, node: n.at(name, &m.Value)})
	}
	return list
}

// member returns the value of that name, n itself if there is none.
func (n node) member(name string) node {
	if object, ok := n.value.Value.(*hujson.Object); ok {
		for i := range object.Members {
			if m := &object.Members[i]; m.Name.Value.(hujson.Literal).String() == name {
				return n.at(name, &m.Value)
			}
		}
	}
	return n
}

// has reports whether the object has that name.
func (n node) has(name string) bool { return n.member(name).value != n.value }

// read gives each member to its setting; other does with the rest what it sees fit.
func (n node) read(keys settings, other func(member)) {
	for _, m := range n.members() {
		if known, ok := keys[m.name]; ok {
			known.read(m.node)
		} else {
			other(m)
		}
	}
}

// readStrict is read for objects that are all ours: every other key is an error.
func (n node) readStrict(keys settings) {
	n.read(keys, func(m member) { m.key.unknown(m.name, keys) })
}

func (n node) unknown(name string, keys settings) {
	if near := nearestOf(name, keys.names()); near != "" {
		n.fail("unknown key; did you mean %q?", near)
		return
	}
	n.fail("unknown key; known are %s", strings.Join(keys.names(), ", "))
}

func (n node) elements() []node {
	array, ok := n.value.Value.(*hujson.Array)
	if !ok {
		n.fail("must be a list")
		return nil
	}
	list := make([]node, len(array.Elements))
	for i := range array.Elements {
		list[i] = node{file: n.file, value: &array.Elements[i], path: fmt.Sprintf("%s[%d]", n.path, i), errs: n.errs}
	}
	return list
}

func (n node) text() (string, bool) {
	if n.kind() != '"' {
		n.fail("must be a string")
		return "", false
	}
	return n.literal(), true
}

func (n node) boolean() (value, ok bool) {
	if n.kind() != 't' && n.kind() != 'f' {
		n.fail("must be true or false")
		return false, false
	}
	return n.kind() == 't', true
}

// literal is the value of a string or the spelling of a number.
func (n node) literal() string {
	literal, _ := n.value.Value.(hujson.Literal)
	if n.kind() == '"' {
		return literal.String()
	}
	return string(literal)
}

// integer reads a number written without fraction and exponent.
func (n node) integer(low, high int) (int, bool) {
	text := n.literal()
	v, err := strconv.ParseInt(text, 10, 64)
	switch {
	case n.kind() != '0' || strings.ContainsAny(text, ".eE"):
		n.fail("must be an integer")
	case err != nil || v < int64(low) || v > int64(high):
		n.fail("must be from %d to %d", low, high)
	default:
		return int(v), true
	}
	return 0, false
}

// maxDuration bounds the durations of the file that have no bound of their own.
const maxDuration = 30 * 24 * time.Hour

// duration reads text as a duration above 0 and up to high.
func (n node) duration(text string, high time.Duration) (time.Duration, bool) {
	v, err := time.ParseDuration(text)
	switch {
	case err != nil:
		n.fail(`%q is no duration; write "500ms", "30s", "10m" or "1h30m"`, text)
	case v <= 0 || v > high:
		n.fail("must be above 0 and at most %s", spell(high))
	default:
		return v, true
	}
	return 0, false
}

// choose fills dst with the value if it is one of values.
func (n node) choose(dst *string, values ...string) {
	v, ok := n.text()
	if !ok {
		return
	}
	if slices.Contains(values, v) {
		*dst = v
		return
	}
	values = slices.Sorted(slices.Values(values))
	if near := nearestOf(v, values); near != "" {
		n.fail("%q is not known; did you mean %q?", v, near)
		return
	}
	n.fail("%q is not known; use one of %s", v, strings.Join(values, ", "))
}

// maxInt is the largest size that is the same on every platform served.
const maxInt = math.MaxInt32
