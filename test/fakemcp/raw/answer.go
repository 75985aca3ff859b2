package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"mcpbridge/test/internal/jscan"
)

const (
	toolList = `[{"name":"echo","description":"echo text","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},` +
		`{"name":"sleep","description":"sleep ms, with progress","inputSchema":{"type":"object","properties":{"ms":{"type":"integer"}},"required":["ms"]}},` +
		`{"name":"blob","description":"return bytes of text","inputSchema":{"type":"object","properties":{"bytes":{"type":"integer"}},"required":["bytes"]}},` +
		`{"name":"crash","description":"exit 3","inputSchema":{"type":"object","properties":{}}}]`
	discovered = `{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}},` +
		`"serverInfo":{"name":"fakemcp-raw","version":"1"},"ttlMs":1000,"cacheScope":"public"}`
	unknownMethod = `{"code":-32601,"message":"method not found"}`
	unknownTool   = `{"code":-32602,"message":"unknown tool"}`
)

// replier takes what the server sends.
type replier interface {
	reply(id, body []byte, isError, isCall bool)
	notify(message []byte)
}

// answerer turns requests into replies.
type answerer struct {
	dual bool
	seen *os.File // nil: do not record
	deaf bool     // stdin was closed on demand

	mu   sync.Mutex
	blob []byte // the last blob as a JSON string, kept because it is asked for again
}

// request is one message as the answerer sees it; the bytes are valid until handle returns.
type request struct {
	line   []byte
	id     []byte
	modern bool
}

func (a *answerer) handle(line []byte, out replier) {
	method := jscan.Get(line, "method")
	r := request{line: line, id: jscan.Get(line, "id")}
	a.record(r, method)
	if method == nil || r.id == nil {
		return
	}
	r.modern = a.dual && jscan.Get(line, "params", "_meta", "io.modelcontextprotocol/protocolVersion") != nil
	switch jscan.Text(method) {
	case "tools/call":
		a.call(r, out)
	case "tools/list":
		out.reply(r.id, listResult(r.modern), false, false)
	case "initialize":
		out.reply(r.id, initializeResult(line), false, false)
	case "ping":
		out.reply(r.id, []byte("{}"), false, false)
	case "server/discover":
		if a.dual {
			out.reply(r.id, []byte(discovered), false, false)
			return
		}
		fallthrough
	default:
		out.reply(r.id, []byte(unknownMethod), true, false)
	}
}

func (a *answerer) record(r request, method []byte) {
	if a.seen == nil {
		return
	}
	extra := ""
	if id := jscan.Get(r.line, "params", "requestId"); id != nil {
		extra = " requestId=" + string(id)
	}
	fmt.Fprintf(a.seen, "%d %s %s%s\n", os.Getpid(), r.id, jscan.Text(method), extra)
}

func (a *answerer) call(r request, out replier) {
	switch jscan.Text(jscan.Get(r.line, "params", "name")) {
	case "echo":
		said := jscan.Get(r.line, "params", "arguments", "text")
		if said == nil {
			said = []byte(`""`)
		}
		out.reply(r.id, textResult(said, r.modern), false, true)
	case "blob":
		out.reply(r.id, textResult(a.blobOf(integer(r.line, "bytes")), r.modern), false, true)
	case "sleep":
		sleep(r, out)
	case "crash":
		os.Exit(3)
	case "deaf":
		a.deaf = true
		out.reply(r.id, textResult([]byte(`"deaf"`), r.modern), false, true)
	default:
		out.reply(r.id, []byte(unknownTool), true, true)
	}
}

func (a *answerer) blobOf(n int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.blob) != n+2 {
		a.blob = bytes.Repeat([]byte("b"), n+2)
		a.blob[0], a.blob[n+1] = '"', '"'
	}
	return a.blob
}

// sleep answers later, with four progress notifications if the caller wants them.
func sleep(r request, out replier) {
	const steps = 4
	ms := integer(r.line, "ms")
	pause := time.Duration(ms) * time.Millisecond / steps
	token := bytes.Clone(jscan.Get(r.line, "params", "_meta", "progressToken"))
	id, modern := bytes.Clone(r.id), r.modern
	go func() {
		for i := 1; i <= steps; i++ {
			time.Sleep(pause)
			if len(token) > 0 {
				out.notify(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":%d}}`, token, i, steps))
			}
		}
		out.reply(id, textResult(fmt.Appendf(nil, `"slept %d"`, ms), modern), false, true)
	}()
}

func integer(line []byte, argument string) int {
	n, _ := strconv.Atoi(string(jscan.Get(line, "params", "arguments", argument)))
	return max(n, 0)
}

func textResult(text []byte, modern bool) []byte {
	b := make([]byte, 0, len(text)+96)
	b = append(b, `{"content":[{"type":"text","text":`...)
	b = append(b, text...)
	b = append(b, `}]`...)
	return finish(b, modern)
}

func listResult(modern bool) []byte {
	b := append([]byte(`{"tools":`), toolList...)
	if modern {
		b = append(b, `,"ttlMs":1000,"cacheScope":"public"`...)
	}
	return finish(b, modern)
}

func finish(b []byte, modern bool) []byte {
	if modern {
		b = append(b, `,"resultType":"complete"`...)
	}
	return append(b, '}')
}

func initializeResult(line []byte) []byte {
	version := jscan.Text(jscan.Get(line, "params", "protocolVersion"))
	switch version {
	case "2024-11-05", "2025-03-26", "2025-06-18":
	default:
		version = "2025-11-25"
	}
	return fmt.Appendf(nil, `{"protocolVersion":"%s","capabilities":{"tools":{}},"serverInfo":{"name":"fakemcp-raw","version":"1"}}`, version)
}
