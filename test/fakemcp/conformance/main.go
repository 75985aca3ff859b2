// Command conformance is a stdio MCP server that offers exactly what the official
// conformance suite expects of a server under test: its tools, resources and
// prompts. It is built on the official Go SDK and speaks every revision the SDK
// speaks.
//
//	-legacy-only   behave like a server that never heard of 2026-07-28
//	-http ADDR     serve the same server over Streamable HTTP, without a bridge
//	-stateless     with -http: keep no sessions (what 2026-07-28 wants)
//	-sse ADDR      serve the same server over HTTP+SSE of 2024-11-05
//	-extra         more tools than the suite wants, and lists in pages of ten
//
// With -http it is the ceiling: what it fails there, no bridge can pass.
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// watchedURI is the resource that is announced as updated again and again.
const watchedURI = "test://watched-resource"

func newServer(legacyOnly, extra bool) *mcp.Server {
	page := 0
	if extra {
		page = 10
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "fakemcp-conformance", Version: "1.0.0"}, &mcp.ServerOptions{
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
		},
		PageSize:           page,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	addContentTools(s)
	addLiveTools(s)
	addQuestionTools(s)
	addTriggerTools(s, legacyOnly)
	addInputRequiredTools(s, legacyOnly)
	addResources(s)
	addPrompts(s)
	if extra {
		addExtraTools(s, legacyOnly)
	}
	return s
}

// announceUpdates reports the watched resource as updated every three seconds,
// for whoever subscribed to it.
func announceUpdates(ctx context.Context, s *mcp.Server) {
	tick := time.NewTicker(3 * time.Second)
	defer tick.Stop()
	for range tick.C {
		// Nobody listening is no failure of the server.
		_ = s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: watchedURI})
	}
}

func main() {
	legacyOnly := flag.Bool("legacy-only", false, "know nothing of 2026-07-28")
	addr := flag.String("http", "", "serve Streamable HTTP at this address instead of stdio")
	stateless := flag.Bool("stateless", true, "with -http: keep no sessions")
	sse := flag.String("sse", "", "serve HTTP+SSE at this address instead of stdio")
	extra := flag.Bool("extra", false, "offer more tools, in pages")
	flag.Parse()

	ctx := context.Background()
	s := newServer(*legacyOnly, *extra)
	go announceUpdates(ctx, s)
	if *addr != "" {
		http.Handle("/mcp", mcp.NewStreamableHTTPHandler(
			func(*http.Request) *mcp.Server { return s },
			&mcp.StreamableHTTPOptions{Stateless: *stateless}))
		log.Fatal(http.ListenAndServe(*addr, nil))
	}
	if *sse != "" {
		http.Handle("/sse", mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return newServer(true, *extra) }, nil))
		log.Fatal(http.ListenAndServe(*sse, nil))
	}
	var t mcp.Transport = &mcp.StdioTransport{}
	if *legacyOnly {
		t = legacyTransport{t}
	}
	if err := s.Run(ctx, t); err != nil {
		log.Fatal(err)
	}
}
