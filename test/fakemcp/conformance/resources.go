package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type readRequest = *mcp.ReadResourceRequest

func addResources(s *mcp.Server) {
	add := func(name, uri, mime string, c *mcp.ResourceContents) {
		s.AddResource(&mcp.Resource{Name: name, URI: uri, MIMEType: mime}, func(_ context.Context, r readRequest) (*mcp.ReadResourceResult, error) {
			read := *c
			read.URI, read.MIMEType = r.Params.URI, mime
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&read}}, nil
		})
	}
	add("static-text", "test://static-text", "text/plain", &mcp.ResourceContents{Text: "This is the content of the static text resource."})
	add("static-binary", "test://static-binary", "image/png", &mcp.ResourceContents{Blob: tinyPNG})
	add("watched", watchedURI, "text/plain", &mcp.ResourceContents{Text: "watched"})
	s.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "template", URITemplate: "test://template/{id}/data", MIMEType: "application/json",
	}, readTemplate)
}

func readTemplate(_ context.Context, r readRequest) (*mcp.ReadResourceResult, error) {
	id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{
		URI:      r.Params.URI,
		MIMEType: "application/json",
		Text:     fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id),
	}}}, nil
}
