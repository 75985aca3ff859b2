package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/admin"
)

func do(b admin.Backend, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	admin.Handler(b).ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

var full = admin.Status{
	Bridge: admin.Bridge{Version: "1.2.3", Pid: 42, StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Uptime: 12.5, Listening: []string{"127.0.0.1:8420"},
		Draining: true, Sessions: 3, Processes: 2, ProcessLimit: 64, MemoryBytes: 1 << 25, Goroutines: 17, ConfigFile: "/c.json",
		LastReload: &admin.ReloadOutcome{At: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), Error: "line 3"}},
	Servers: []admin.Server{
		{Name: "one", URLs: []string{"http://127.0.0.1:8420/servers/one/mcp"}, State: admin.StateRunning, Required: true, Ready: true, Isolation: "session",
			Processes: []admin.Process{
				{Pid: 7, State: admin.StateRunning, StartedAt: time.Date(2026, 1, 2, 3, 4, 7, 0, time.UTC), Uptime: 1, Restarts: 2, MemoryBytes: 3, Era: "legacy", Version: "2025-11-25",
					Calls: 4, Serves: "session", LastExit: &admin.Exit{Text: "exit status 1", At: time.Date(2026, 1, 2, 3, 4, 7, 0, time.UTC)}},
				{State: admin.StateBackoff, Serves: "spare", NextStart: new(time.Date(2026, 1, 2, 3, 4, 9, 0, time.UTC))},
			},
			Restarts: 2, LastExit: &admin.Exit{Text: "exit status 1", At: time.Date(2026, 1, 2, 3, 4, 7, 0, time.UTC)}, LastError: "boom", Sessions: 3, Calls: 9, CallsFailed: 1, Waiting: 5},
		{Name: "two", State: "broken", Problem: "no command <&>"},
	},
}

const fullJSON = `{"bridge":{"version":"1.2.3","pid":42,"startedAt":"2026-01-02T03:04:05Z","uptime":12.5,"listening":["127.0.0.1:8420"],"draining":true,"sessions":3,"processes":2,
"processLimit":64,"memoryBytes":33554432,"goroutines":17,"configFile":"/c.json","lastReload":{"at":"2026-01-02T03:04:06Z","ok":false,"error":"line 3"}},
"servers":[{"name":"one","urls":["http://127.0.0.1:8420/servers/one/mcp"],"state":"running","required":true,"ready":true,"isolation":"session",
"processes":[{"pid":7,"state":"running","startedAt":"2026-01-02T03:04:07Z","uptime":1,"restarts":2,"memoryBytes":3,"era":"legacy","version":"2025-11-25","calls":4,"serves":"session",
"lastExit":{"text":"exit status 1","at":"2026-01-02T03:04:07Z"}},
{"state":"backoff","uptime":0,"restarts":0,"memoryBytes":0,"calls":0,"serves":"spare","nextStart":"2026-01-02T03:04:09Z"}],
"restarts":2,"lastExit":{"text":"exit status 1","at":"2026-01-02T03:04:07Z"},"lastError":"boom","sessions":3,"calls":9,"callsFailed":1,"waiting":5,"parked":0},
{"name":"two","urls":[],"state":"broken","required":false,"ready":false,"problem":"no command <&>","processes":[],"restarts":0,"sessions":0,"calls":0,"callsFailed":0,"waiting":0,"parked":0}]}`

