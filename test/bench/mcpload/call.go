//go:build linux

package main

import (
	"bytes"
	"fmt"
	"strconv"

	"mcpbridge/test/internal/jscan"
)

// modernMeta is the envelope of a 2026-07-28 request, without the closing brace.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"mcpload","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`

const padding = "abcdefghijklmnopqrstuvwxyz012345"

// callSpec says what every call of a run asks for.
type callSpec struct {
	tool     string
	args     string
	size     int // bytes
	ms       int
	progress bool
}

// caller makes the requests of one worker and checks their answers. Its buffers
// are used again by the next call.
type caller struct {
	spec    callSpec
	modern  bool
	number  int64
	filler  []byte
	request []byte
	want    []byte // the raw JSON text the answer must hold; empty: not checked
}

func newCaller(spec callSpec, modern bool, number int) *caller {
	c := &caller{spec: spec, modern: modern, number: int64(number)}
	switch spec.tool {
	case "echo":
		c.filler = bytes.Repeat([]byte(padding), spec.size/len(padding)+1)
	case "blob":
		c.filler = bytes.Repeat([]byte("b"), spec.size)
	}
	return c
}

// next builds the request with this id. The text of an echo names the caller and
// the call, so that a crossed answer is seen.
func (c *caller) next(id, sequence int64) []byte {
	c.want = c.want[:0]
	args := c.spec.args
	switch {
	case args != "":
	case c.spec.tool == "echo":
		c.want = append(c.want, '"')
		c.want = strconv.AppendInt(c.want, c.number, 10)
		c.want = append(c.want, '-')
		c.want = strconv.AppendInt(c.want, sequence, 10)
		c.want = append(c.want, '-')
		if pad := c.spec.size + 1 - len(c.want); pad > 0 {
			c.want = append(c.want, c.filler[:pad]...)
		}
		c.want = append(c.want, '"')
	case c.spec.tool == "blob":
		c.want = append(append(append(c.want, '"'), c.filler...), '"')
		args = `{"bytes":` + strconv.Itoa(c.spec.size) + `}`
	default:
		c.want = fmt.Appendf(c.want, `"slept %d"`, c.spec.ms)
		args = `{"ms":` + strconv.Itoa(c.spec.ms) + `}`
	}
	c.request = c.build(id, args)
	return c.request
}

func (c *caller) build(id int64, args string) []byte {
	b := append(c.request[:0], `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"method":"tools/call","params":{"name":"`...)
	b = append(b, c.spec.tool...)
	b = append(b, `","arguments":`...)
	if args != "" {
		b = append(b, args...)
	} else {
		b = append(append(append(b, `{"text":`...), c.want...), '}')
	}
	if c.modern {
		b = append(append(b, ','), modernMeta...)
	} else if c.spec.progress {
		b = append(b, `,"_meta":{`...)
	}
	if c.spec.progress {
		if c.modern {
			b = append(b, ',')
		}
		b = append(b, `"progressToken":`...)
		b = strconv.AppendInt(b, id, 10)
	}
	if c.modern || c.spec.progress {
		b = append(b, '}')
	}
	return append(b, "}}"...)
}

// verdict is what an answer turned out to be.
type verdict int

const (
	good     verdict = iota
	wrong            // not the id or not the payload that was asked for
	rpcError         // a JSON-RPC error or an isError result
)

func (c *caller) check(m []byte, id int64) verdict {
	got := jscan.Get(m, "id")
	n, err := strconv.ParseInt(string(got), 10, 64)
	if err != nil || n != id {
		return wrong
	}
	if jscan.Get(m, "error") != nil || string(jscan.Get(m, "result", "isError")) == "true" {
		return rpcError
	}
	if len(c.want) == 0 {
		if jscan.Get(m, "result") == nil {
			return wrong
		}
		return good
	}
	if !bytes.Equal(jscan.Get(m, "result", "content", "0", "text"), c.want) {
		return wrong
	}
	return good
}
