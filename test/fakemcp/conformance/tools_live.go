package main

import (
	"context"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stepPause keeps the messages of one call apart, as a working tool would.
const stepPause = 50 * time.Millisecond

// addLiveTools adds the tools that talk while they run.
func addLiveTools(s *mcp.Server) {
	addTool(s, "test_tool_with_logging", noArguments, logThreeTimes)
	addTool(s, "test_logging_tool", noArguments, func(ctx context.Context, r callRequest) (callResult, error) {
		logInfo(ctx, r, "attempt")
		return text("logged if asked for"), nil
	})
	addTool(s, "test_tool_with_progress", noArguments, reportProgress)
	addTool(s, "test_reconnection", noArguments, dropStream)
}

func logInfo(ctx context.Context, r callRequest, message string) {
	// A client that did not ask for logging gets none: no failure of the tool.
	_ = r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: message})
}

func logThreeTimes(ctx context.Context, r callRequest) (callResult, error) {
	for i, m := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if i > 0 {
			time.Sleep(stepPause)
		}
		logInfo(ctx, r, m)
	}
	return text("Tool with logging executed successfully"), nil
}

func reportProgress(ctx context.Context, r callRequest) (callResult, error) {
	token := r.Params.GetProgressToken()
	for i, done := range []float64{0, 50, 100} {
		if i > 0 {
			time.Sleep(stepPause)
		}
		if token == nil {
			continue
		}
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token,
			Progress:      done,
			Total:         100,
			Message:       fmt.Sprintf("Completed step %v of 100", done),
		})
		if err != nil {
			return nil, err
		}
	}
	return text("%v", token), nil
}

// dropStream closes the response stream (over HTTP only) and answers on the next one.
func dropStream(_ context.Context, r callRequest) (callResult, error) {
	if r.Extra != nil && r.Extra.CloseSSEStream != nil {
		r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
	}
	time.Sleep(2 * stepPause)
	return text("Reconnection test completed"), nil
}