// The shape of a status is a contract with scripts.
func TestStatusJSON(t *testing.T) {
	for _, tt := range []struct {
		status admin.Status
		want   string
	}{
		{full, fullJSON},
		{admin.Status{}, `{"bridge":{"version":"","pid":0,"startedAt":"0001-01-01T00:00:00Z","uptime":0,"listening":[],"draining":false,"sessions":0,"processes":0,"processLimit":0,
			"memoryBytes":0,"goroutines":0},"servers":[]}`},
	} {
		w := do(&fake{status: tt.status}, "GET", "/v1/status")
		if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
		var got, want any
		if json.Unmarshal(w.Body.Bytes(), &got) != nil || json.Unmarshal([]byte(tt.want), &want) != nil {
			t.Fatalf("no JSON: %s or %s", w.Body, tt.want)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestActions(t *testing.T) {
	unknown := fmt.Errorf("cannot restart %q: %w", "x", admin.ErrUnknownServer)
	b := &fake{
		restart: func(_ context.Context, name string) error {
			return map[string]error{"good": nil, "bad": errors.New("cannot stop"), "x": unknown}[name]
		},
		reload: func(context.Context) (admin.Reloaded, error) { return admin.Reloaded{Added: []string{"a"}}, nil },
		drain:  func(context.Context) error { return nil },
		logs:   map[string]admin.LogSource{"good": source{tail: func(n int, w io.Writer) error { _, err := fmt.Fprintf(w, "%d\n", n); return err }}},
	}
	broken := &fake{
		reload: func(context.Context) (admin.Reloaded, error) {
			return admin.Reloaded{}, fmt.Errorf("%w: c.json:3:1: oops", admin.ErrConfig)
		},
		drain: func(context.Context) error { return errors.New("cannot wait any longer") },
		logs: map[string]admin.LogSource{
			"none": source{tail: func(int, io.Writer) error { return os.ErrPermission }},
			"half": source{tail: func(_ int, w io.Writer) error { _, _ = io.WriteString(w, "line\n"); return os.ErrPermission }},
		},
	}
	failure := func(code, message string) string {
		return fmt.Sprintf(`{"error":{"code":%q,"message":%q}}`, code, message) + "\n"
	}
	for _, tt := range []struct {
		b              admin.Backend
		method, target string
		code           int
		want           string
	}{
		{b, "POST", "/v1/servers/good/restart", 204, ""},
		{b, "POST", "/v1/servers/bad/restart", 500, failure("failed", "cannot stop")},
		{b, "POST", "/v1/servers/x/restart", 404, `{"error":{"code":"unknown_server","message":"cannot restart \"x\": ` + admin.ErrUnknownServer.Error() + `"}}` + "\n"},
		{b, "GET", "/v1/servers/good/restart", 405, "Method Not Allowed\n"},
		{b, "POST", "/v1/reload", 200, `{"added":["a"],"changed":[],"removed":[],"unchanged":[],"needsRestart":[]}` + "\n"},
		{b, "GET", "/v1/reload", 405, "Method Not Allowed\n"},
		{broken, "POST", "/v1/reload", 422, failure("bad_config", admin.ErrConfig.Error()+": c.json:3:1: oops")},
		{b, "POST", "/v1/drain", 204, ""},
		{b, "GET", "/v1/drain", 405, "Method Not Allowed\n"},
		{broken, "POST", "/v1/drain", 500, failure("failed", "cannot wait any longer")},
		{b, "POST", "/v1/status", 405, "Method Not Allowed\n"},
		{b, "GET", "/v2/status", 404, "404 page not found\n"},
		{b, "GET", "/v1/servers/good/logs", 200, "100\n"},
		{b, "GET", "/v1/servers/good/logs?lines=&follow=", 200, "100\n"},
		{b, "GET", "/v1/servers/good/logs?lines=0&follow=0", 200, "0\n"},
		{b, "GET", "/v1/servers/good/logs?lines=10000", 200, "10000\n"},
		{b, "GET", "/v1/servers/good/logs?lines=10001", 400, failure("bad_request", `cannot show "10001" lines: give a number from 0 to 10000`)},
		{b, "GET", "/v1/servers/good/logs?lines=-1", 400, failure("bad_request", `cannot show "-1" lines: give a number from 0 to 10000`)},
		{b, "GET", "/v1/servers/good/logs?lines=x", 400, failure("bad_request", `cannot show "x" lines: give a number from 0 to 10000`)},
		{b, "GET", "/v1/servers/good/logs?follow=yes", 400, failure("bad_request", `cannot understand follow="yes": give 1 or 0`)},
		{b, "GET", "/v1/servers/nope/logs", 404, `{"error":{"code":"unknown_server","message":"cannot show the log of \"nope\": ` + admin.ErrUnknownServer.Error() + `"}}` + "\n"},
		{broken, "GET", "/v1/servers/none/logs", 500, failure("failed", "permission denied")},
		{broken, "GET", "/v1/servers/half/logs", 200, "line\nmcpbridge: permission denied\n"},
	} {
		w := do(tt.b, tt.method, tt.target)
		got := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(w.Body.String())
		if w.Code != tt.code || got != tt.want {
			t.Errorf("%s %s: %d %q, want %d %q", tt.method, tt.target, w.Code, got, tt.code, tt.want)
		}
	}
}

// An empty log is an empty answer.
func TestEmptyLog(t *testing.T) {
	w := do(&fake{logs: map[string]admin.LogSource{"a": source{tail: func(int, io.Writer) error { return nil }}}}, "GET", "/v1/servers/a/logs")
	if w.Code != http.StatusOK || w.Body.Len() != 0 || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
}
