//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpbridge/test/internal/jscan"
)

func TestRequestsAreValid(t *testing.T) {
	for _, modern := range []bool{false, true} {
		for _, spec := range []callSpec{
			{tool: "echo", size: 0}, {tool: "echo", size: 5000, progress: true}, {tool: "blob", size: 7},
			{tool: "sleep", ms: 3, progress: true}, {tool: "add", args: `{"a":1}`},
		} {
			b := newCaller(spec, modern, 3).next(9, 4)
			if !json.Valid(b) {
				t.Errorf("%+v: not JSON: %.200s", spec, b)
			}
			if got := string(jscan.Get(b, "params", "name")); got != `"`+spec.tool+`"` {
				t.Errorf("%+v: name %s", spec, got)
			}
			hasVersion := jscan.Get(b, "params", "_meta", "io.modelcontextprotocol/protocolVersion") != nil
			hasToken := jscan.Get(b, "params", "_meta", "progressToken") != nil
			if hasVersion != modern || hasToken != spec.progress {
				t.Errorf("%+v modern %v: envelope %v, token %v", spec, modern, hasVersion, hasToken)
			}
		}
	}
}

func TestEveryWrongAnswerIsSeen(t *testing.T) {
	c := newCaller(callSpec{tool: "echo", size: 20}, false, 1)
	mine := string(jscan.Get(c.next(7, 7), "params", "arguments", "text"))
	other := string(jscan.Get(newCaller(callSpec{tool: "echo", size: 20}, false, 2).next(7, 7), "params", "arguments", "text"))
	answer := func(id, text string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}]}}`, id, text)
	}
	for _, tc := range []struct {
		name, m string
		want    verdict
	}{
		{"right", answer("7", mine), good},
		{"of another caller", answer("7", other), wrong},
		{"of another id", answer("8", mine), wrong},
		{"id of another type", answer(`"7"`, mine), wrong},
		{"error", `{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"x"}}`, rpcError},
		{"tool error", `{"jsonrpc":"2.0","id":7,"result":{"isError":true,"content":[]}}`, rpcError},
		{"empty", `{}`, wrong},
	} {
		if got := c.check([]byte(tc.m), 7); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.name, got, tc.want)
		}
	}
}

// TestRoundTrip has a server answer in every way an MCP server may.
func TestRoundTrip(t *testing.T) {
	const response, notification = `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/progress"}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch r.Header.Get("Mcp-Method") {
		case "json":
			io.WriteString(w, response)
		case "events":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, ": comment\n\nid: 1\ndata:\n\ndata: %s\n\n", notification)
			w.(http.Flusher).Flush()
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", response)
		case "broken":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s\n\n", notification)
		case "accepted":
			w.WriteHeader(http.StatusAccepted)
		case "refused":
			http.Error(w, "no", http.StatusForbidden)
		}
	}))
	defer srv.Close()
	c, err := newConn(srv.URL, true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, tc := range []struct{ method, want, wantErr string }{
		{"json", response, ""}, {"events", response, ""}, {"accepted", "", ""},
		{"broken", "", errNoResponse.Error()}, {"refused", "", "HTTP 403"}, {"json", response, ""},
	} {
		m, err := c.roundTrip(tc.method, "", []byte(`{}`), 5*time.Second)
		if string(m) != tc.want {
			t.Errorf("%s: got %q", tc.method, m)
		}
		if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)) {
			t.Errorf("%s: error %v, want %q", tc.method, err, tc.wantErr)
		}
	}
	if c.notifications != 2 || c.reconnects != 0 {
		t.Errorf("%d notifications and %d reconnects, want 2 and 0", c.notifications, c.reconnects)
	}
}
