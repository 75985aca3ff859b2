package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"mcpbridge/test/internal/rig"
)

// patience bounds every single wait of a test.
const patience = 20 * time.Second

var shop *rig.Shop

func TestMain(m *testing.M) { os.Exit(rig.Run(m, &shop)) }

// near runs a bridge with these entries of mcpServers.
func near(t *testing.T, entries string) (*rig.House, *rig.Tenant) {
	t.Helper()
	house := shop.House(t, `"mcpServers": {`+entries+`}`)
	tenant := house.Start(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the near bridge:\n%s", tenant.Log())
		}
	})
	return house, tenant
}

// client is a raw client of one endpoint, of either era.
type client struct {
	url     string
	session string // "" of a modern one
	http    *http.Client
}

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func newHTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: patience}
}

// modern is a client of the modern era.
func modern(t *testing.T, url string) *client {
	c := &client{url: url, http: newHTTP()}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// legacy opens a session.
func legacy(t *testing.T, url string) *client {
	t.Helper()
	c := &client{url: url, http: newHTTP()}
	t.Cleanup(c.http.CloseIdleConnections)
	resp, err := c.post(t.Context(), `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if c.session = resp.Header.Get("Mcp-Session-Id"); c.session == "" {
		t.Fatalf("no session: HTTP %d %s", resp.StatusCode, body)
	}
	done, err := c.post(t.Context(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	if err != nil || done.StatusCode != http.StatusAccepted {
		t.Fatalf("initialized: %v", err)
	}
	_ = done.Body.Close()
	return c
}

func (c *client) post(ctx context.Context, body string, header map[string]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	return c.http.Do(req)
}

// answer is a response message.
type answer struct {
	ID     json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    struct{ Source, Reason string }
	}
}

// call calls a tool. It fails unless exactly one answer comes, with the id of the call.
func (c *client) call(ctx context.Context, id int, tool, arguments string) (*answer, error) {
	params, header := fmt.Sprintf(`"name":%q,"arguments":%s`, tool, arguments), map[string]string(nil)
	if c.session == "" {
		params += "," + envelope
		header = map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}
	}
	resp, err := c.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s}}`, id, params), header)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var found []*answer
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		text := bytes.TrimPrefix(line, []byte("data: "))
		var a answer
		if json.Unmarshal(text, &a) == nil && (a.Result != nil || a.Error != nil) {
			found = append(found, &a)
		}
	}
	if len(found) != 1 || string(found[0].ID) != fmt.Sprint(id) {
		return nil, fmt.Errorf("call %d was answered with HTTP %d and %d answers: %s", id, resp.StatusCode, len(found), body)
	}
	return found[0], nil
}
