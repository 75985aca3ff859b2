package main

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addTriggerTools adds the tools that provoke something: a list that changes, an
// error about a capability the client did not declare.
func addTriggerTools(s *mcp.Server, legacyOnly bool) {
	missing := toolFunc(needSampling)
	if legacyOnly {
		missing = askModelAnyway
	}
	addTool(s, "test_missing_capability", noArguments, missing)
	addTool(s, "test_trigger_tool_change", noArguments, func(context.Context, callRequest) (callResult, error) {
		addTool(s, "transient_tool", noArguments, func(context.Context, callRequest) (callResult, error) {
			return text("t"), nil
		})
		return text("tool list changed"), nil
	})
	addTool(s, "test_trigger_prompt_change", noArguments, func(context.Context, callRequest) (callResult, error) {
		addPrompt(s, "transient_prompt", nil, func(*mcp.GetPromptRequest) *mcp.GetPromptResult {
			return &mcp.GetPromptResult{}
		})
		return text("prompt list changed"), nil
	})
}

func needSampling(_ context.Context, r callRequest) (callResult, error) {
	if c := r.ClientCapabilities(); c != nil && c.Sampling != nil {
		return text("sampling declared"), nil
	}
	data, err := json.Marshal(mcp.MissingRequiredClientCapabilityData{
		RequiredCapabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}},
	})
	if err != nil {
		return nil, err
	}
	return nil, &jsonrpc.Error{
		Code:    mcp.CodeMissingRequiredClientCapabilities,
		Message: "client must declare sampling",
		Data:    data,
	}
}
