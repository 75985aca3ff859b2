package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addQuestionTools adds the tools that ask the client while a call runs, as
// legacy servers do: sampling/createMessage and elicitation/create.
func addQuestionTools(s *mcp.Server) {
	addTool(s, "test_sampling", `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`, askModel)
	addTool(s, "test_elicitation", `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`,
		func(ctx context.Context, r callRequest) (callResult, error) {
			return askUser(ctx, r, stringArgument(r, "message"), form([]string{"username", "email"}, object{
				"username": object{"type": "string", "description": "User's response"},
				"email":    object{"type": "string", "description": "User's email address"},
			}))
		})
	addTool(s, "test_elicitation_sep1034_defaults", noArguments, func(ctx context.Context, r callRequest) (callResult, error) {
		return askUser(ctx, r, "Please review the defaults", defaultsForm())
	})
	addTool(s, "test_elicitation_sep1330_enums", noArguments, func(ctx context.Context, r callRequest) (callResult, error) {
		return askUser(ctx, r, "Please choose", enumsForm())
	})
}

func askModel(ctx context.Context, r callRequest) (callResult, error) {
	answer, err := r.Session.CreateMessage(ctx, samplingRequest(stringArgument(r, "prompt"), 100))
	if err != nil {
		return failed(err.Error()), nil
	}
	said := "(none)"
	if c, ok := answer.Content.(*mcp.TextContent); ok {
		said = c.Text
	}
	return text("LLM response: %s", said), nil
}

func askUser(ctx context.Context, r callRequest, message string, schema any) (callResult, error) {
	answer, err := r.Session.Elicit(ctx, elicitation(message, schema))
	if err != nil {
		return failed(err.Error()), nil
	}
	given, err := json.Marshal(answer.Content)
	if err != nil {
		return nil, err
	}
	return text("Elicitation completed: action=%s, content=%s", answer.Action, given), nil
}

func defaultsForm() object {
	field := func(kind string, value any) object {
		return object{"type": kind, "description": "with default", "default": value}
	}
	status := field("string", "active")
	status["enum"] = []string{"active", "inactive", "pending"}
	return form(nil, object{
		"name":     field("string", "John Doe"),
		"age":      field("integer", 30),
		"score":    field("number", 95.5),
		"status":   status,
		"verified": field("boolean", true),
	})
}

func enumsForm() object {
	options := []string{"option1", "option2", "option3"}
	var titled []object
	for i, t := range []string{"First Option", "Second Option", "Third Option"} {
		titled = append(titled, object{"const": fmt.Sprintf("value%d", i+1), "title": t})
	}
	return form(nil, object{
		"untitledSingle": object{"type": "string", "enum": options},
		"titledSingle":   object{"type": "string", "oneOf": titled},
		"legacyEnum": object{"type": "string", "enum": []string{"opt1", "opt2", "opt3"},
			"enumNames": []string{"Option One", "Option Two", "Option Three"}},
		"untitledMulti": object{"type": "array", "items": object{"type": "string", "enum": options}},
		"titledMulti":   object{"type": "array", "items": object{"anyOf": titled}},
	})
}
