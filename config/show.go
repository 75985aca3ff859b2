package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"mcpbridge/bridge/mask"
)

// hidden stands where a secret may be.
const hidden = "***"

// Shown is a configuration for people to read and programs to print: complete, in the spelling of the file, without
// secrets. Keys, values of env and headers and of URL queries are masked; where variables were put into an entry, the text
// before stands.
type Shown struct {
	Listen         []string               `json:"listen"`
	AllowedHosts   []string               `json:"allowedHosts,omitempty"`
	AllowedOrigins []string               `json:"allowedOrigins,omitempty"`
	Limits         shownLimits            `json:"limits"`
	Log            shownLog               `json:"log"`
	StateDir       string                 `json:"stateDir,omitempty"`
	Control        string                 `json:"control,omitempty"`
	Keys           []string               `json:"keys,omitempty"`
	Servers        map[string]ShownServer `json:"mcpServers"`
}

type shownLimits struct {
	BodyBytes int `json:"bodyBytes"`
	BodyTotal int `json:"bodyTotalBytes"`
	LineBytes int `json:"lineBytes"`
	Sessions  int `json:"sessions"`
	Processes int `json:"processes"`

	SessionIdle string `json:"sessionIdle"`
	SessionLife string `json:"sessionLife"`
	QueueWait   string `json:"queueWait"`
	Shutdown    string `json:"shutdown"`
}

type shownLog struct {
	Level string `json:"level"`
	File  string `json:"file,omitempty"`
	MaxMB int    `json:"maxMB"`
	Keep  int    `json:"keep"`
}

// ShownServer is one server of a Shown.
type ShownServer struct {
	Command      string                       `json:"command,omitempty"`
	Args         []string                     `json:"args,omitempty"`
	Env          map[string]string            `json:"env,omitempty"`
	Cwd          string                       `json:"cwd,omitempty"`
	InheritEnv   bool                         `json:"inheritEnv,omitempty"`
	URL          string                       `json:"url,omitempty"`
	Type         string                       `json:"type,omitempty"`
	Headers      map[string]string            `json:"headers,omitempty"`
	AllowHTTP    bool                         `json:"allowHttp,omitempty"`
	Proxy        string                       `json:"proxy,omitempty"`
	CAFile       string                       `json:"caFile,omitempty"`
	ClientCert   string                       `json:"clientCert,omitempty"`
	ClientKey    string                       `json:"clientKey,omitempty"`
	Insecure     bool                         `json:"insecure,omitempty"`
	Disabled     bool                         `json:"disabled,omitempty"`
	Isolation    string                       `json:"isolation,omitempty"`
	Lazy         *bool                        `json:"lazy,omitempty"`
	IdleStop     string                       `json:"idleStop"`
	MaxProcesses int                          `json:"maxProcesses"`
	Spare        int                          `json:"spare,omitempty"`
	Required     bool                         `json:"required,omitempty"`
	Timeout      string                       `json:"timeout"`
	StartTimeout string                       `json:"startTimeout"`
	Protocol     string                       `json:"protocol"`
	Restart      map[string]string            `json:"restart"`
	Mirror       map[string]map[string]string `json:"mirror,omitempty"`
	Cache        shownCache                   `json:"cache"`
	LogLevel     string                       `json:"logLevel"`
	Ask          shownAsk                     `json:"ask"`
	Profile      any                          `json:"profile"`
	OverDeclare  bool                         `json:"overDeclare,omitempty"`
	Roots        []string                     `json:"roots,omitempty"`
	RestartReads bool                         `json:"restartReads"`
	SSE          bool                         `json:"sse"`
}

type shownCache struct {
	TTLMs int    `json:"ttlMs"`
	Scope string `json:"scope"`
}

// Show returns the configuration without secrets. Servers with a Problem are left out: what they hold is not certain.
func (c *Config) Show() Shown {
	s := Shown{
		Listen: c.Listen, AllowedHosts: c.AllowedHosts, AllowedOrigins: c.AllowedOrigins,
		Limits: c.Limits.show(), Log: shownLog(c.Log), StateDir: c.StateDir, Control: c.Control,
		Servers: map[string]ShownServer{},
	}
	for range c.Keys {
		s.Keys = append(s.Keys, hidden)
	}
	for i := range c.Servers {
		if c.Servers[i].Problem == nil {
			s.Servers[c.Servers[i].Name] = c.Servers[i].show()
		}
	}
	return s
}

func (l Limits) show() shownLimits {
	return shownLimits{
		BodyBytes: l.BodyBytes, BodyTotal: l.BodyTotal, LineBytes: l.LineBytes, Sessions: l.Sessions, Processes: l.Processes,
		SessionIdle: spell(l.SessionIdle), SessionLife: spell(l.SessionLife),
		QueueWait: spell(l.QueueWait), Shutdown: spell(l.Shutdown),
	}
}

func (s *Server) show() ShownServer {
	hide := mask.New(slices.Collect(maps.Values(s.Env))) // what stands in env stands in clear nowhere else
	args := make([]string, len(s.shown.args))
	for i, arg := range s.shown.args {
		args[i] = hide.Text(arg)
	}
	return ShownServer{
		Command: s.shown.command, Args: args, Env: masked(s.Env), Cwd: s.shown.cwd, InheritEnv: s.InheritEnv,
		URL: s.ShownURL(), Type: s.Transport, Headers: masked(s.Headers), AllowHTTP: s.AllowHTTP,
		Proxy: maskedUser(s.shown.proxy), CAFile: s.Way.CAFile, ClientCert: s.Way.ClientCert, ClientKey: s.Way.ClientKey, Insecure: s.Way.Insecure, Disabled: s.Disabled,
		Isolation: s.Isolation, Lazy: s.Lazy, IdleStop: spell(s.IdleStop), MaxProcesses: s.MaxProcesses, Spare: s.Spare,
		Required: s.Required, Timeout: spell(s.Timeout), StartTimeout: spell(s.StartTimeout), Protocol: s.Protocol,
		Restart: map[string]string{
			"initial": spell(s.Restart.Initial), "max": spell(s.Restart.Max),
			"resetAfter": spell(s.Restart.ResetAfter), "breaker": s.Restart.Breaker,
		},
		Mirror: s.Mirror, Cache: shownCache(s.Cache), LogLevel: s.LogLevel,
		Ask: s.Ask.show(), Profile: s.showProfile(), OverDeclare: s.OverDeclare, Roots: s.Roots, RestartReads: s.RestartReads, SSE: s.SSE,
	}
}

func masked(values map[string]string) map[string]string {
	out := make(map[string]string, len(values))
	for name := range values {
		out[name] = hidden
	}
	return out
}

// ShownURL is the url as it stands in the file, without the values of its query.
func (s *Server) ShownURL() string { return maskedURL(s.shown.url) }

// maskedURL hides the values of the query, which often is a key.
func maskedURL(text string) string {
	base, query, ok := strings.Cut(text, "?")
	if !ok {
		return text
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, _, _ := strings.Cut(pair, "=")
		pairs[i] = url.QueryEscape(name) + "=" + hidden
	}
	return base + "?" + strings.Join(pairs, "&")
}

// maskedUser hides what stands before the host.
func maskedUser(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if _, host, user := strings.Cut(rest, "@"); ok && user {
		return scheme + "://" + hidden + "@" + host
	}
	return text
}
