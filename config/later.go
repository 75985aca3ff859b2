package config

import (
	"maps"
	"slices"
	"strings"
)

// laterKeys are settings of the file format that this version does not act on. Their shape is checked. What protects or
// limits is refused; what merely changes comfort is a warning.
func laterKeys() settings {
	lenient := anyOf(shape{"type": "boolean"}, shape{"const": "warn"})
	object := shape{"type": "object"}
	return settings{
		"tools":       {readTools, anyOf(nothing(), shape{"type": "array", "items": shape{"type": "string"}, "contains": shape{"const": "*"}}), "Tools that are shown and may be called. " + laterDoc},
		"validate":    {protection(settings{"input": {read: anySwitch}, "output": {read: anySwitch}}), nothing(), "Check of arguments and results against the schemas of the tool. " + laterDoc},
		"rate":        {protection(settings{"perPrincipal": {read: anyText}}), nothing(), "Calls that a caller may make in a time. " + laterDoc},
		"oauth":       {comfort(anyLogin), anyOf(object, shape{"type": "boolean"}), "Sign-in to a remote server. " + laterDoc},
		"tasks":       {comfort(anySwitch), lenient, "Translate tasks between the eras. " + laterDoc},
		"attribution": {readAttribution, shape{"const": "auto"}, "Which call a question of the server belongs to. Only auto by this version."},
	}
}

const laterDoc = "Not used yet by this version."

// nothing is an object without members.
func nothing() shape { return shape{"type": "object", "maxProperties": 0} }

// readTools takes the list of all tools that some hosts write. Anything else limits.
func readTools(n node) {
	if n.kind() != '[' {
		n.protects(settings{"allow": {read: anyList}, "deny": {read: anyList}})
		return
	}
	all := false
	for _, e := range n.elements() {
		name, ok := e.text()
		all = all || ok && name == "*"
	}
	if !all {
		n.fail("%s", unsupported)
		return
	}
	n.warn("not used: no tool is hidden")
}

// protection refuses an object with any of these keys.
func protection(keys settings) func(node) { return func(n node) { n.protects(keys) } }

// comfort reads what is not used yet.
func comfort(form func(node)) func(node) { return func(n node) { n.later(form) } }

// protects refuses an object that has any member.
func (n node) protects(keys settings) {
	n.readStrict(keys)
	if members := n.members(); len(members) > 0 {
		names := map[string]bool{}
		for _, m := range members {
			names[m.name] = true
		}
		n.fail("%s: %s", strings.Join(slices.Sorted(maps.Keys(names)), ", "), unsupported)
	}
}

func (n node) later(shape func(node)) {
	before := len(*n.errs)
	shape(n)
	if len(*n.errs) == before {
		n.warn("not used yet by this version")
	}
}

// readAttribution takes auto, which is what happens; exact is a protection.
func readAttribution(n node) {
	var value string
	n.choose(&value, "auto", "exact")
	if value == "exact" {
		n.fail("%q: %s", value, unsupported)
	}
}

func anyList(n node) {
	for _, e := range n.elements() {
		e.text()
	}
}

func anyText(n node) { n.text() }

func anyObject(n node) { n.members() }

// anyLogin takes an object, or false as some hosts write it.
func anyLogin(n node) {
	if n.kind() == '{' {
		anyObject(n)
		return
	}
	n.boolean()
}

// anySwitch takes true, false and "warn".
func anySwitch(n node) {
	if n.kind() == '"' {
		var value string
		n.choose(&value, "warn")
		return
	}
	n.boolean()
}
