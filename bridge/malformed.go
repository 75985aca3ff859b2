package bridge

import (
	"bytes"
	"errors"
	"strconv"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// maxBatch is how many messages an array of a server may hold: nobody waits for more answers than that.
const maxBatch = 10_000

// Malformed takes bytes that are no message. An array is unpacked (case 10). An answer that is none fails the request it names
// (FRM-13), also when it is cut off for its length; one that names no open request without doubt is reported, and nobody gets it
// (rule 2). Anything else is junk and skipped (FRM-06).
func (c *Conn) Malformed(raw []byte, err error) {
	why := ""
	var se *framing.ScanError
	var long *framing.LineError
	switch {
	case errors.As(err, &long): // raw is the beginning of the line
		why = "longer than " + strconv.Itoa(long.Limit) + " bytes"
	case errors.As(err, &se):
		if se.Array && c.unpack(raw) {
			return
		}
		why = se.Reason
	}
	if id, answer := readAnswer(raw); answer && why != "" {
		c.spoiled(id, why)
		return
	}
	c.events.emit(Event{Server: c.name, Kind: EventJunk, Detail: string(raw[:min(len(raw), 200)]), Err: err})
}

// spoiled fails the request a broken answer names; 0 names none.
func (c *Conn) spoiled(id int64, why string) {
	c.mu.Lock()
	k := c.calls[id]
	if k != nil {
		c.removeLocked(k)
	}
	c.mu.Unlock()
	if k == nil {
		c.events.emit(Event{Server: c.name, Kind: EventViolation, Detail: "invalid answer that names no open request: " + why})
		return
	}
	c.events.emit(Event{Server: c.name, Kind: EventViolation, Detail: "invalid answer: " + why})
	k.fail(&Error{Code: mcp.CodeInternal, Reason: ReasonPeerProtocolError,
		Message: "server " + c.name + " sent an invalid answer: " + why})
}

func (c *Conn) unpack(raw []byte) bool {
	if framing.ArrayLonger(raw, maxBatch) {
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

// outline is what a broken message shows at its top level.
type outline struct {
	version bool   // it says jsonrpc, whatever it says there
	method  bool   // as a request or notification has
	body    bool   // result or error, as no request has
	other   bool   // members JSON-RPC does not know, as in a log line
	whole   bool   // nothing is cut off
	id      []byte // raw, nil if there is none, or several that differ, or one that may be cut off
}

// readAnswer tells whether a broken message was meant as an answer, and which of our requests it names, 0 for none. The id
// of a broken request is from the server's own numbers, and a log line may have an id of any kind: neither is an answer.
func readAnswer(raw []byte) (id int64, answer bool) {
	switch o := outlineOf(raw); {
	case o.body && (o.version || !o.other), o.version && o.whole && !o.method:
		return nearID(o.id), true
	}
	return 0, false
}

func outlineOf(raw []byte) (o outline) {
	members, whole := framing.Salvage(raw)
	o.whole = whole
	doubt := false
	for i, m := range members {
		switch {
		case m.Is(raw, "jsonrpc"):
			o.version = true
		case m.Is(raw, "method"):
			o.method = true
		case m.Is(raw, "result"), m.Is(raw, "error"):
			o.body = true
		case m.Is(raw, "id"):
			v := raw[m.Value.Start:m.Value.End]
			doubt = doubt || o.id != nil && !bytes.Equal(v, o.id) || !whole && i == len(members)-1
			o.id = v
		case !m.Is(raw, "params"):
			o.other = true
		}
	}
	if doubt {
		o.id = nil
	}
	return o
}

// maxNearID is the longest number that is looked at for one of our ids: a float64 tells all numbers of up to 15 digits apart.
const maxNearID = 16

// nearID reads one of our own ids where a message is broken anyhow, also as a number spelled in another way, as by a server that
// keeps its ids as floating-point numbers: 7.0, 7e0. It returns 0 for anything else.
func nearID(raw []byte) int64 {
	if n, _ := parseID(raw); n > 0 || !framing.IsNumber(raw) || len(raw) > maxNearID {
		return n
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < 1 || f > 1e15 || f != float64(int64(f)) {
		return 0
	}
	return int64(f)
}
