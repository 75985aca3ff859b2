package main

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// promptFunc is a prompt's body.
type promptFunc func(*mcp.GetPromptRequest) *mcp.GetPromptResult

func addPrompt(s *mcp.Server, name string, arguments []string, f promptFunc) {
	p := &mcp.Prompt{Name: name, Description: "conformance: " + name}
	for _, a := range arguments {
		p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a, Description: a, Required: true})
	}
	s.AddPrompt(p, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { return f(r), nil })
}

func said(c ...mcp.Content) *mcp.GetPromptResult {
	g := &mcp.GetPromptResult{}
	for _, x := range c {
		g.Messages = append(g.Messages, &mcp.PromptMessage{Role: "user", Content: x})
	}
	return g
}

func line(format string, a ...any) mcp.Content {
	return &mcp.TextContent{Text: fmt.Sprintf(format, a...)}
}

func addPrompts(s *mcp.Server) {
	addPrompt(s, "test_simple_prompt", nil, func(*mcp.GetPromptRequest) *mcp.GetPromptResult {
		return said(line("This is a simple prompt for testing."))
	})
	addPrompt(s, "test_prompt_with_arguments", []string{"arg1", "arg2"}, func(r *mcp.GetPromptRequest) *mcp.GetPromptResult {
		return said(line("Prompt with arguments: arg1='%s', arg2='%s'", r.Params.Arguments["arg1"], r.Params.Arguments["arg2"]))
	})
	addPrompt(s, "test_prompt_with_embedded_resource", []string{"resourceUri"}, func(r *mcp.GetPromptRequest) *mcp.GetPromptResult {
		return said(embedded(r.Params.Arguments["resourceUri"], "text/plain", "Embedded resource content for testing."),
			line("Please process the embedded resource above."))
	})
	addPrompt(s, "test_prompt_with_image", nil, func(*mcp.GetPromptRequest) *mcp.GetPromptResult {
		return said(&mcp.ImageContent{Data: tinyPNG, MIMEType: "image/png"}, line("Please analyze the image above."))
	})
	addPrompt(s, "test_input_required_result_prompt", nil, func(r *mcp.GetPromptRequest) *mcp.GetPromptResult {
		if a := accepted(r.Params.InputResponses, "user_context"); a != nil {
			return said(line("Context: %v", a["context"]))
		}
		return &mcp.GetPromptResult{InputRequests: named(inputs{
			"user_context": elicitation("Please provide context", form([]string{"context"}, object{"context": object{"type": "string"}})),
		})}
	})
}
