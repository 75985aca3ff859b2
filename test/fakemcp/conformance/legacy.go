package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// modernKeyPrefix starts every _meta key that 2026-07-28 defines.
const modernKeyPrefix = "io.modelcontextprotocol/"

// legacyTransport hides 2026-07-28 from the server behind it: the methods of that
// revision are unknown, and its _meta keys are ignored as unknown keys are.
type legacyTransport struct{ mcp.Transport }

func (l legacyTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := l.Transport.Connect(ctx)
	return legacyConnection{c}, err
}

type legacyConnection struct{ mcp.Connection }

func (c legacyConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.Connection.Read(ctx)
		r, isRequest := m.(*jsonrpc.Request)
		if err != nil || !isRequest {
			return m, err
		}
		if !r.IsCall() || (r.Method != "server/discover" && r.Method != "subscriptions/listen") {
			r.Params = withoutModernMeta(r.Params)
			return r, nil
		}
		refusal := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + r.Method}
		if err := c.Connection.Write(ctx, &jsonrpc.Response{ID: r.ID, Error: refusal}); err != nil {
			return nil, err
		}
	}
}

// withoutModernMeta returns params less the _meta keys of 2026-07-28, and params
// itself if there are none.
func withoutModernMeta(params json.RawMessage) json.RawMessage {
	var p, meta map[string]json.RawMessage
	if json.Unmarshal(params, &p) != nil || json.Unmarshal(p["_meta"], &meta) != nil {
		return params
	}
	before := len(meta)
	for k := range meta {
		if strings.HasPrefix(k, modernKeyPrefix) {
			delete(meta, k)
		}
	}
	if len(meta) == before {
		return params
	}
	delete(p, "_meta")
	if len(meta) > 0 {
		p["_meta"] = mustMarshal(meta)
	}
	return mustMarshal(p)
}

func mustMarshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a map of raw messages that just came out of a decoder
	}
	return b
}
