package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type (
	callRequest = *mcp.CallToolRequest
	callResult  = *mcp.CallToolResult
	object      = map[string]any
)

// toolFunc is a tool's body.
type toolFunc func(context.Context, callRequest) (callResult, error)

// noArguments is the input schema of a tool that takes nothing.
const noArguments = `{"type":"object","properties":{}}`

// tinyPNG is one opaque pixel; tinyWAV is a header and two silent samples.
var (
	tinyPNG = mustBase64("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	tinyWAV = []byte("RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00")
)

func mustBase64(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func addTool(s *mcp.Server, name, schema string, f toolFunc) {
	s.AddTool(&mcp.Tool{
		Name:        name,
		Description: "conformance: " + name,
		InputSchema: json.RawMessage(schema),
	}, mcp.ToolHandler(f))
}

func content(c ...mcp.Content) callResult { return &mcp.CallToolResult{Content: c} }

func text(format string, a ...any) callResult {
	return content(&mcp.TextContent{Text: fmt.Sprintf(format, a...)})
}

func failed(message string) callResult {
	r := text("%s", message)
	r.IsError = true
	return r
}

func embedded(uri, mime, text string) mcp.Content {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: mime, Text: text}}
}

// stringArgument returns the named string argument, or "".
func stringArgument(r callRequest, name string) string {
	var args map[string]any
	if json.Unmarshal(r.Params.Arguments, &args) != nil {
		return ""
	}
	s, _ := args[name].(string)
	return s
}

// form is an elicitation schema over the given properties.
func form(required []string, properties object) object {
	o := object{"type": "object", "properties": properties}
	if required != nil {
		o["required"] = required
	}
	return o
}

func elicitation(message string, schema any) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: schema}
}

func samplingRequest(prompt string, maxTokens int64) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{
		MaxTokens: maxTokens,
		Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: prompt}}},
	}
}
