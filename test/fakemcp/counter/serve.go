package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	capabilities = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{}}`
	tools        = `{"tools":[{"name":"next","inputSchema":{"type":"object"}},{"name":"about","inputSchema":{"type":"object"}},` +
		`{"name":"sleep","inputSchema":{"type":"object"}},{"name":"announce","inputSchema":{"type":"object"}},{"name":"crash","inputSchema":{"type":"object"}}]}`
	resources = `{"resources":[{"uri":"counter://a","name":"a"},{"uri":"counter://b","name":"b"}]}`
)

// server is the state of the one process.
type server struct {
	mark, version string
	args          []string
	log           io.Writer

	mu  sync.Mutex
	out io.Writer
	n   int
}

type request struct {
	ID     json.RawMessage
	Method string
	Params struct {
		ProtocolVersion string
		Name            string
		Arguments       struct {
			Ms     int
			Method string
			Params json.RawMessage
		}
	}
}

// note appends a line to the log with one write, which other processes' lines cannot break.
func (s *server) note(line []byte) {
	_, _ = s.log.Write(fmt.Appendf(nil, "%d %s\n", os.Getpid(), line))
}

func (s *server) say(format string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.out.Write(fmt.Appendf(nil, format+"\n", a...))
}

func (s *server) handle(line []byte) {
	var r request
	if err := json.Unmarshal(line, &r); err != nil || r.ID == nil || r.Method == "" {
		return
	}
	switch r.Method {
	case "initialize":
		s.result(r, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"counter","version":"1"}}`, s.negotiate(r.Params.ProtocolVersion), capabilities))
	case "tools/list":
		s.result(r, tools)
	case "resources/list":
		s.result(r, resources)
	case "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		s.result(r, `{}`)
	case "tools/call":
		s.call(r)
	default:
		s.fail(r, -32601, "no such method")
	}
}

func (s *server) result(r request, object string) {
	s.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, object)
}

func (s *server) fail(r request, code int, message string) {
	s.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, r.ID, code, message)
}

func (s *server) negotiate(asked string) string {
	file, named := strings.CutPrefix(s.version, "@")
	if named {
		text, err := os.ReadFile(file)
		if err != nil {
			return asked
		}
		return strings.TrimSpace(string(text))
	}
	if s.version != "" {
		return s.version
	}
	return asked
}

func (s *server) call(r request) {
	args := r.Params.Arguments
	switch r.Params.Name {
	case "next":
		s.mu.Lock()
		s.n++
		s.mu.Unlock()
		s.tell(r)
	case "about":
		s.tell(r)
	case "sleep":
		time.AfterFunc(time.Duration(args.Ms)*time.Millisecond, func() { s.tell(r) })
	case "announce":
		params := ""
		if args.Params != nil {
			params = `,"params":` + string(args.Params)
		}
		s.say(`{"jsonrpc":"2.0","method":%q%s}`, args.Method, params)
		s.tell(r)
	case "crash":
		os.Exit(3)
	default:
		s.fail(r, -32602, "no such tool")
	}
}

// tell answers a call with the state of the process.
func (s *server) tell(r request) {
	s.mu.Lock()
	n := s.n
	s.mu.Unlock()
	state, _ := json.Marshal(map[string]any{"pid": os.Getpid(), "mark": s.mark, "n": n, "args": s.args})
	text, _ := json.Marshal(string(state))
	s.result(r, fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"structuredContent":%s}`, text, state))
}
