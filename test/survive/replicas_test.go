package survive

import (
	"net/http"
	"testing"

	"mcpbridge/test/internal/e2e"
)

// Acceptance 2: two bridges that share a key, behind a TCP balancer that gives each connection to the other one; the client
// opens a connection for each request. Every request of a session is served, each replica brings up its process once, and the
// session is ended where its DELETE arrives.
func TestSessionBeforeReplicas(t *testing.T) {
	t.Parallel()
	homes, tenants := replicas(t)
	balancer := balanceConnections(t, homes[0].Addr, homes[1].Addr)
	b := &e2e.Bridge{URL: "http://" + balancer.addr + "/servers/a/mcp", Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	s := furnished(t, b)
	counts := map[int]int{}
	const calls = 20
	for range calls {
		got := next(t, s)
		counts[got.Pid]++
		if got.N != counts[got.Pid] {
			t.Errorf("process %d counted %d at its call %d", got.Pid, got.N, counts[got.Pid])
		}
	}
	for i, h := range homes {
		if n := h.starts(t); n != 1 {
			t.Errorf("replica %d started %d processes for one session", i, n)
		}
		if n := len(h.find(t, 0, `"method":"initialize"`, `"name":"e2e"`)); n != 1 {
			t.Errorf("the process of replica %d had %d handshakes of the client", i, n)
		}
	}
	balancer.wantBoth(t, calls/2)
	tenants[0].Kill(t)
	for range calls {
		next(t, s)
	}
	homes[0].Start(t)
	for range calls {
		next(t, s)
	}
	if n := homes[0].starts(t); n != 2 {
		t.Errorf("the replica that came back started %d processes in all, want 2", n)
	}
	if r := s.Delete(t); r.Status != 204 {
		t.Errorf("DELETE: %d", r.Status)
	}
	gone := 0
	for _, h := range homes {
		if r := h.at("a").Do(t, "POST", s.Header(), e2e.LegacyCall("1", "next", "{}", "")); r.Status == 404 {
			gone++
		}
	}
	if gone == 0 {
		t.Error("the session is ended nowhere")
	}
}
