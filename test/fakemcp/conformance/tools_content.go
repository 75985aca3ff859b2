package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// richSchema uses what JSON Schema 2020-12 has beyond the usual: a bridge that
// decodes and encodes schemas loses some of it.
const richSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
	`"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},` +
	`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},` +
	`"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},` +
	`"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],` +
	`"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},` +
	`"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`

// addContentTools adds the tools that answer at once with a fixed result.
func addContentTools(s *mcp.Server) {
	image := &mcp.ImageContent{Data: tinyPNG, MIMEType: "image/png"}
	fixed := map[string]callResult{
		"test_simple_text":       text("This is a simple text response for testing."),
		"test_image_content":     content(image),
		"test_audio_content":     content(&mcp.AudioContent{Data: tinyWAV, MIMEType: "audio/wav"}),
		"test_embedded_resource": content(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
		"test_multiple_content_types": content(&mcp.TextContent{Text: "Multiple content types test:"}, image,
			embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`)),
		"test_error_handling":        failed("This tool intentionally returns an error for testing"),
		"test_streaming_elicitation": text("done"),
	}
	for name, result := range fixed {
		addTool(s, name, noArguments, func(context.Context, callRequest) (callResult, error) {
			copied := *result
			return &copied, nil
		})
	}
	addTool(s, "json_schema_2020_12_tool", richSchema, func(_ context.Context, r callRequest) (callResult, error) {
		return text("called with %s", r.Params.Arguments), nil
	})
	addTool(s, "test_x_mcp_header",
		`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`,
		func(_ context.Context, r callRequest) (callResult, error) {
			return text("region=%s", stringArgument(r, "region")), nil
		})
}
