package main

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// modernKeyPrefix starts every _meta key that 2026-07-28 defines.
const modernKeyPrefix = "io.modelcontextprotocol/"

// keyMeta is the _meta key by which a tool names the question it asks.
const keyMeta = "fixture/key"

// legacyTransport hides 2026-07-28 from the server behind it: the methods of that
// revision are unknown, and its _meta keys are ignored as unknown keys are. It asks
// by the legacy means, requests to the client. The suite looks for answers under the
// names of its scenarios, which a legacy server has no place for but the id of its
// request: a question with a name has it for its JSON-RPC id, unless a question of
// that id is open. A bridge that keeps such ids as keys gives the names back.
type legacyTransport struct{ mcp.Transport }

func (l legacyTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := l.Transport.Connect(ctx)
	return &legacyConnection{Connection: c, asked: map[string]jsonrpc.ID{}}, err
}

type legacyConnection struct {
	mcp.Connection
	mu    sync.Mutex
	asked map[string]jsonrpc.ID // guarded by mu; open questions by name
}

func (c *legacyConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		m = c.named(r)
	}
	return c.Connection.Write(ctx, m)
}

// named gives a question its name for an id.
func (c *legacyConnection) named(r *jsonrpc.Request) *jsonrpc.Request {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	var name string
	if json.Unmarshal(r.Params, &p) != nil || json.Unmarshal(p.Meta[keyMeta], &name) != nil {
		return r
	}
	id, err := jsonrpc.MakeID(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.asked[name]; open || err != nil {
		return r
	}
	c.asked[name] = r.ID
	n := *r
	n.ID, n.Params = id, withoutMeta(r.Params, keyMeta)
	return &n
}

// unnamed gives the answer to a question the id the server knows.
func (c *legacyConnection) unnamed(r *jsonrpc.Response) {
	name, ok := r.ID.Raw().(string)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, open := c.asked[name]; open {
		delete(c.asked, name)
		r.ID = id
	}
}

func (c *legacyConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.Connection.Read(ctx)
		if answer, ok := m.(*jsonrpc.Response); ok {
			c.unnamed(answer)
		}
		r, isRequest := m.(*jsonrpc.Request)
		if err != nil || !isRequest {
			return m, err
		}
		if !r.IsCall() || (r.Method != "server/discover" && r.Method != "subscriptions/listen") {
			r.Params = withoutMeta(r.Params, modernKeyPrefix)
			return r, nil
		}
		refusal := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + r.Method}
		if err := c.Connection.Write(ctx, &jsonrpc.Response{ID: r.ID, Error: refusal}); err != nil {
			return nil, err
		}
	}
}

// withoutMeta returns params less the _meta keys that begin so, and params
// itself if there are none.
func withoutMeta(params json.RawMessage, prefix string) json.RawMessage {
	var p, meta map[string]json.RawMessage
	if json.Unmarshal(params, &p) != nil || json.Unmarshal(p["_meta"], &meta) != nil {
		return params
	}
	before := len(meta)
	for k := range meta {
		if strings.HasPrefix(k, prefix) {
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

// asking runs a tool of several rounds in the one call of a legacy client: what it
// wants to know is asked by requests, all of a round at once.
func asking(f toolFunc) toolFunc {
	return func(ctx context.Context, r callRequest) (callResult, error) {
		for {
			result, err := f(ctx, r)
			if err != nil || result.InputRequests == nil {
				return result, err
			}
			answers, err := askAll(ctx, r.Session, result.InputRequests)
			if err != nil {
				return failed(err.Error()), nil
			}
			r.Params.InputResponses, r.Params.RequestState = answers, result.RequestState
		}
	}
}

func askAll(ctx context.Context, s *mcp.ServerSession, in inputs) (mcp.InputResponseMap, error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failure error
	answers := mcp.InputResponseMap{}
	for key, q := range in {
		wg.Go(func() {
			answer, err := askOne(ctx, s, q)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failure = err
				return
			}
			answers[key] = answer
		})
	}
	wg.Wait()
	return answers, failure
}

func askOne(ctx context.Context, s *mcp.ServerSession, q mcp.InputRequest) (mcp.InputResponse, error) {
	switch p := q.(type) {
	case *mcp.ElicitParams:
		return s.Elicit(ctx, p)
	case *mcp.CreateMessageParams:
		r, err := s.CreateMessage(ctx, p)
		if err != nil {
			return nil, err
		}
		return &mcp.CreateMessageWithToolsResult{Model: r.Model, Role: r.Role, Content: []mcp.Content{r.Content}}, nil
	}
	return s.ListRoots(ctx, &mcp.ListRootsParams{Meta: q.(*mcp.ListRootsParams).Meta})
}

// askModelAnyway asks for a sample whatever the client can do, as servers do that do
// not look.
func askModelAnyway(ctx context.Context, r callRequest) (callResult, error) {
	if _, err := r.Session.CreateMessage(ctx, samplingRequest("anything", 1)); err != nil {
		return failed(err.Error()), nil
	}
	return text("sampled"), nil
}
