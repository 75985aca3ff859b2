package interop

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/test/internal/rig"
)

// sdkRevisions are the revisions that exist on Streamable HTTP.
var sdkRevisions = []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

const (
	clockURI      = "demo://clock"
	readmeURI     = "demo://readme"
	greetingURI   = "demo://greeting/Ada"
	spelledText   = "h\u00e9llo \u4e16\u754c \U0001F600 \"quoted\" \\ / \u2028\t\n\x00 1.0e3"
	manyCallsEach = 50
)

func TestMain(m *testing.M) { os.Exit(rig.Run(m, &shop)) }

// serveDemo starts the bridge in front of the demo server that it contains.
func serveDemo(t *testing.T, flags ...string) *rig.Server {
	t.Helper()
	return shop.Serve(t, append([]string{shop.Bridge(t), "demo-server"}, flags...)...)
}

// TestGoSDK runs the official Go client, pinned to each revision, against the demo
// server as a server of both eras, and as one of the client's other era.
func TestGoSDK(t *testing.T) {
	t.Run("dual", func(t *testing.T) {
		server := serveDemo(t)
		for _, revision := range sdkRevisions {
			t.Run(revision, func(t *testing.T) { exerciseDemo(t, server.URL, revision) })
		}
	})
	t.Run("legacy-only", func(t *testing.T) {
		exerciseDemo(t, serveDemo(t, "--legacy-only").URL, "2026-07-28")
	})
	t.Run("modern-only", func(t *testing.T) {
		server := serveDemo(t, "--modern-only")
		for _, revision := range sdkRevisions[:len(sdkRevisions)-1] {
			t.Run(revision, func(t *testing.T) { exerciseDemo(t, server.URL, revision) })
		}
	})
}

