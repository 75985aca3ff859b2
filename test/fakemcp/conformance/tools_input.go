package main

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type inputs = mcp.InputRequestMap

// seal ends every requestState this server hands out; a state without it was
// tampered with. It stands for a signature and is none.
const seal = "|sealed"

func sealed(state string) bool { return strings.HasSuffix(state, seal) }

var (
	nameForm    = form([]string{"name"}, object{"name": object{"type": "string"}})
	askName     = elicitation("What is your name?", nameForm)
	askGreeting = samplingRequest("Generate a greeting", 50)
	askConfirm  = elicitation("Please confirm", form([]string{"ok"}, object{"ok": object{"type": "boolean"}}))
	askColor    = elicitation("Step 2: What is your favorite color?", form([]string{"color"}, object{"color": object{"type": "string"}}))
)

// addInputRequiredTools adds the multi-round-trip tools of 2026-07-28, which
// answer input_required and are called again with the answers.
func addInputRequiredTools(s *mcp.Server, legacyOnly bool) {
	const prefix = "test_input_required_result_"
	for name, f := range map[string]toolFunc{
		"elicitation":     greetByName,
		"sampling":        askCapital,
		"list_roots":      countRoots,
		"request_state":   confirmWithState("request_state"),
		"tampered_state":  confirmWithState("tampered_state"),
		"multiple_inputs": greetWithEverything,
		"multi_round":     nameThenColor,
		"capabilities":    askWhatClientCan,
	} {
		if legacyOnly {
			f = asking(f)
		}
		addTool(s, prefix+name, noArguments, f)
	}
}

func needs(in inputs, state string) callResult {
	in = named(in)
	return &mcp.CallToolResult{InputRequests: in, RequestState: state}
}

// named has each question carry its key, see legacyTransport.
func named(in inputs) inputs {
	out := inputs{}
	for key, q := range in {
		meta := mcp.Meta{keyMeta: key}
		switch p := q.(type) {
		case *mcp.ElicitParams:
			n := *p
			n.Meta = meta
			out[key] = &n
		case *mcp.CreateMessageParams:
			n := *p
			n.Meta = meta
			out[key] = &n
		case *mcp.ListRootsParams:
			out[key] = &mcp.ListRootsParams{Meta: meta}
		default:
			out[key] = q
		}
	}
	return out
}

// accepted returns the accepted elicitation answer under key, or nil.
func accepted(m mcp.InputResponseMap, key string) object {
	e, ok := m[key].(*mcp.ElicitResult)
	if !ok || e == nil || e.Action != "accept" {
		return nil
	}
	if e.Content == nil {
		return object{}
	}
	return e.Content
}

func acceptedString(m mcp.InputResponseMap, key, member string) string {
	s, _ := accepted(m, key)[member].(string)
	return s
}

// sampled returns the text of the sampling answer under key, and whether there is one.
func sampled(m mcp.InputResponseMap, key string) (string, bool) {
	r, ok := m[key].(*mcp.CreateMessageWithToolsResult)
	if !ok || r == nil {
		return "", false
	}
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			return t.Text, true
		}
	}
	return "", true
}

func greetByName(_ context.Context, r callRequest) (callResult, error) {
	if name := acceptedString(r.Params.InputResponses, "user_name", "name"); name != "" {
		return text("Hello, %s!", name), nil
	}
	return needs(inputs{"user_name": askName}, ""), nil
}

func askCapital(_ context.Context, r callRequest) (callResult, error) {
	if said, ok := sampled(r.Params.InputResponses, "capital_question"); ok {
		return text("%s", said), nil
	}
	return needs(inputs{"capital_question": samplingRequest("What is the capital of France?", 100)}, ""), nil
}

func countRoots(_ context.Context, r callRequest) (callResult, error) {
	if l, ok := r.Params.InputResponses["client_roots"].(*mcp.ListRootsResult); ok && l != nil {
		return text("%d roots", len(l.Roots)), nil
	}
	return needs(inputs{"client_roots": &mcp.ListRootsParams{}}, ""), nil
}

// confirmWithState asks once and accepts the answer only together with the state it handed out.
func confirmWithState(name string) toolFunc {
	return func(_ context.Context, r callRequest) (callResult, error) {
		state := r.Params.RequestState
		answered := accepted(r.Params.InputResponses, "confirm") != nil
		switch {
		case state != "" && !sealed(state), answered && state == "":
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState rejected"}
		case answered:
			return text("state-ok"), nil
		}
		return needs(inputs{"confirm": askConfirm}, name+seal), nil
	}
}

func greetWithEverything(_ context.Context, r callRequest) (callResult, error) {
	in := r.Params.InputResponses
	name := acceptedString(in, "user_name", "name")
	greeting, greeted := sampled(in, "greeting")
	roots, rooted := in["client_roots"].(*mcp.ListRootsResult)
	if name != "" && greeted && rooted {
		return text("%s %s, %d roots", greeting, name, len(roots.Roots)), nil
	}
	return needs(inputs{"user_name": askName, "greeting": askGreeting, "client_roots": &mcp.ListRootsParams{}}, "multi"+seal), nil
}

// nameThenColor takes two rounds; the state carries the first answer into the second.
func nameThenColor(_ context.Context, r callRequest) (callResult, error) {
	state, in := r.Params.RequestState, r.Params.InputResponses
	if state == "1" && accepted(in, "step1") != nil {
		return needs(inputs{"step2": askColor}, "2:"+acceptedString(in, "step1", "name")), nil
	}
	if name, second := strings.CutPrefix(state, "2:"); second && accepted(in, "step2") != nil {
		return text("%s likes %s", name, acceptedString(in, "step2", "color")), nil
	}
	return needs(inputs{"step1": elicitation("Step 1: What is your name?", nameForm)}, "1"), nil
}

// askWhatClientCan asks only for what the client declared it can answer.
func askWhatClientCan(_ context.Context, r callRequest) (callResult, error) {
	if len(r.Params.InputResponses) > 0 {
		return text("fulfilled"), nil
	}
	in := inputs{}
	if c := r.ClientCapabilities(); c != nil {
		if c.Elicitation != nil {
			in["user_name"] = askName
		}
		if c.Sampling != nil {
			in["greeting"] = askGreeting
		}
		if c.RootsV2 != nil {
			in["client_roots"] = &mcp.ListRootsParams{}
		}
	}
	if len(in) == 0 {
		return text("nothing to ask"), nil
	}
	return needs(in, ""), nil
}
