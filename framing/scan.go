package framing

import (
	"math"
	"strconv"
)

// JSON-RPC error codes a [ScanError] carries (FRM-17).
const (
	codeParse   = -32700
	codeInvalid = -32600
)

// ScanError tells why bytes are no message.
type ScanError struct {
	// Code is -32700 (not JSON, invalid UTF-8, nested too deeply) or -32600 (JSON, but not an acceptable message).
	Code int
	// ID is the raw id if it could be read and is valid, for a refusal to echo (FRM-12), else nil. With -32700 it is always nil;
	// see [Salvage].
	ID []byte
	// Kind is the kind as far as it could be told; with -32700 it is Invalid. With both result and error it is Result; with an id
	// and none of method, result and error it stays Invalid.
	Kind   Kind
	Reason string
	Offset int  // in the bytes given to Scan
	Array  bool // the text is a JSON array, perhaps a batch
}

func (e *ScanError) Error() string {
	return "cannot read message: " + e.Reason + " at offset " + strconv.Itoa(e.Offset)
}

// Scan checks raw as one JSON-RPC 2.0 message, in one pass and strictly: RFC 8259 grammar, valid UTF-8 (FRM-02), no lone
// surrogates in escapes, no trailing data, nesting to [MaxDepth] at most; jsonrpc exactly "2.0" (FRM-01); id a string or an
// integer without fraction and exponent, null only in an error response (FRM-08, FRM-12); method a string; params an
// object or array; exactly one of result and error in a response, error an object with integer code and string message (FRM-13);
// no duplicate names at the top level nor among the direct members of params, result and their _meta, decoded names
// compared case-sensitively (FRM-34). Duplicates elsewhere pass.
//
// The message keeps raw, which must not be changed. Every error is a *[ScanError]. The time is linear in len(raw); raw must be
// shorter than 4 GiB.
func Scan(raw []byte) (*Message, error) {
	if uint64(len(raw)) > math.MaxUint32 {
		return nil, &ScanError{Code: codeInvalid, Reason: "message of 4 GiB or more"}
	}
	base, end := trim(raw)
	p := parse{scanner: scanner{b: raw[base:end:end]}}
	if p.at(0) != '{' {
		return nil, p.noObject(base)
	}
	p.m = &Message{Raw: p.b}
	p.m.top = p.m.topRoom[:0]
	i := p.topLevel(1)
	if i >= 0 && i < len(p.b) {
		p.fail(p.space(i), "data behind the message")
	}
	if p.reason != "" {
		return nil, &ScanError{Code: codeParse, Reason: p.reason, Offset: base + p.off}
	}
	if p.finish(); p.reason != "" {
		return nil, &ScanError{Code: codeInvalid, ID: p.validID(), Kind: p.kind(), Reason: p.reason, Offset: base + p.off}
	}
	return p.m, nil
}

// trim returns the range of raw without the white space around it.
func trim(raw []byte) (start, end int) {
	s := scanner{b: raw}
	start, end = s.space(0), len(raw)
	for end > start && (raw[end-1] == ' ' || raw[end-1] == '\t' || raw[end-1] == '\n' || raw[end-1] == '\r') {
		end--
	}
	return start, end
}

// parse is the state of one Scan.
type parse struct {
	scanner
	m       *Message
	version Span
}

// noObject makes the error for a text that does not begin with a brace.
func (p *parse) noObject(base int) *ScanError {
	i := p.value(0, 0)
	if i >= 0 && i < len(p.b) {
		i = p.fail(p.space(i), "data behind the value")
	}
	if i < 0 {
		return &ScanError{Code: codeParse, Reason: p.reason, Offset: base + p.off}
	}
	return &ScanError{Code: codeInvalid, Reason: "not an object", Offset: base, Array: p.b[0] == '['}
}

// topLevel reads the members of the message behind its opening brace.
func (p *parse) topLevel(i int) int {
	for first := true; ; first = false {
		mem, at, more := p.member(i, first)
		if !more {
			return at
		}
		slot, body := p.slot(mem)
		if body && p.at(at) == '{' {
			i = p.bodyLevel(at + 1)
		} else {
			i = p.value(at, 1)
		}
		if i < 0 {
			return -1
		}
		mem.Value = span(at, i)
		if slot != nil && !slot.OK() {
			*slot = mem.Value
		}
		p.m.top = append(p.m.top, mem)
	}
}

// slot returns where the span of a top-level member is kept, nil if it is not read, and whether its members are.
func (p *parse) slot(mem Member) (slot *Span, body bool) {
	name := mem.Key.of(p.b)
	var buf [64]byte
	if mem.Escaped && len(name) <= len(buf) {
		name = appendUnescaped(buf[:0], name)
	}
	switch string(name) {
	case "jsonrpc":
		return &p.version, false
	case "id":
		return &p.m.ID, false
	case "method":
		return &p.m.Method, false
	case "params":
		return &p.m.Params, true
	case "result":
		return &p.m.Result, true
	case "error":
		return &p.m.Error, false
	}
	return nil, false
}

// bodyLevel reads the members of params or result behind the opening brace. A second body replaces the first.
func (p *parse) bodyLevel(i int) int {
	m := p.m
	m.body, m.meta, m.Meta = m.bodyRoom[:0], nil, Span{}
	for first := true; ; first = false {
		mem, at, more := p.member(i, first)
		if !more {
			return at
		}
		isMeta := p.at(at) == '{' && mem.Is(p.b, "_meta")
		if isMeta {
			m.meta = m.metaRoom[:0]
			i = p.members(at+1, 3, &m.meta)
		} else {
			i = p.value(at, 2)
		}
		if i < 0 {
			return -1
		}
		mem.Value = span(at, i)
		if isMeta {
			m.Meta = mem.Value
		}
		m.body = append(m.body, mem)
	}
}

// members reads the members of an object behind its opening brace into a table; depth counts the object itself.
func (s *scanner) members(i, depth int, table *[]Member) int {
	for first := true; ; first = false {
		mem, at, more := s.member(i, first)
		if !more {
			return at
		}
		if i = s.value(at, depth); i < 0 {
			return -1
		}
		mem.Value = span(at, i)
		*table = append(*table, mem)
	}
}