func exerciseDemo(t *testing.T, endpoint, revision string) {
	c := connect(t, endpoint, revision)
	if got := c.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("negotiated %s, want %s", got, revision)
	}
	t.Run("list", func(t *testing.T) { listsEverything(t, c) })
	t.Run("tools", func(t *testing.T) { callsTools(t, c, revision) })
	t.Run("unknown tool", func(t *testing.T) {
		if _, err := c.CallTool(within(t), &mcp.CallToolParams{Name: "no_such_tool"}); err == nil {
			t.Error("an unknown tool was called")
		}
	})
	t.Run("progress", func(t *testing.T) { reportsProgress(t, c) })
	t.Run("cancel", func(t *testing.T) { cancels(t, c) })
	t.Run("log", func(t *testing.T) { logs(t, c) })
	t.Run("resources", func(t *testing.T) { readsResources(t, c) })
	t.Run("prompts", func(t *testing.T) { getsPrompts(t, c) })
	t.Run("completion", func(t *testing.T) { completes(t, c) })
	t.Run("two clients", func(t *testing.T) { neverCrosses(t, c, connect(t, endpoint, revision)) })
	if !c.modern() {
		t.Run("ping", func(t *testing.T) {
			if err := c.Ping(within(t), nil); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("ask", func(t *testing.T) { asks(t, c, revision) })
	t.Run("subscribe", func(t *testing.T) { hearsOfChanges(t, c) })
}

func listsEverything(t *testing.T, c *sdkClient) {
	var tools, resources, templates, prompts []string
	for x, err := range c.Tools(within(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, x.Name)
	}
	for x, err := range c.Resources(within(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		resources = append(resources, x.URI)
	}
	for x, err := range c.ResourceTemplates(within(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		templates = append(templates, x.URITemplate)
	}
	for x, err := range c.Prompts(within(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		prompts = append(prompts, x.Name)
	}
	for _, l := range []struct{ got, want []string }{
		{tools, []string{"echo", "add", "countdown", "ask", "log", "region_echo", "touch"}},
		{resources, []string{clockURI, readmeURI}},
		{templates, []string{"demo://greeting/{name}"}},
		{prompts, []string{"greet"}},
	} {
		if !sameSet(l.got, l.want) {
			t.Errorf("listed %q, want %q", l.got, l.want)
		}
	}
}

func callsTools(t *testing.T, c *sdkClient, revision string) {
	c.wantText(t, "echo", map[string]any{"text": spelledText}, spelledText)
	c.wantText(t, "region_echo", map[string]any{"region": "eu-west", "text": "hi"}, "eu-west: hi")
	c.wantText(t, "region_echo", map[string]any{"region": "\u4e16\u754c", "text": "hi"}, "\u4e16\u754c: hi")
	c.wantText(t, "countdown", map[string]any{"from": 2, "delayMs": 1}, "counted down from 2")
	if got := textOf(c.call(t, "touch", nil)); !strings.HasPrefix(got, "ticks: ") {
		t.Errorf("touch: got %q", got)
	}
	sum := c.call(t, "add", map[string]any{"a": 2, "b": 3.5})
	if revision >= "2025-06-18" {
		structured, _ := sum.StructuredContent.(map[string]any)
		if structured["sum"] != 5.5 {
			t.Errorf("add: structured content %v, want sum 5.5", sum.StructuredContent)
		}
	}
	if got := textOf(sum); got != `{"sum":5.5}` {
		t.Errorf("add: got %q", got)
	}
}

func reportsProgress(t *testing.T, c *sdkClient) {
	const steps = 5
	params := &mcp.CallToolParams{Name: "countdown", Arguments: map[string]any{"from": steps, "delayMs": 10}}
	params.SetProgressToken("progress/\u00e9")
	if _, err := c.CallTool(within(t), params); err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= steps; step++ {
		p := receive(t, c.progress, "progress")
		if p.ProgressToken != "progress/\u00e9" || p.Progress != float64(step) || p.Total != steps {
			t.Errorf("step %d: got token %v, %v of %v", step, p.ProgressToken, p.Progress, p.Total)
		}
	}
}

// cancels stops a call that would take an hour, then uses the session again.
func cancels(t *testing.T, c *sdkClient) {
	ctx, cancel := context.WithCancel(within(t))
	params := &mcp.CallToolParams{Name: "countdown", Arguments: map[string]any{"from": 10_000, "delayMs": 400}}
	params.SetProgressToken(77)
	failed := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, params)
		failed <- err
	}()
	receive(t, c.progress, "progress of the call to cancel")
	cancel()
	if err := receive(t, failed, "end of the cancelled call"); err == nil {
		t.Error("the cancelled call succeeded")
	}
	c.wantText(t, "echo", map[string]any{"text": "still here"}, "still here")
	drain(c.progress)
}

func drain[T any](from <-chan T) {
	for {
		select {
		case <-from:
		default:
			return
		}
	}
}

func logs(t *testing.T, c *sdkClient) {
	params := &mcp.CallToolParams{Name: "log", Arguments: map[string]any{"level": "warning", "text": "careful"}}
	if c.modern() {
		params.Meta = mcp.Meta{mcp.MetaKeyLogLevel: "info"}
	} else if err := c.SetLoggingLevel(within(t), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CallTool(within(t), params); err != nil {
		t.Fatal(err)
	}
	if m := receive(t, c.logged, "log message"); m.Level != "warning" || m.Data != "careful" {
		t.Errorf("got level %q data %v", m.Level, m.Data)
	}
}

func readsResources(t *testing.T, c *sdkClient) {
	for _, uri := range []string{clockURI, readmeURI, greetingURI} {
		r, err := c.ReadResource(within(t), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		if len(r.Contents) != 1 || r.Contents[0].URI != uri || r.Contents[0].Text == "" {
			t.Errorf("%s: got %+v", uri, r.Contents)
		}
	}
	if _, err := c.ReadResource(within(t), &mcp.ReadResourceParams{URI: "demo://no-such-thing"}); err == nil {
		t.Error("an unknown resource was read")
	}
}

func getsPrompts(t *testing.T, c *sdkClient) {
	p, err := c.GetPrompt(within(t), &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"name": "Ada"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Messages) != 1 {
		t.Fatalf("got %d messages", len(p.Messages))
	}
	if text, ok := p.Messages[0].Content.(*mcp.TextContent); !ok || !strings.Contains(text.Text, "Ada") {
		t.Errorf("got %+v", p.Messages[0].Content)
	}
}

func completes(t *testing.T, c *sdkClient) {
	for _, ref := range []*mcp.CompleteReference{
		{Type: "ref/prompt", Name: "greet"},
		{Type: "ref/resource", URI: "demo://greeting/{name}"},
	} {
		r, err := c.Complete(within(t), &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: "name", Value: "a"}})
		if err != nil {
			t.Errorf("%s: %v", ref.Type, err)
			continue
		}
		if !sameSet(r.Completion.Values, []string{"Ada", "Alan"}) {
			t.Errorf("%s: got %q", ref.Type, r.Completion.Values)
		}
	}
}

// neverCrosses lets two clients, whose request ids are the same, call at once.
func neverCrosses(t *testing.T, clients ...*sdkClient) {
	results := make(chan error, len(clients)*manyCallsEach)
	for i, c := range clients {
		for n := range manyCallsEach {
			go func() { results <- echoOwnText(t.Context(), c, fmt.Sprintf("client %d call %d", i, n)) }()
		}
	}
	for range len(clients) * manyCallsEach {
		if err := receive(t, results, "answer"); err != nil {
			t.Error(err)
		}
	}
}

func echoOwnText(ctx context.Context, c *sdkClient, text string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": text}})
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	if got := textOf(r); got != text {
		return fmt.Errorf("%s: got %q", text, got)
	}
	return nil
}

// asks lets the server put a question while the call runs. Elicitation came with
// 2025-06-18; before it the tool must say so, or a modern server that misses it (META-09).
func asks(t *testing.T, c *sdkClient, revision string) {
	args := map[string]any{"question": "Which colour?"}
	if revision >= "2025-06-18" {
		c.wantText(t, "ask", args, "blue")
		return
	}
	r, err := c.CallTool(within(t), &mcp.CallToolParams{Name: "ask", Arguments: args})
	if err == nil && !r.IsError || err != nil && !strings.Contains(err.Error(), "elicitation") {
		t.Errorf("got %+v, %v; want a result that is an error, or an error that names elicitation", r, err)
	}
}

// hearsOfChanges touches the clock until the subscription tells of it: a modern
// client does not learn when its subscription has begun.
func hearsOfChanges(t *testing.T, c *sdkClient) {
	if err := c.Subscribe(within(t), &mcp.SubscribeParams{URI: clockURI}); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		c.call(t, "touch", nil)
		select {
		case uri := <-c.updated:
			if uri != clockURI {
				t.Errorf("%s was updated, want %s", uri, clockURI)
			}
			if err := c.Unsubscribe(within(t), &mcp.UnsubscribeParams{URI: clockURI}); err != nil {
				t.Error(err)
			}
			return
		case <-deadline:
			t.Fatal("nobody told of the change")
		case <-tick.C:
		}
	}
}
