package demo

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mcpbridge/bridge/mcp"
)

// object is a JSON object under construction. Its members are written in the order of their names.
type object = map[string]any

// message is a JSON-RPC object whose members have been told apart but not yet believed.
type message struct {
	JSONRPC jsontext.Value `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Method  jsontext.Value `json:"method"`
	Params  jsontext.Value `json:"params"`
	Result  jsontext.Value `json:"result"`
	Error   jsontext.Value `json:"error"`

	method string
}

// rpcError is the error member of a response.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func errorf(code int, format string, args ...any) *rpcError {
	return &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
}

func invalidRequest(format string, args ...any) *rpcError {
	return errorf(mcp.CodeInvalidRequest, format, args...)
}

func invalidParams(format string, args ...any) *rpcError {
	return errorf(mcp.CodeInvalidParams, format, args...)
}

// parseMessage reads one object. It is strict: UTF-8, one value, no duplicate names, names compared by case (FRM-02,
// FRM-34). The message is usable up to its id even when an error is returned, so that the answer can carry the id.
func parseMessage(text jsontext.Value) (message, *rpcError) {
	var m message
	switch err := json.Unmarshal(text, &m); {
	case errors.Is(err, jsontext.ErrDuplicateName):
		m = message{}
		if json.Unmarshal(text, &m, jsontext.AllowDuplicateNames(true)) != nil {
			return message{}, errorf(mcp.CodeParse, "not valid JSON")
		}
		return m, invalidRequest("duplicate member name")
	case err != nil:
		if text.IsValid() {
			return message{}, invalidRequest("not a JSON-RPC message: an object is needed")
		}
		return message{}, errorf(mcp.CodeParse, "not valid JSON: %v", err)
	}
	return m, m.check()
}

// check holds the message against JSON-RPC 2.0 and the id rule of MCP (FRM-01, FRM-08, FRM-13).
func (m *message) check() *rpcError {
	if string(m.JSONRPC) != `"2.0"` {
		return invalidRequest(`jsonrpc must be "2.0"`)
	}
	if m.ID != nil && !validID(m.ID) {
		return invalidRequest("id must be a string or an integer")
	}
	if m.Method == nil {
		if m.isResponse() && m.ID != nil {
			return nil
		}
		return invalidRequest("neither a request nor a notification nor a response")
	}
	if m.Method.Kind() != '"' || json.Unmarshal(m.Method, &m.method) != nil {
		return invalidRequest("method must be a string")
	}
	switch m.Params.Kind() {
	case '{':
		return nil
	case '[':
		return invalidParams("params must be an object")
	}
	if m.Params != nil {
		return invalidRequest("params must be an object")
	}
	return nil
}

func (m *message) isResponse() bool { return m.Method == nil && (m.Result != nil || m.Error != nil) }

// usableID is the id to put on an answer, nil if the message has none that could be used (FRM-12).
func (m *message) usableID() jsontext.Value {
	if validID(m.ID) {
		return m.ID
	}
	return nil
}

// validID reports whether v is a string or a number without fraction and exponent (FRM-08).
func validID(v jsontext.Value) bool {
	switch v.Kind() {
	case '"':
		return true
	case '0':
		for i, c := range v {
			if (c < '0' || c > '9') && (c != '-' || i > 0) {
				return false
			}
		}
		return true
	}
	return false
}

// idKey makes equal ids equal strings and keeps 1 and "1" apart.
func idKey(v jsontext.Value) string {
	if v.Kind() != '"' {
		return string(v)
	}
	var text string
	if json.Unmarshal(v, &text) != nil {
		return string(v)
	}
	return `"` + text
}

// decode reads v into out; an absent v leaves out alone.
func decode(v jsontext.Value, out any) error {
	if v == nil {
		return nil
	}
	return json.Unmarshal(v, out)
}

// encode writes v as one line. Raw values keep the spelling of their strings and numbers.
func encode(v any) ([]byte, error) {
	line, err := json.Marshal(v, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, fmt.Errorf("cannot encode message: %w", err)
	}
	return append(line, '\n'), nil
}

func notification(method string, params object) object {
	return object{"jsonrpc": "2.0", "method": method, "params": params}
}

// response builds the answer to a request; exactly one of result and failure is used.
func response(id jsontext.Value, result object, failure *rpcError) object {
	answer := object{"jsonrpc": "2.0"}
	if id != nil {
		answer["id"] = id
	}
	if failure != nil {
		answer["error"] = failure
	} else {
		answer["result"] = result
	}
	return answer
}
