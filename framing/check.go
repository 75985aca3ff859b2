package framing

import (
	"bytes"
	"hash/maphash"
	"math/bits"
)

// finish checks that a well-formed object is a JSON-RPC message and completes m. It notes the first fault.
func (p *parse) finish() {
	m := p.m
	m.Kind = p.kind()
	if i := duplicate(p.b, m.top); i >= 0 {
		p.fail(int(m.top[i].start()), "duplicate member")
		return
	}
	if !p.version.OK() || p.b[p.version.Start] != '"' || !literalIs(p.b, p.version, "2.0") {
		p.fail(int(p.version.Start), `jsonrpc is not "2.0"`)
		return
	}
	if p.checkID(); p.reason != "" {
		return
	}
	if p.checkShape(); p.reason != "" {
		return
	}
	p.checkBody()
}

// kind tells the kind from the members that are there.
func (p *parse) kind() Kind {
	switch m := p.m; {
	case m.Method.OK() && m.ID.OK():
		return Request
	case m.Method.OK():
		return Notification
	case m.Result.OK():
		return Result
	case m.Error.OK():
		return Error
	}
	return Invalid
}

// checkID checks the id for the kind of message (FRM-08, FRM-12).
func (p *parse) checkID() {
	m := p.m
	switch {
	case !m.ID.OK():
		if m.Kind == Result {
			p.fail(0, "result without id")
		}
	case m.Kind == Error && IsNull(m.ID.of(p.b)):
		m.ID = Span{}
	case !isID(m.ID.of(p.b)):
		p.fail(int(m.ID.Start), "id is neither a string nor an integer")
	}
}

// checkShape checks which members are there and their types (FRM-13).
func (p *parse) checkShape() {
	m := p.m
	switch {
	case m.Kind == Invalid:
		p.fail(0, "neither method nor result nor error")
	case m.Method.OK() && (m.Result.OK() || m.Error.OK()):
		p.fail(int(m.Method.Start), "method beside result or error")
	case m.Result.OK() && m.Error.OK():
		p.fail(int(m.Error.Start), "both result and error")
	case m.Method.OK() && !IsString(m.Method.of(p.b)):
		p.fail(int(m.Method.Start), "method is not a string")
	case m.Method.OK() && m.Params.OK() && !IsObject(m.Params.of(p.b)) && !IsArray(m.Params.of(p.b)):
		p.fail(int(m.Params.Start), "params is neither an object nor an array")
	case m.Kind == Error:
		p.checkError()
	}
}

// checkError checks code and message of the error object, every one if there are several.
func (p *parse) checkError() {
	at := p.m.Error
	if p.b[at.Start] != '{' {
		p.fail(int(at.Start), "error is not an object")
		return
	}
	var room [4]Member
	members := room[:0]
	p.members(int(at.Start)+1, 2, &members)
	var code, message bool
	for _, mem := range members {
		v := mem.Value.of(p.b)
		switch {
		case mem.Is(p.b, "code"):
			if code = isInteger(v); !code {
				p.fail(int(mem.Value.Start), "error code is not an integer")
				return
			}
		case mem.Is(p.b, "message"):
			if message = IsString(v); !message {
				p.fail(int(mem.Value.Start), "error message is not a string")
				return
			}
		}
	}
	if !code || !message {
		p.fail(int(at.Start), "error without code or message")
	}
}

// checkBody settles which body the tables describe and looks for duplicates in them (FRM-34).
func (p *parse) checkBody() {
	m := p.m
	if m.Params.OK() && !m.Method.OK() {
		// A response with a foreign member named params: only result counts.
		m.Params, m.body, m.meta, m.Meta = Span{}, nil, nil, Span{}
		if m.Result.OK() && p.b[m.Result.Start] == '{' {
			p.bodyLevel(int(m.Result.Start) + 1)
		}
	}
	if i := duplicate(p.b, m.body); i >= 0 {
		p.fail(int(m.body[i].start()), "duplicate member")
		return
	}
	if i := duplicate(p.b, m.meta); i >= 0 {
		p.fail(int(m.meta[i].start()), "duplicate member of _meta")
	}
}

// validID returns the id if it is valid and the only one, else nil.
func (p *parse) validID() []byte {
	id := p.m.ID
	if !id.OK() || !isID(id.of(p.b)) {
		return nil
	}
	if _, dup := Lookup(p.b, p.m.top, "id"); dup {
		return nil
	}
	return id.of(p.b)
}

func isID(v []byte) bool { return IsString(v) || isInteger(v) }

// isInteger tells integers from other valid JSON values: digits with an optional minus, no fraction, no exponent.
func isInteger(v []byte) bool {
	return IsNumber(v) && !bytes.ContainsAny(v, ".eE")
}

// pairwise is the size up to which comparing every pair of names is the cheapest way to find equal ones.
const pairwise = 32

// duplicate returns the index of a member whose decoded name an earlier one has, or -1.
func duplicate(raw []byte, members []Member) int {
	if len(members) > pairwise {
		return duplicateHashed(raw, members)
	}
	for i := range members {
		if members[i].Escaped {
			return duplicateHashed(raw, members)
		}
		key := members[i].Key.of(raw)
		for j := range members[:i] {
			if string(members[j].Key.of(raw)) == string(key) {
				return i
			}
		}
	}
	return -1
}

// duplicateHashed is linear in the size of the object, also for names that were chosen to collide: the seed is fresh.
func duplicateHashed(raw []byte, members []Member) int {
	seed := maphash.MakeSeed()
	names := make([][]byte, len(members))
	slots := make([]uint32, 2<<bits.Len(uint(len(members))))
	mask := uint64(len(slots) - 1)
	for i, mem := range members {
		names[i] = mem.Key.of(raw)
		if mem.Escaped {
			names[i] = appendUnescaped(nil, names[i])
		}
		j := maphash.Bytes(seed, names[i]) & mask
		for ; slots[j] != 0; j = (j + 1) & mask {
			if bytes.Equal(names[slots[j]-1], names[i]) {
				return i
			}
		}
		slots[j] = uint32(i + 1)
	}
	return -1
}
