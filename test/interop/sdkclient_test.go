package interop

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/test/internal/rig"
)

// patience bounds every single wait of a test.
const patience = 20 * time.Second

// sdkClient is a session of the official Go SDK with everything it is told kept.
type sdkClient struct {
	*mcp.ClientSession
	progress chan *mcp.ProgressNotificationParams
	logged   chan *mcp.LoggingMessageParams
	updated  chan string
}

// transportOf is how a client reaches an endpoint: a URL, "sse URL", or "stdio" and a command, separated by new lines.
func transportOf(endpoint string) mcp.Transport {
	kind, rest, _ := strings.Cut(endpoint, "\n")
	switch kind {
	case "sse":
		return &mcp.SSEClientTransport{Endpoint: rest}
	case "stdio":
		argv := strings.Split(rest, "\n")
		return &mcp.CommandTransport{Command: exec.Command(argv[0], argv[1:]...)}
	}
	return &mcp.StreamableClientTransport{Endpoint: endpoint}
}

// connect opens a session pinned to one revision. The client answers every
// elicitation with the answer "blue".
func connect(t *testing.T, endpoint, revision string) *sdkClient {
	t.Helper()
	c := &sdkClient{
		progress: make(chan *mcp.ProgressNotificationParams, 1000),
		logged:   make(chan *mcp.LoggingMessageParams, 100),
		updated:  make(chan string, 1000),
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "blue"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { c.progress <- r.Params },
		LoggingMessageHandler:       func(_ context.Context, r *mcp.LoggingMessageRequest) { c.logged <- r.Params },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			c.updated <- r.Params.URI
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if strings.HasPrefix(endpoint, "sse\n") {
		ctx = t.Context() // it bounds the stream too
	}
	session, err := client.Connect(ctx, transportOf(endpoint), &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatalf("cannot connect with %s: %v", revision, err)
	}
	c.ClientSession = session
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("cannot close the session: %v", err)
		}
	})
	return c
}

func (c *sdkClient) modern() bool { return c.InitializeResult().ProtocolVersion >= "2026-07-28" }

// within returns a context for one request.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// call calls a tool that must not fail and returns its result.
func (c *sdkClient) call(t *testing.T, name string, args map[string]any) *mcp.CallToolResult {
	t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	r, err := c.CallTool(within(t), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if r.IsError {
		t.Fatalf("%s failed: %s", name, textOf(r))
	}
	return r
}

// wantText calls a tool and compares its text.
func (c *sdkClient) wantText(t *testing.T, name string, args map[string]any, want string) {
	t.Helper()
	if got := textOf(c.call(t, name, args)); got != want {
		t.Errorf("%s: got %q, want %q", name, got, want)
	}
}

func textOf(r *mcp.CallToolResult) string {
	if len(r.Content) != 1 {
		return ""
	}
	text, ok := r.Content[0].(*mcp.TextContent)
	if !ok {
		return ""
	}
	return text.Text
}

// receive waits for the next value of a channel.
func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s within %v", what, patience)
		panic("unreachable")
	}
}

func sameSet(got, want []string) bool {
	slices.Sort(got)
	slices.Sort(want)
	return slices.Equal(got, want)
}

var shop *rig.Shop
