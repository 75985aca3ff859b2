// Package mirror owns the mirroring of tool arguments into HTTP headers: the walk over tool schemas that finds
// x-mcp-header annotations, the extraction of argument values, the encoding of header values and the comparison of
// headers with a body (ledger 5 and 6, HTTP-M-25..33). It is pure: bytes and strings in, values, edits and errors out.
//
// It must not know HTTP, sessions or configuration files, must not decode messages into maps, and must not keep or
// report argument values: errors name headers and places only (XMH-19, SEC-09).
//
// All functions that take raw JSON expect bytes that framing has scanned. Other bytes never make them panic or loop,
// but what they return then means nothing.
package mirror

import "fmt"

// Annotation is the schema keyword that names the header of a property.
const Annotation = "x-mcp-header"

// Limits of the schema walk (FRM-33). A schema at the limit is read, one beyond it is Invalid with ClassTooLarge.
const (
	MaxDepth   = 64     // nested schemas, the root included
	MaxSchemas = 10_000 // schemas in all, the root included
)

// Type is the JSON type of a mirrored argument as its schema declares it (XMH-06).
type Type uint8

// The types an annotation may stand on.
const (
	String Type = iota + 1
	Integer
	Boolean
)

func (t Type) String() string {
	switch t {
	case String:
		return "string"
	case Integer:
		return "integer"
	case Boolean:
		return "boolean"
	}
	return "unknown"
}

// typeOf returns the Type of a schema's type word, 0 for any other (XMH-06, XMH-07).
func typeOf(word string) Type {
	switch word {
	case "string":
		return String
	case "integer":
		return Integer
	case "boolean":
		return Boolean
	}
	return 0
}

// Param is one mirrored argument.
type Param struct {
	Header string   // header name without the Mcp-Param- prefix, as the schema spells it
	Path   []string // property names below arguments, at least one
	Type   Type
}

// The classes of an Invalid annotation.
const (
	ClassEmpty       = "empty"        // the header name is empty (XMH-02)
	ClassTchar       = "tchar"        // the name is no RFC 9110 token (XMH-03)
	ClassControl     = "control"      // the name holds a control character (XMH-04)
	ClassDuplicate   = "duplicate"    // two properties share a name, or a member on the way occurs twice (XMH-05)
	ClassType        = "type"         // the property is no string, integer or boolean (XMH-06, XMH-07)
	ClassNotAString  = "not-a-string" // the annotation's value is no string
	ClassUnreachable = "unreachable"  // the annotation is not reached by properties keys alone (XMH-08..10)
	ClassTooLarge    = "too-large"    // MaxDepth or MaxSchemas is exceeded (FRM-33)
)

// Invalid says why the annotations of a schema cannot be used. One bad annotation spoils the whole tool (XMH-09).
type Invalid struct {
	Class  string // one of the Class constants
	Where  string // JSON pointer of the schema at fault, from the root of the inputSchema
	Detail string
}

func (e *Invalid) Error() string {
	where := e.Where
	if where == "" {
		where = "the root"
	}
	return fmt.Sprintf("cannot use %s at %.200q: %s: %s", Annotation, where, e.Class, e.Detail)
}

// nameClass returns the fault class of a header name, "" for a good one (XMH-02..04).
func nameClass(name string) string {
	if name == "" {
		return ClassEmpty
	}
	class := ""
	for i := range len(name) {
		switch c := name[i]; {
		case c < 0x20 || c == 0x7f:
			return ClassControl
		case !isTchar(c):
			class = ClassTchar
		}
	}
	return class
}

// isTchar reports whether c is a token character (RFC 9110 5.6.2).
func isTchar(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	switch c {
	case '!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~':
		return true
	}
	return false
}
