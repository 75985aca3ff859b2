package demo

import (
	"bytes"
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mcpbridge/bridge/mcp"
)

// receive handles one line. Blank lines are no messages (FRM-07).
func (s *server) receive(ctx context.Context, line []byte) {
	text := jsontext.Value(bytes.Trim(line, " \t\r"))
	switch {
	case len(text) == 0:
	case text[0] == '[':
		s.receiveBatch(ctx, text)
	default:
		s.receiveOne(ctx, text, nil)
	}
}

// receiveOne handles one object, a line of its own or a member of a batch.
func (s *server) receiveOne(ctx context.Context, text jsontext.Value, b *batch) {
	m, failure := parseMessage(text)
	switch {
	case failure != nil && m.isResponse():
		// Answering an answer would never end.
	case failure != nil && m.ID == nil && m.Method != nil && failure.Code == mcp.CodeInvalidParams:
		// A notification gets no answer, whatever its params are (FRM-14).
	case failure != nil:
		s.refuseMember(m.usableID(), failure, b)
	case m.Method == nil:
		s.responded(m)
	case m.ID == nil:
		s.notified(m)
	default:
		s.request(ctx, m, b)
	}
}

func (s *server) notified(m message) {
	switch m.method {
	case mcp.Cancelled:
		var params struct {
			RequestID jsontext.Value `json:"requestId"`
		}
		if decode(m.Params, &params) == nil {
			s.cancelled(params.RequestID)
		}
	case mcp.Initialized:
		s.initialized()
	}
}

// responded hands an answer of the legacy client to the call that asked. Answers to nothing are dropped (FRM-16).
func (s *server) responded(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := idKey(m.ID)
	if waiting := s.asks[key]; waiting != nil {
		delete(s.asks, key)
		waiting <- m
	}
}

func (s *server) request(ctx context.Context, m message, b *batch) {
	r, failure := s.classify(m)
	r.batch = b
	if b != nil {
		s.hold(b)
	}
	if failure == nil && s.isOpen(r) {
		failure = invalidRequest("id is in use by a request that is still open")
	}
	if failure != nil {
		s.answer(r, nil, failure)
		return
	}
	s.dispatch(ctx, r)
}

// dispatch runs a request that passed all general checks.
func (s *server) dispatch(ctx context.Context, r *request) {
	switch r.method {
	case mcp.Listen:
		s.listen(ctx, r)
	case mcp.ToolsCall:
		s.callTool(ctx, r)
	default:
		result, failure := quickMethod(r.method)(s, r)
		s.answer(r, result, failure)
	}
}

// quick answers a request at once.
type quick func(*server, *request) (object, *rpcError)

// quickMethod returns what serves a method that never waits, nil if there is none.
func quickMethod(method string) quick {
	switch method {
	case mcp.Initialize:
		return (*server).initialize
	case mcp.Ping:
		return func(*server, *request) (object, *rpcError) { return object{}, nil }
	case mcp.Discover:
		return (*server).discover
	case mcp.SetLevel:
		return (*server).setLevel
	case mcp.ToolsList:
		return (*server).listTools
	case mcp.ResourcesList:
		return (*server).listResources
	case mcp.ResourcesTemplatesList:
		return (*server).listTemplates
	case mcp.ResourcesRead:
		return (*server).readResource
	case mcp.ResourcesSubscribe:
		return (*server).subscribe
	case mcp.ResourcesUnsubscribe:
		return (*server).unsubscribe
	case mcp.PromptsList:
		return (*server).listPrompts
	case mcp.PromptsGet:
		return (*server).getPrompt
	case mcp.Complete:
		return (*server).complete
	}
	return nil
}

func serves(method string, era mcp.Era) bool {
	if only := mcp.TraitsOf(method).Only; only != mcp.EraUnknown && only != era {
		return false
	}
	return method == mcp.Listen || method == mcp.ToolsCall || quickMethod(method) != nil
}

// batch collects the answers to an array of 2025-03-26 (FRM-24).
type batch struct {
	pending int
	answers []object
}

// receiveBatch handles an array: of a 2025-03-26 session, or an error (FRM-23, FRM-25).
func (s *server) receiveBatch(ctx context.Context, text jsontext.Value) {
	var members []jsontext.Value
	if json.Unmarshal(text, &members, jsontext.AllowDuplicateNames(true)) != nil {
		s.refuse(nil, errorf(mcp.CodeParse, "not valid JSON"))
		return
	}
	if !s.batches() || len(members) == 0 || len(members) > MaxBatch {
		s.refuse(nil, invalidRequest("batches of 1 to %d messages, and only in a session of 2025-03-26", MaxBatch))
		return
	}
	b := &batch{pending: 1}
	for _, member := range members {
		s.receiveOne(ctx, member, b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(b)
}

func (s *server) batches() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session != nil && s.session.version.Batches()
}

// hold announces one more answer to a batch.
func (s *server) hold(b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.pending++
}

// release gives up a claim on the batch and writes the array after the last one. s.mu is held.
func (s *server) release(b *batch) {
	if b.pending--; b.pending == 0 && len(b.answers) > 0 {
		s.write(b.answers)
	}
}

// refuseMember answers something that is not even a request.
func (s *server) refuseMember(id jsontext.Value, failure *rpcError, b *batch) {
	if b == nil {
		s.refuse(id, failure)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b.answers = append(b.answers, response(id, nil, failure))
}
