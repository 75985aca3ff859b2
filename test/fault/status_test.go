package fault

import (
	"encoding/json"
	"net/http"
	"testing"

	"mcpbridge/test/internal/rig"
)

// status is what these tests read of `mcpbridge status --json`.
type status struct {
	Bridge struct {
		Pid         int
		Sessions    int
		Processes   int
		Goroutines  int
		MemoryBytes uint64
	}
	Servers []serverStatus
}

type serverStatus struct {
	Name     string
	State    string
	Ready    bool
	Problem  string
	Sessions int
	Restarts int

	raw string // all that is said of the server
}

func statusOf(t testing.TB, h *rig.House) status {
	t.Helper()
	out, errOut, code := h.Run(t, "status", "--json")
	if code != 0 {
		t.Fatalf("status exits with %d: %s", code, errOut)
	}
	var s status
	var parts struct{ Servers []json.RawMessage }
	for _, into := range []any{&s, &parts} {
		if err := json.Unmarshal([]byte(out), into); err != nil {
			t.Fatalf("cannot read status: %v\n%s", err, out)
		}
	}
	for i := range s.Servers {
		s.Servers[i].raw = string(parts.Servers[i])
	}
	return s
}

func (s *status) server(t testing.TB, name string) serverStatus {
	t.Helper()
	for _, one := range s.Servers {
		if one.Name == name {
			return one
		}
	}
	t.Fatalf("status says nothing of server %q", name)
	return serverStatus{}
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready   bool
	Servers map[string]struct {
		Ready, Required bool
		State           string
	}
}

// readyz returns the status code too.
func readyz(t testing.TB, h *rig.House) (int, readiness) {
	t.Helper()
	var r readiness
	resp := get(t, h, "/readyz")
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		t.Fatalf("cannot read /readyz: %v", err)
	}
	return resp.StatusCode, r
}

// get asks over a connection that is not kept.
func get(t testing.TB, h *rig.House, path string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+h.Addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}
