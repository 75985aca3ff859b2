// Package matrix tests all 25 pairs of fronts and backs on the real program, with the official Go SDK at both ends (translation 18):
// clients of both eras over Streamable HTTP, HTTP+SSE and stdio, before local and remote servers of both eras. With -v it prints the
// table.
package matrix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/test/internal/rig"
)

const (
	patience   = 20 * time.Second
	watchedURI = "test://watched-resource"
	asks       = "test_input_required_result_"
)

var shop *rig.Shop

func TestMain(m *testing.M) { os.Exit(rig.Run(m, &shop)) }

// front is a kind of client.
type front struct {
	name     string
	revision string
	dial     func(h *rig.House, bridge, server string) mcp.Transport
}

func overHTTP(h *rig.House, _, server string) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: h.URL(server)}
}

func overStdio(h *rig.House, bridge, server string) mcp.Transport {
	return &mcp.CommandTransport{Command: exec.Command(bridge, "connect", server, "--config", h.Config)}
}

var fronts = []front{
	{"F1", "2026-07-28", overHTTP},
	{"F2", "2025-11-25", overHTTP},
	{"F3", "2025-11-25", func(h *rig.House, _, server string) mcp.Transport {
		return &mcp.SSEClientTransport{Endpoint: strings.TrimSuffix(h.URL(server), "mcp") + "sse"}
	}},
	{"F4", "2026-07-28", overStdio},
	{"F5", "2025-11-25", overStdio},
}

var backs = []string{"B1", "B2", "B3", "B4", "B5"}

// town runs the servers, and a bridge before all of them.
func town(t *testing.T) *rig.House {
	t.Helper()
	fixture := shop.Build(t, "./test/fakemcp/conformance")
	remote := func(flags ...string) string {
		return strings.TrimSuffix(rig.Start(t, func(addr string) []string {
			argv := []string{fixture, "-extra"}
			for _, f := range flags {
				argv = append(argv, strings.ReplaceAll(f, "ADDR", addr))
			}
			return argv
		}).URL, "/mcp")
	}
	h := shop.House(t, fmt.Sprintf(`"mcpServers":{
		"B1":{"command":%[1]q,"args":["-extra"],"protocol":"modern","restart":{"initial":"20ms"}},
		"B2":{"command":%[1]q,"args":["-extra","-legacy-only"],"restart":{"initial":"20ms"}},
		"B3":{"url":%[2]q,"protocol":"modern"},"B4":{"url":%[3]q,"protocol":"legacy"},"B5":{"url":%[4]q,"type":"sse"}}`,
		fixture, remote("-http", "ADDR")+"/mcp", remote("-stateless=false", "-http", "ADDR")+"/mcp", remote("-sse", "ADDR")+"/sse"))
	h.Start(t)
	return h
}

// client is a session of the SDK, and what it is told.
type client struct {
	*mcp.ClientSession
	modern   bool
	local    bool // the server is a process of the bridge's
	progress chan float64
	logged   chan any
	updated  chan string
	changed  chan struct{}
}

func dial(t *testing.T, f front, h *rig.House, bridge, back string) (*client, error) {
	c := &client{modern: f.revision == "2026-07-28", local: back < "B3", progress: make(chan float64, 1000), logged: make(chan any, 1000),
		updated: make(chan string, 1000), changed: make(chan struct{}, 1000)}
	sdk := mcp.NewClient(&mcp.Implementation{Name: "matrix", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}, Sampling: &mcp.SamplingCapabilities{},
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if r.Params.Mode == "url" {
				return &mcp.ElicitResult{Action: "accept"}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada", "ok": true, "color": "blue"}}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: "Paris"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { c.progress <- r.Params.Progress },
		LoggingMessageHandler:       func(_ context.Context, r *mcp.LoggingMessageRequest) { c.logged <- r.Params.Data },
		ResourceUpdatedHandler:      func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { c.updated <- r.Params.URI },
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { c.changed <- struct{}{} },
	})
	sdk.AddRoots(&mcp.Root{URI: "file:///home/ada"})
	session, err := sdk.Connect(t.Context(), f.dial(h, bridge, back), &mcp.ClientSessionOptions{ProtocolVersion: f.revision})
	if err != nil {
		return nil, err
	}
	c.ClientSession = session
	t.Cleanup(func() { _ = session.Close() })
	return c, nil
}

// call calls a tool whose text must have a part.
func (c *client) call(ctx context.Context, tool, part string) error {
	params := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}}
	params.SetProgressToken(tool)
	if c.modern {
		params.Meta[mcp.MetaKeyLogLevel] = "info"
	}
	r, err := c.CallTool(ctx, params)
	if err != nil {
		return err
	}
	var text string
	for _, b := range r.Content {
		if t, ok := b.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	if r.IsError || !strings.Contains(text, part) {
		return fmt.Errorf("got %q, want %q in it", text, part)
	}
	return nil
}

func receive[T any](ctx context.Context, from <-chan T) error {
	select {
	case <-from:
		return nil
	case <-ctx.Done():
		return errors.New("nothing was heard")
	}
}

// cell is one thing every pair has to do.
type cell struct {
	name string
	do   func(ctx context.Context, c *client) error
}

