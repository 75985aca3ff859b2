// Command asker is a legacy stdio MCP server that asks its user, for tests that must know what ran how often and whose answer
// came to whom. It appends "PID run CALL", "PID answer CALL STEP VALUE" and "PID done CALL" to the file of -log.
//
// Tools: steps {call, n} asks n questions one after the other; both {call} asks two at once; none {call} asks nothing. Each
// question asks for the value CALL/STEP in a form, and the call fails if another comes. All end with the text "done CALL".
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
)

type server struct {
	log io.Writer

	mu    sync.Mutex
	last  int                             // guarded by mu; id of the last question
	asked map[string]chan json.RawMessage // guarded by mu; open questions
	off   map[string]chan struct{}        // guarded by mu; running calls by raw id, closed on cancellation
}

type message struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Error  json.RawMessage
	Params struct {
		ProtocolVersion string
		RequestID       json.RawMessage `json:"requestId"`
		Name            string
		Arguments       struct {
			Call string
			N    int
		}
	}
}

func main() {
	file := flag.String("log", "", "append what happens to this file")
	flag.Parse()
	s := &server{log: io.Discard, asked: map[string]chan json.RawMessage{}, off: map[string]chan struct{}{}}
	if *file != "" {
		f, err := os.OpenFile(*file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			fmt.Fprintln(os.Stderr, "asker:", err)
			os.Exit(1)
		}
		s.log = f
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		var m message
		if json.Unmarshal(line, &m) == nil {
			s.handle(&m)
		}
		if err != nil {
			return
		}
	}
}

func (s *server) note(format string, a ...any) {
	_, _ = s.log.Write(fmt.Appendf(nil, "%d "+format+"\n", append([]any{os.Getpid()}, a...)...))
}

func (s *server) say(format string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = os.Stdout.Write(fmt.Appendf(nil, format+"\n", a...))
}

func (s *server) handle(m *message) {
	switch {
	case m.Method == "":
		s.answered(m)
	case m.Method == "notifications/cancelled":
		s.mu.Lock()
		defer s.mu.Unlock()
		if c := s.off[string(m.Params.RequestID)]; c != nil {
			close(c)
			delete(s.off, string(m.Params.RequestID))
		}
	case m.ID == nil:
	case m.Method == "initialize":
		s.say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"asker","version":"1"}}}`, m.ID, m.Params.ProtocolVersion)
	case m.Method == "ping":
		s.say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	case m.Method == "tools/list":
		s.say(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"steps","inputSchema":{"type":"object"}},{"name":"both","inputSchema":{"type":"object"}},{"name":"none","inputSchema":{"type":"object"}}]}}`, m.ID)
	case m.Method == "tools/call":
		off := make(chan struct{})
		s.mu.Lock()
		s.off[string(m.ID)] = off
		s.mu.Unlock()
		go s.call(m, off)
	default:
		s.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
	}
}

func (s *server) answered(m *message) {
	s.mu.Lock()
	c := s.asked[string(m.ID)]
	delete(s.asked, string(m.ID))
	s.mu.Unlock()
	if c == nil {
		s.note("stray %s", m.ID)
		return
	}
	c <- m.Result
}

func (s *server) call(m *message, off <-chan struct{}) {
	call := m.Params.Arguments.Call
	s.note("run %s", call)
	var failure string
	switch m.Params.Name {
	case "steps":
		for i := 1; i <= m.Params.Arguments.N && failure == ""; i++ {
			failure = s.ask(call, i, off)
		}
	case "both":
		var wg sync.WaitGroup
		var failed [2]string
		for i := range failed {
			wg.Go(func() { failed[i] = s.ask(call, i+1, off) })
		}
		wg.Wait()
		failure = failed[0] + failed[1]
	}
	s.mu.Lock()
	delete(s.off, string(m.ID))
	s.mu.Unlock()
	if failure != "" {
		s.note("failed %s %s", call, failure)
		s.say(`{"jsonrpc":"2.0","id":%s,"result":{"isError":true,"content":[{"type":"text","text":%q}]}}`, m.ID, failure)
		return
	}
	s.note("done %s", call)
	s.say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, m.ID, "done "+call)
}

// ask puts a question and returns what is wrong with the answer, "" if nothing is.
func (s *server) ask(call string, step int, off <-chan struct{}) string {
	want := call + "/" + strconv.Itoa(step)
	back := make(chan json.RawMessage, 1)
	s.mu.Lock()
	s.last++
	id := strconv.Itoa(s.last)
	s.asked[id] = back
	s.mu.Unlock()
	s.say(`{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":{"message":%q,"requestedSchema":{"type":"object","properties":{"value":{"type":"string"}},"required":["value"]}}}`, id, want)
	var answer struct {
		Action  string
		Content struct{ Value string }
	}
	select {
	case raw := <-back:
		_ = json.Unmarshal(raw, &answer)
	case <-off:
		return "cancelled"
	}
	if answer.Action == "accept" {
		s.note("answer %s %d %s", call, step, answer.Content.Value)
	}
	if answer.Action != "accept" || answer.Content.Value != want {
		return fmt.Sprintf("question %s was answered with %s %q", want, answer.Action, answer.Content.Value)
	}
	return ""
}
