package config

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// setting is one key of an object. Reading a file and the file's schema both follow from it.
type setting struct {
	read  func(node)
	shape shape
	doc   string // what the key is for, for the user
}

// settings are the keys of an object.
type settings map[string]setting

// shape is the JSON Schema of a value.
type shape map[string]any

// names lists the keys in order.
func (s settings) names() []string { return slices.Sorted(maps.Keys(s)) }

// boolean and the functions below make settings that fill dst if the value fits. What dst holds before is the default.
func boolean(dst *bool, doc string) setting {
	read := func(n node) {
		if v, ok := n.boolean(); ok {
			*dst = v
		}
	}
	return setting{read, shape{"type": "boolean", "default": *dst}, doc}
}

// text takes any string, with its variables replaced.
func text(dst *string, doc string) setting {
	read := func(n node) { *dst, _ = n.expanded() }
	return setting{read, shape{"type": "string"}, doc}
}

// integer takes a whole number from low to high.
func integer(dst *int, low, high int, doc string) setting {
	read := func(n node) {
		if v, ok := n.integer(low, high); ok {
			*dst = v
		}
	}
	return setting{read, shape{"type": "integer", "minimum": low, "maximum": high, "default": *dst}, doc}
}

// durationPattern is the spelling of a duration. Both signs for micro are taken.
const durationPattern = `^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

// duration takes a duration above 0 and up to high.
func duration(dst *time.Duration, high time.Duration, doc string) setting {
	read := func(n node) {
		if n.kind() != '"' {
			n.fail(`must be a duration such as "30s", "10m" or "1h30m"`)
			return
		}
		if v, ok := n.duration(n.literal(), high); ok {
			*dst = v
		}
	}
	return setting{read, durationShape(spell(*dst)), doc + " At most " + spell(high) + "."}
}

// durationShape has a default. One of the digits is not 0.
func durationShape(value string) shape {
	return shape{"type": "string", "pattern": durationPattern, "not": shape{"pattern": "^[^1-9]*$"}, "default": value}
}

// oneOf takes one of values.
func oneOf(dst *string, doc string, values ...string) setting {
	form := shape{"type": "string", "enum": values}
	if *dst != "" {
		form["default"] = *dst
	}
	return setting{func(n node) { n.choose(dst, values...) }, form, doc}
}

// object takes an object all of whose keys are ours.
func object(keys settings, doc string) setting {
	form := keys.shape()
	form["additionalProperties"] = false
	return setting{func(n node) { n.readStrict(keys) }, form, doc}
}

// shape is an object with these keys, and others.
func (s settings) shape() shape {
	properties := shape{}
	for name, one := range s {
		form := maps.Clone(one.shape)
		form["description"] = strings.TrimSpace(one.doc)
		properties[name] = form
	}
	return shape{"type": "object", "properties": properties}
}

// list is a list of strings of that form, or of any.
func list(form shape) shape {
	items := shape{"type": "string"}
	maps.Copy(items, form)
	return shape{"type": "array", "items": items}
}

// mapOf is an object with any names and values of that form.
func mapOf(form shape) shape { return shape{"type": "object", "additionalProperties": form} }

// anyOf is what one of the forms is.
func anyOf(forms ...shape) shape { return shape{"anyOf": forms} }
