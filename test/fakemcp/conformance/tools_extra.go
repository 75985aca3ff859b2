package main

import (
	"context"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addExtraTools adds what the suite does not look for.
func addExtraTools(s *mcp.Server, legacyOnly bool) {
	visit := toolFunc(askToVisit)
	if legacyOnly {
		visit = asking(visit)
	}
	addTool(s, "extra_visit", noArguments, visit)
	addTool(s, "extra_wait", noArguments, func(ctx context.Context, r callRequest) (callResult, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		<-ctx.Done()
		return nil, ctx.Err()
	})
	addTool(s, "extra_touch", noArguments, func(ctx context.Context, _ callRequest) (callResult, error) {
		return text("touched"), s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: watchedURI})
	})
	addTool(s, "extra_die", noArguments, func(context.Context, callRequest) (callResult, error) {
		os.Exit(3)
		return nil, nil
	})
}

// askToVisit asks the user to open a web page.
func askToVisit(_ context.Context, r callRequest) (callResult, error) {
	if a, ok := r.Params.InputResponses["page"].(*mcp.ElicitResult); ok && a != nil {
		return text("visited: %s", a.Action), nil
	}
	return needs(inputs{"page": &mcp.ElicitParams{Mode: "url", URL: "https://id.example/connect", Message: "Sign in", ElicitationID: "e-1"}}, ""), nil
}