var cells = []cell{
	{"greet", func(_ context.Context, c *client) error {
		if info := c.InitializeResult().ServerInfo; info == nil || info.Name != "fakemcp-conformance" {
			return fmt.Errorf("the server is %+v", info)
		}
		return nil
	}},
	{"list", func(ctx context.Context, c *client) error {
		n := 0
		for _, err := range c.Resources(ctx, nil) {
			if err != nil {
				return err
			}
			n++
		}
		for _, err := range c.Prompts(ctx, nil) {
			if err != nil {
				return err
			}
			n++
		}
		if n < 6 {
			return fmt.Errorf("%d resources and prompts", n)
		}
		return nil
	}},
	{"pages", func(ctx context.Context, c *client) error {
		seen := map[string]bool{}
		for tool, err := range c.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			seen[tool.Name] = true
		}
		if len(seen) <= 10 || !seen["extra_touch"] || !seen["test_simple_text"] {
			return fmt.Errorf("%d tools", len(seen))
		}
		return nil
	}},
	{"call", func(ctx context.Context, c *client) error { return c.call(ctx, "test_simple_text", "simple text") }},
	{"progress", func(ctx context.Context, c *client) error {
		if err := c.call(ctx, "test_tool_with_progress", ""); err != nil {
			return err
		}
		return receive(ctx, c.progress)
	}},
	{"log", func(ctx context.Context, c *client) error {
		if !c.modern {
			if err := c.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
				return err
			}
		}
		if err := c.call(ctx, "test_tool_with_logging", ""); err != nil {
			return err
		}
		return receive(ctx, c.logged)
	}},
	{"cancel", func(ctx context.Context, c *client) error {
		for len(c.progress) > 0 {
			<-c.progress
		}
		inner, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- c.call(inner, "extra_wait", "") }()
		if err := receive(ctx, c.progress); err != nil {
			cancel()
			return err
		}
		cancel()
		if err := <-ended; err == nil {
			return errors.New("a cancelled call succeeded")
		}
		return c.call(ctx, "test_simple_text", "simple text")
	}},
	{"error", func(ctx context.Context, c *client) error {
		if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "no_such_tool"}); err == nil {
			return errors.New("an unknown tool was called")
		}
		if _, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://no-such-thing"}); err == nil {
			return errors.New("an unknown resource was read")
		}
		return nil
	}},
	{"read", func(ctx context.Context, c *client) error {
		r, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: watchedURI})
		if err == nil && (len(r.Contents) != 1 || r.Contents[0].Text != "watched") {
			return fmt.Errorf("got %+v", r.Contents)
		}
		return err
	}},
	{"prompt", func(ctx context.Context, c *client) error {
		_, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "test_simple_prompt"})
		return err
	}},
	{"complete", func(ctx context.Context, c *client) error {
		_, err := c.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "test_prompt_with_arguments"},
			Argument: mcp.CompleteParamsArgument{Name: "arg1", Value: "t"}})
		return err
	}},
	{"form", func(ctx context.Context, c *client) error { return c.call(ctx, asks+"elicitation", "Hello, Ada!") }},
	{"url", func(ctx context.Context, c *client) error { return c.call(ctx, "extra_visit", "visited: accept") }},
	{"sampling", func(ctx context.Context, c *client) error { return c.call(ctx, asks+"sampling", "Paris") }},
	{"roots", func(ctx context.Context, c *client) error { return c.call(ctx, asks+"list_roots", "1 roots") }},
	{"subscribe", func(ctx context.Context, c *client) error {
		if err := c.Subscribe(ctx, &mcp.SubscribeParams{URI: watchedURI}); err != nil {
			return err
		}
		return c.until(ctx, "extra_touch", func() bool { return len(c.updated) > 0 })
	}},
	{"changed", func(ctx context.Context, c *client) error {
		return c.until(ctx, "test_trigger_tool_change", func() bool { return len(c.changed) > 0 })
	}},
	{"death", func(ctx context.Context, c *client) error {
		if !c.local {
			return nil // a remote server's end is tried in test/remote
		}
		if err := c.call(ctx, "extra_die", ""); err == nil {
			return errors.New("the call that ended the server succeeded")
		}
		return c.until(ctx, "test_simple_text", func() bool { return c.call(ctx, "test_simple_text", "simple text") == nil })
	}},
}

// until calls a tool again and again until something has come of it.
func (c *client) until(ctx context.Context, tool string, done func() bool) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for !done() {
		last = c.call(ctx, tool, "")
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("nothing came of it: %v", last)
		}
	}
	return nil
}

func TestPairs(t *testing.T) {
	h, bridge := town(t), shop.Bridge(t)
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-6s", "")
	for _, c := range cells {
		fmt.Fprintf(&table, "%-10s", c.name)
	}
	for _, f := range fronts {
		for _, back := range backs {
			fmt.Fprintf(&table, "\n%s-%s ", f.name, back)
			t.Run(f.name+"-"+back, func(t *testing.T) {
				c, err := dial(t, f, h, bridge, back)
				if err != nil {
					t.Fatalf("cannot connect: %v", err)
				}
				for _, cell := range cells {
					ctx, stop := context.WithTimeout(t.Context(), patience)
					word := "yes"
					if cell.name == "death" && !c.local {
						word = "-"
					}
					if err := cell.do(ctx, c); err != nil {
						word = "NO"
						t.Errorf("%s: %v", cell.name, err)
					}
					stop()
					fmt.Fprintf(&table, "%-10s", word)
				}
			})
		}
	}
	t.Log(table.String())
}
