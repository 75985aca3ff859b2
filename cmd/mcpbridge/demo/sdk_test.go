package demo

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sdkClient runs the official client against the server over pipes.
func sdkClient(t *testing.T, version string, opts *mcp.ClientOptions) *mcp.ClientSession {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		defer outW.Close()
		done <- Serve(context.Background(), inR, outW, Options{})
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() {
		session.Close()
		inW.Close()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return session
}

func TestOfficialClient(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) { withOfficialClient(t, version) })
	}
}

func withOfficialClient(t *testing.T, version string) {
	updates, steps := make(chan string, 10), make(chan float64, 10)
	session := sdkClient(t, version, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "Because"}}, nil
		},
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updates <- r.Params.URI },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			steps <- r.Params.Progress
		},
	})
	if got := session.InitializeResult().ProtocolVersion; got != version {
		t.Errorf("negotiated %s", got)
	}
	checkLists(t, session)
	if got := sdkCall(t, session, "echo", map[string]any{"text": "größe"}); got != "größe" {
		t.Errorf("echo: %q", got)
	}
	checkProgress(t, session, steps)
	checkUpdates(t, session, updates)
	if version >= "2025-06-18" {
		if got := sdkCall(t, session, "ask", map[string]any{"question": "Why?"}); got != "Because" {
			t.Errorf("ask: %q", got)
		}
	}
}

func checkLists(t *testing.T, session *mcp.ClientSession) {
	t.Helper()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "echo add countdown ask log region_echo touch" {
		t.Errorf("tools: %s", got)
	}
	read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "demo://readme"})
	if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != readme {
		t.Errorf("readme: %v, %v", read, err)
	}
	prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"name": "Ada"}})
	if err != nil || len(prompt.Messages) != 1 {
		t.Errorf("prompt: %v, %v", prompt, err)
	}
	complete, err := session.Complete(t.Context(), &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"},
		Argument: mcp.CompleteParamsArgument{Name: "name", Value: "to"},
	})
	if err != nil || len(complete.Completion.Values) != 1 || complete.Completion.Values[0] != "Tony" {
		t.Errorf("completion: %v, %v", complete, err)
	}
}

func checkProgress(t *testing.T, session *mcp.ClientSession, steps <-chan float64) {
	t.Helper()
	params := &mcp.CallToolParams{Name: "countdown", Arguments: map[string]any{"from": 2}}
	params.SetProgressToken("p")
	if _, err := session.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	for want := 1.0; want <= 2; want++ {
		if got := receive(t, steps); got != want {
			t.Errorf("progress %v, want %v", got, want)
		}
	}
}

func checkUpdates(t *testing.T, session *mcp.ClientSession, updates <-chan string) {
	t.Helper()
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: clockURI}); err != nil {
		t.Fatal(err)
	}
	sdkCall(t, session, "touch", map[string]any{})
	if got := receive(t, updates); got != clockURI {
		t.Errorf("update of %s", got)
	}
	if err := session.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: clockURI}); err != nil {
		t.Error(err)
	}
}

func sdkCall(t *testing.T, session *mcp.ClientSession, tool string, args map[string]any) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	if !ok || result.IsError {
		t.Fatalf("%s: %v", tool, result)
	}
	return text.Text
}

func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}
