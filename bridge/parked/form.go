package parked

import (
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"mcpbridge/framing"
)

// violation says what about the content of a form does not fit the schema it was asked with (CLF-08), "" if all does. It judges
// what the revisions allow in such a schema, and nothing else. Absent optional members are in order: defaults are the client's to
// fill in. The text names members by their place in the schema's words only, never by what was answered.
func violation(schema, content []byte) string {
	given := map[string][]byte{}
	for _, m := range framing.Members(content, whole(content)) {
		name := memberName(content, m)
		if _, twice := given[name]; twice {
			return "a member stands there twice"
		}
		given[name] = content[m.Value.Start:m.Value.End]
	}
	required, _ := member(schema, "required")
	for _, r := range elements(required) {
		if name, ok := framing.String(r); ok && given[name] == nil {
			return "the required member " + name + " is missing"
		}
	}
	properties, _ := member(schema, "properties")
	for _, p := range framing.Members(properties, whole(properties)) {
		name := memberName(properties, p)
		if value := given[name]; value != nil && !fits(properties[p.Value.Start:p.Value.End], value) {
			return "member " + name + " does not fit its schema"
		}
	}
	return ""
}

// fits judges one value of a form.
func fits(schema, value []byte) bool {
	if !framing.IsObject(schema) {
		return true
	}
	kind, _ := memberText(schema, "type")
	switch kind {
	case "string":
		return framing.IsString(value) && fitsText(schema, value)
	case "number", "integer":
		return framing.IsNumber(value) && fitsNumber(schema, value, kind == "integer")
	case "boolean":
		return framing.IsBool(value)
	case "array":
		return framing.IsArray(value) && fitsChoices(schema, value)
	}
	return true
}

func fitsText(schema, value []byte) bool {
	s, ok := framing.String(value)
	if !ok || !chosen(schema, s) {
		return false
	}
	n := utf8.RuneCountInString(s)
	if !within(schema, "minLength", "maxLength", n) {
		return false
	}
	format, _ := memberText(schema, "format")
	return fitsFormat(format, s)
}

// chosen reports whether a text is one of the choices, if there are any: an enum, or titled constants.
func chosen(schema []byte, s string) bool {
	if list, _ := member(schema, "enum"); framing.IsArray(list) {
		return listed(elements(list), s)
	}
	for _, name := range [...]string{"oneOf", "anyOf"} {
		list, _ := member(schema, name)
		if !framing.IsArray(list) {
			continue
		}
		var choices [][]byte
		for _, e := range elements(list) {
			c, _ := member(e, "const")
			if c == nil { // no titled choice: not ours to judge
				return true
			}
			choices = append(choices, c)
		}
		return listed(choices, s)
	}
	return true
}

func listed(choices [][]byte, s string) bool {
	for _, c := range choices {
		if text, ok := framing.String(c); ok && text == s {
			return true
		}
	}
	return false
}

// within reports whether a count keeps to the bounds of a schema.
func within(schema []byte, low, high string, n int) bool {
	count, _ := parseDecimal(itoa(n))
	return bounded(schema, low, high, count)
}

func bounded(schema []byte, low, high string, d decimal) bool {
	if b, _ := member(schema, low); framing.IsNumber(b) {
		if limit, ok := parseDecimal(b); ok && d.compare(limit) < 0 {
			return false
		}
	}
	if b, _ := member(schema, high); framing.IsNumber(b) {
		if limit, ok := parseDecimal(b); ok && d.compare(limit) > 0 {
			return false
		}
	}
	return true
}

// fitsFormat knows the formats a form may ask for.
func fitsFormat(format, s string) bool {
	switch format {
	case "email":
		name, host, ok := strings.Cut(s, "@")
		return ok && name != "" && host != "" && !strings.ContainsAny(s, " \t\r\n") && !strings.Contains(host, "@")
	case "uri":
		u, err := url.Parse(s)
		return err == nil && u.Scheme != ""
	case "date":
		_, err := time.Parse(time.DateOnly, s)
		return err == nil
	case "date-time":
		_, err := time.Parse(time.RFC3339, strings.ToUpper(s))
		return err == nil
	}
	return true
}

func fitsNumber(schema, value []byte, integer bool) bool {
	d, ok := parseDecimal(value)
	if !ok || integer && !d.whole() {
		return false
	}
	return bounded(schema, "minimum", "maximum", d)
}

func fitsChoices(schema, value []byte) bool {
	list := elements(value)
	if !within(schema, "minItems", "maxItems", len(list)) {
		return false
	}
	items, _ := member(schema, "items")
	for _, e := range list {
		s, ok := framing.String(e)
		if !ok || !chosen(items, s) {
			return false
		}
	}
	return true
}
