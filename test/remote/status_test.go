package remote

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpbridge/test/internal/rig"
)

// serverState is what `status --json` says about one server.
type serverState struct {
	Name, State, Problem, Remote string
	Ready                        bool
	Sessions                     int
	Calls                        int64
	Processes                    []struct{ State, Era, Version, Serves string }
}

func states(t *testing.T, house *rig.House) (list map[string]serverState, text string) {
	t.Helper()
	out, errOut, code := house.Run(t, "status", "--json")
	var s struct {
		Bridge  struct{ Processes int }
		Servers []serverState
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 {
		t.Fatalf("status: %v, %d, %s%s", err, code, out, errOut)
	}
	if s.Bridge.Processes != 0 {
		t.Errorf("%d processes run for servers that are remote", s.Bridge.Processes)
	}
	list = map[string]serverState{}
	for _, one := range s.Servers {
		list[one.Name] = one
	}
	return list, out
}

// awaitState asks until a server is in a state.
func awaitState(t *testing.T, house *rig.House, name, state string) serverState {
	t.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		list, _ := states(t, house)
		if list[name].State == state {
			return list[name]
		}
		if time.Now().After(late) {
			t.Fatalf("%s is %+v, want %s", name, list[name], state)
		}
	}
}

func ready(t *testing.T, house *rig.House) (status int) {
	t.Helper()
	resp, err := http.Get("http://" + house.Addr + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// Status, readiness and restart of a remote server make sense without a process, and show no secret (rule 7).
func TestRemoteStatus(t *testing.T) {
	far := &place{t: t}
	handler := func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Key") != "hunter22-key" {
				w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://r.example/"`)
				w.WriteHeader(401)
				return
			}
			streamableSDK().ServeHTTP(w, r)
		})
	}
	far.open(handler())
	t.Cleanup(func() { far.close() })
	entry := func(key string) string {
		return fmt.Sprintf(`"far": {"url": "http://%s/mcp?token=hunter22-query", "required": true, "headers": {"X-Key": %q}}`, far.addr, key)
	}
	house, tenant := near(t, entry("hunter22-key"))
	if s := awaitState(t, house, "far", "idle"); !s.Ready || s.Remote != "http://"+far.addr+"/mcp?token=***" {
		t.Errorf("before use: %+v", s)
	}
	c := legacy(t, house.URL("far"))
	m := modern(t, house.URL("far"))
	for i, who := range []*client{c, m} {
		if a, err := who.call(t.Context(), i, "echo", `{"text":"x"}`); err != nil || a.Error != nil {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if s := awaitState(t, house, "far", "connected"); !s.Ready || s.Sessions != 1 || s.Calls == 0 || len(s.Processes) != 2 || s.Processes[0].Era == "" {
		t.Errorf("in use: %+v", s)
	}
	far.close()
	if a, err := m.call(t.Context(), 9, "echo", `{"text":"x"}`); err != nil || a.Error == nil {
		t.Errorf("a server that is away answers %+v, %v", a, err)
	}
	if s := awaitState(t, house, "far", "unreachable"); s.Ready || !strings.Contains(s.Problem, "refused") || ready(t, house) != 503 {
		t.Errorf("away: %+v, readyz %d", s, ready(t, house))
	}
	far.open(handler())
	if out, errOut, code := house.Run(t, "restart", "far"); code != 0 {
		t.Errorf("restart: %s%s", out, errOut)
	}
	for i, who := range []*client{c, m} {
		if a, err := who.call(t.Context(), 20+i, "echo", `{"text":"x"}`); err != nil || a.Error != nil {
			t.Errorf("after a restart: %+v, %v", a, err)
		}
	}
	awaitState(t, house, "far", "connected")
	if _, errOut, code := house.Run(t, "logs", "far"); code == 0 || !strings.Contains(errOut, "remote server") {
		t.Errorf("logs: %d, %s", code, errOut)
	}
	house.Write(t, `"mcpServers": {`+entry("hunter22-other")+`}`)
	if out, errOut, code := house.Run(t, "reload"); code != 0 || !strings.Contains(out, "far") {
		t.Errorf("reload: %s%s", out, errOut)
	}
	if a, err := m.call(t.Context(), 30, "echo", `{"text":"x"}`); err != nil || a.Error == nil || a.Error.Data.Reason != "back_unauthorized" {
		t.Errorf("with another key: %+v, %v", a, err)
	}
	if s := awaitState(t, house, "far", "unauthorized"); s.Ready {
		t.Errorf("unauthorized: %+v", s)
	}
	_, text := states(t, house)
	shown, _, _ := house.Run(t, "check")
	for name, text := range map[string]string{"status": text, "log": tenant.Log(), "check": shown} {
		if strings.Contains(text, "hunter22") {
			t.Errorf("%s shows a secret: %s", name, text)
		}
	}
}

// A remote entry that names a file it cannot have is left out, with the reason, and the others are served.
func TestBrokenRemote(t *testing.T) {
	house, _ := near(t, `"bad": {"url": "https://h.example/mcp", "caFile": "/nowhere/ca.pem"}, "far": {"url": "http://127.0.0.1:1/mcp"}`)
	if s := awaitState(t, house, "bad", "broken"); !strings.Contains(s.Problem, "caFile") {
		t.Errorf("%+v", s)
	}
	if _, errOut, code := house.Run(t, "check"); code != 3 || !strings.Contains(errOut, "caFile") {
		t.Errorf("check: %d, %s", code, errOut)
	}
	awaitState(t, house, "far", "idle")
}
