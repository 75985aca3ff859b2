package daemon

import (
	"encoding/json"
	"net/http"
)

// healthz tells that the process lives (case 98).
func healthz(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }

// readiness is the answer of /readyz. It holds no secrets: reasons are told to the owner by `mcpbridge status`.
type readiness struct {
	Ready   bool                   `json:"ready"`
	Servers map[string]serverReady `json:"servers"`
}

type serverReady struct {
	Ready    bool   `json:"ready"`
	Required bool   `json:"required"`
	State    string `json:"state"`
}

// readyz tells whether each required server can be used: 503 if one cannot, or if the bridge takes no more work (case 98).
func (d *Daemon) readyz(w http.ResponseWriter, _ *http.Request) {
	t := d.table.Load()
	answer := readiness{Ready: !d.refusing(), Servers: map[string]serverReady{}}
	add := func(name string, s serverReady) {
		answer.Servers[name] = s
		answer.Ready = answer.Ready && (s.Ready || !s.Required)
	}
	for _, b := range t.broken {
		add(b.server.Name, serverReady{Required: b.server.Required, State: "broken"})
	}
	for _, e := range t.endpoints {
		state, ready, _ := e.condition()
		add(e.name, serverReady{Ready: ready, Required: e.cfg.Required, State: state})
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !answer.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// refusing reports whether new work is refused.
func (d *Daemon) refusing() bool {
	if d.draining.Load() {
		return true
	}
	select {
	case <-d.stopping:
		return true
	default:
		return false
	}
}
