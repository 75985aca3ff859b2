package daemon

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/front"
	"mcpbridge/config"
)

// table is what is served at a moment. It is replaced as a whole and never changed.
type table struct {
	cfg       *config.Config
	endpoints []*endpoint // in the order of the file
	main      string      // which is served at /mcp too: the only one, and then for as long as it is there
	broken    []broken
	at        map[string]http.Handler // by path
}

// broken is an entry that cannot be served.
type broken struct {
	server *config.Server
	why    error
}

// Usable tells why an entry cannot be served, nil if it can. One broken entry never takes the others down.
func Usable(s *config.Server) error {
	if s.Problem != nil || s.URL == "" {
		return s.Problem
	}
	_, err := back.NewRemote(remoteConfig(s, bridge.Limits{}))
	return err
}

func enabled(c *config.Config) (list []*config.Server) {
	for i := range c.Servers {
		if !c.Servers[i].Disabled {
			list = append(list, &c.Servers[i])
		}
	}
	return list
}

func problemsOf(c *config.Config) (list []broken) {
	for _, s := range enabled(c) {
		if err := Usable(s); err != nil {
			list = append(list, broken{s, err})
		}
	}
	return list
}

// build makes the table of a configuration. Of the one before, old, the endpoints named in same go on.
func (d *Daemon) build(c *config.Config, old *table, same []string) *table {
	t := &table{cfg: c, broken: problemsOf(c), at: map[string]http.Handler{}}
	for _, b := range t.broken {
		d.log.Error().Str("server", b.server.Name).Err(b.why).Msg("server is left out")
	}
	for _, s := range enabled(c) {
		if Usable(s) != nil {
			continue
		}
		if slices.Contains(same, s.Name) {
			t.endpoints = append(t.endpoints, old.endpoint(s.Name))
			continue
		}
		t.endpoints = append(t.endpoints, d.endpoint(s, c))
	}
	t.main = old.mainOf(t)
	guard := d.guard(c)
	for _, e := range t.endpoints {
		h := front.NewHandler(front.Config{Guard: guard, Endpoint: e, Parked: e.parked, Principal: trusted, Bodies: d.bodies, Stopping: e.leaving, Done: e.record})
		for _, path := range t.paths(e) {
			t.at[path] = e.counted(h)
		}
		if e.cfg.SSE {
			events := front.NewEvents(front.Config{Guard: guard, Endpoint: e, Parked: e.parked, Principal: trusted, Bodies: d.bodies, Stopping: e.leaving, Done: e.record})
			for _, path := range t.paths(e) {
				t.at[strings.TrimSuffix(path, "mcp")+"sse"] = e.counted(events)
			}
		}
	}
	t.at["/healthz"] = http.HandlerFunc(healthz)
	t.at["/readyz"] = guarded(guard, d.readyz)
	return t
}

// mainOf names the endpoint of the next table that is served at /mcp. A client that has that URL keeps its server when others
// are added.
func (t *table) mainOf(next *table) string {
	switch {
	case t != nil && next.endpoint(t.main) != nil:
		return t.main
	case len(next.endpoints) == 1:
		return next.endpoints[0].name
	}
	return ""
}

// paths are where an endpoint is served, as they are before percent-encoding (design section 5).
func (t *table) paths(e *endpoint) []string {
	own := "/servers/" + e.name + "/mcp"
	if e.name == t.main {
		return []string{"/mcp", own}
	}
	return []string{own}
}

// escaped is one of the endpoint's paths as it stands in a URL.
func (e *endpoint) escaped(path string) string {
	return strings.Replace(path, "/servers/"+e.name+"/", "/servers/"+e.path+"/", 1)
}

func (t *table) endpoint(name string) *endpoint {
	i := slices.IndexFunc(t.endpoints, func(e *endpoint) bool { return e.name == name })
	if i < 0 {
		return nil
	}
	return t.endpoints[i]
}

func (d *Daemon) guard(c *config.Config) *front.Guard {
	return &front.Guard{LoopbackOnly: true, AllowedHosts: c.AllowedHosts, AllowedOrigins: c.AllowedOrigins, BodyLimit: int64(c.Limits.BodyBytes)}
}

// guarded serves what tells about the bridge to those who may call it.
func guarded(g *front.Guard, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.Check(r); err != nil {
			http.Error(w, err.Message, err.HTTPStatus())
			return
		}
		h(w, r)
	})
}

// ServeHTTP maps URLs to endpoints. Paths are compared as they come: one that is not in its plain form is nobody's, and is not
// redirected (case 94).
func (d *Daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer d.trim.used()
	t := d.table.Load()
	if h := t.at[r.URL.Path]; h != nil && !hidesSlash(r.URL.RawPath) {
		h.ServeHTTP(w, r)
		return
	}
	t.notFound(w, r)
}

// hidesSlash reports whether an encoded path has an encoded slash or dot, which people and proxies read differently.
func hidesSlash(raw string) bool {
	raw = strings.ToLower(raw)
	return strings.Contains(raw, "%2f") || strings.Contains(raw, "%2e")
}

// notFound helps a person with a mistyped URL.
func (t *table) notFound(w http.ResponseWriter, r *http.Request) {
	body := map[string]any{"error": "there is nothing at this path"}
	for _, b := range t.broken {
		if r.URL.Path == "/servers/"+b.server.Name+"/mcp" {
			body["error"] = "server " + b.server.Name + " cannot be served as it is configured; run `mcpbridge check` to see why"
		}
	}
	paths := []string{}
	for _, e := range t.endpoints {
		for _, path := range t.paths(e) {
			paths = append(paths, e.escaped(path))
		}
	}
	body["endpoints"] = paths
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(body)
}
