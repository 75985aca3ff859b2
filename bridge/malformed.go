package bridge

import (
	"bytes"
	"errors"
	"strconv"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Malformed takes bytes that are no message. An array is unpacked (case 10). What can only have been meant as the answer
// to an open request fails that request (FRM-13), also when it is cut off for its length; anything else is junk and
// skipped (FRM-06).
func (c *Conn) Malformed(raw []byte, err error) {
	var se *framing.ScanError
	var long *framing.LineError
	switch {
	case errors.As(err, &long): // raw is the beginning of the line
		if _, cut := framing.Scan(raw); errors.As(cut, &se) && c.spoiled(raw, se, "longer than "+strconv.Itoa(long.Limit)+" bytes") {
			return
		}
	case errors.As(err, &se):
		if se.Array && c.unpack(raw) || c.spoiled(raw, se, se.Reason) {
			return
		}
	}
	c.events.emit(Event{Server: c.name, Kind: EventJunk, Detail: string(raw[:min(len(raw), 200)]), Err: err})
}

// spoiled fails the request a broken message names, if it was meant as its answer: the id of a broken request of the
// server's is from its own numbers.
func (c *Conn) spoiled(raw []byte, se *framing.ScanError, why string) bool {
	switch {
	case se.ID == nil, se.Kind == framing.Request, se.Kind == framing.Notification:
		return false
	case se.Code == mcp.CodeInvalidRequest && !claimsJSONRPC(raw), !bytes.Contains(raw, []byte(`"jsonrpc"`)):
		return false
	}
	k := c.take(se.ID)
	if k == nil {
		return false
	}
	c.events.emit(Event{Server: c.name, Kind: EventViolation, Detail: "invalid answer: " + why})
	k.fail(&Error{Code: mcp.CodeInternal, Reason: ReasonPeerProtocolError,
		Message: "server " + c.name + " sent an invalid answer: " + why})
	return true
}

// maxBatch is how many messages an array of a server may hold: nobody waits for more answers than that.
const maxBatch = 10_000

// longArray tells whether a valid JSON array has more elements than a batch may, before memory is spent on them.
func longArray(raw []byte) bool {
	depth, elements, quoted := 0, 1, false
	for i := 0; i < len(raw); i++ {
		switch b := raw[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '[' || b == '{':
			depth++
		case b == ']' || b == '}':
			depth--
		case b == ',' && depth == 1:
			if elements++; elements > maxBatch {
				return true
			}
		}
	}
	return false
}

func (c *Conn) unpack(raw []byte) bool {
	if longArray(raw) {
		return false
	}
	parts, err := framing.SplitBatch(raw)
	if err != nil || len(parts) == 0 {
		return false
	}
	for _, p := range parts {
		m, err := framing.Scan(p)
		if err != nil {
			var se *framing.ScanError
			if errors.As(err, &se) && se.Array { // no arrays in arrays
				err = errors.New("array inside an array")
			}
			c.Malformed(p, err)
			continue
		}
		c.Message(m)
	}
	return true
}

func claimsJSONRPC(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	if !framing.IsObject(raw) {
		return false
	}
	v, _ := framing.Lookup(raw, framing.Members(raw, framing.Span{Start: 0, End: uint32(len(raw))}), "jsonrpc")
	return v.OK() && string(raw[v.Start:v.End]) == `"2.0"`
}
