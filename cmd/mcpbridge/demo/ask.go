package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"mcpbridge/bridge/mcp"
)

// questionKey names the one question a call of ask puts to a modern client.
const questionKey = "answer"

// questionOf reads the arguments of the tool ask.
func (c *call) questionOf() (string, bool) {
	var args struct {
		Question *string `json:"question"`
	}
	if decode(c.args, &args) != nil || args.Question == nil {
		return "", false
	}
	return *args.Question, true
}

func form(question string) object {
	return object{
		"message":         question,
		"requestedSchema": schema(object{"answer": object{"type": "string", "title": "Answer"}}, "answer"),
	}
}

// answersForms reports whether the client declared form elicitation. The feature came with 2025-06-18, the modes with
// 2025-11-25; an empty object means form (CLF-01).
func answersForms(caps jsontext.Value, v mcp.Version) bool {
	var declared struct {
		Elicitation map[string]jsontext.Value `json:"elicitation"`
	}
	if !v.AtLeast(mcp.V20250618) || decode(caps, &declared) != nil || declared.Elicitation == nil {
		return false
	}
	_, hasForm := declared.Elicitation["form"]
	_, hasURL := declared.Elicitation["url"]
	return hasForm || !hasURL || v == mcp.V20250618
}

// reply is a client's answer to a form (CLF-07).
type reply struct {
	Action  string                    `json:"action"`
	Content map[string]jsontext.Value `json:"content"`
}

// text renders the reply as a tool result; ok is false if an accepted form does not fit its schema (CLF-08).
func (a reply) text() (result object, ok bool) {
	switch a.Action {
	case "accept":
		answer := a.Content["answer"]
		if answer.Kind() != '"' {
			return nil, false
		}
		return textResult(answer), true
	case "decline":
		return textResult("The user declined to answer."), true
	}
	return textResult("The user dismissed the question."), true
}

func (a reply) known() bool {
	return a.Action == "accept" || a.Action == "decline" || a.Action == "cancel"
}

// askLegacy puts the question as a request: it sends elicitation/create and waits for the response. A question whose call was cancelled is withdrawn.
func (s *server) askLegacy(ctx context.Context, c *call) (object, *rpcError) {
	question, ok := c.questionOf()
	if !ok {
		return badArguments(c.request, "question must be a string")
	}
	if !answersForms(c.caps, c.version) {
		return toolError("The client cannot be asked: it did not declare elicitation."), nil
	}
	if !s.awaitReady(ctx) {
		return nil, nil
	}
	id, answered := s.putQuestion(c.request, question)
	select {
	case m := <-answered:
		return legacyReply(m), nil
	case <-ctx.Done():
		s.withdraw(id)
		return nil, nil
	}
}

// awaitReady waits for notifications/initialized: before it a server asks nothing (LEG-04).
func (s *server) awaitReady(ctx context.Context) bool {
	s.mu.Lock()
	ready := s.session.ready
	s.mu.Unlock()
	select {
	case <-ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// putQuestion sends the question of a call that is still open. Its id is never used again in the session (FRM-10).
func (s *server) putQuestion(r *request, question string) (string, <-chan message) {
	answered := make(chan message, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	id := fmt.Sprintf("question-%d", s.asked)
	if s.open[r.key] == r {
		s.asks[`"`+id] = answered
		s.write(object{"jsonrpc": "2.0", "id": id, "method": mcp.ElicitationCreate, "params": form(question)})
	}
	return id, answered
}

func (s *server) withdraw(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks[`"`+id] == nil {
		return
	}
	delete(s.asks, `"`+id)
	s.write(notification(mcp.Cancelled, object{"requestId": id, "reason": "the call was cancelled"}))
}

func legacyReply(m message) object {
	var failure rpcError
	if m.Error != nil {
		if m.Result != nil || decode(m.Error, &failure) != nil {
			return toolError("The client's answer was not valid.")
		}
		return toolError("The client could not ask: %s (%d)", failure.Message, failure.Code)
	}
	var answer reply
	if decode(m.Result, &answer) != nil || !answer.known() {
		return toolError("The client's answer was not valid.")
	}
	result, ok := answer.text()
	if !ok {
		return toolError("The answer does not fit the form: answer must be a string.")
	}
	return result
}

// readRetry reads the members a retry adds to the original params.
func (c *call) readRetry(answers, state jsontext.Value) *rpcError {
	if answers != nil && (answers.Kind() != '{' || decode(answers, &c.answers) != nil) {
		return invalidParams("inputResponses must be an object")
	}
	for key, answer := range c.answers {
		if answer.Kind() != '{' {
			return invalidParams("inputResponses: %q must be an object", key)
		}
	}
	if state == nil {
		return nil
	}
	c.state = new(string)
	if state.Kind() != '"' || decode(state, c.state) != nil {
		return invalidParams("requestState must be a string")
	}
	return nil
}

// askModern puts the question as an interim result: it answers with it until the retry brings a fitting answer (MRT-04, MRT-09, MRT-17, MRT-22). Nothing is
// remembered between the two: the state ties the retry to the question and needs no secret, as knowing it gains nothing
// (MRT-06).
func (s *server) askModern(c *call) (object, *rpcError) {
	question, ok := c.questionOf()
	if !ok {
		return badArguments(c.request, "question must be a string")
	}
	state := stateOf(question)
	if c.state != nil && *c.state != state {
		return nil, invalidParams("requestState does not belong to this call")
	}
	if given, ok := c.answers[questionKey]; ok {
		var answer reply
		if decode(given, &answer) != nil || !answer.known() {
			return nil, invalidParams("inputResponses: %q is no answer to a form", questionKey)
		}
		if result, ok := answer.text(); ok {
			return result, nil
		}
	}
	if !answersForms(c.caps, c.version) {
		failure := errorf(mcp.CodeMissingRequiredCapability, "the client must declare form elicitation")
		failure.Data = object{"requiredCapabilities": object{"elicitation": object{"form": object{}}}}
		return nil, failure
	}
	params := form(question)
	params["mode"] = "form"
	return object{
		"resultType":    mcp.ResultInputRequired,
		"inputRequests": object{questionKey: object{"method": mcp.ElicitationCreate, "params": params}},
		"requestState":  state,
	}, nil
}

func stateOf(question string) string {
	digest := sha256.Sum256([]byte(question))
	return "demo1." + hex.EncodeToString(digest[:16])
}
