package daemon

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/pool"
	"mcpbridge/config"
)

// remoteLinks is how many links to one remote server may be open. They cost no process, so limits.processes does not count them.
const remoteLinks = 10_000

// States of a remote server that no process has.
const (
	stateConnected    = "connected"
	stateUnreachable  = "unreachable"
	stateUnauthorized = "unauthorized"
)

// links describes the links of a server, local or remote.
func (d *Daemon) links(e *endpoint, s *config.Server, c *config.Config) pool.Config {
	p := pool.Config{Name: s.Name, Max: s.MaxProcesses, Idle: s.IdleStop, Budget: d.budget, Wait: c.Limits.QueueWait, Keep: e.eager(),
		Link: bridge.LinkConfig{Name: s.Name, Limits: limits(s, c), Events: e.log.event, Mirror: s.Mirror,
			Roots: roots(s.Roots), Elicited: e.parked.Elicited}}
	if e.remote != nil {
		p.Max, p.Budget = remoteLinks, pool.NewBudget(remoteLinks)
		p.Link.Remote = true
		p.Back = func() bridge.Back { return e.remote.Back() }
		return p
	}
	p.Spare = spares(s, e.exclusive())
	stdio := d.stdio(e, s, c)
	p.Back = func() bridge.Back { return back.NewStdio(e.heard(stdio)) }
	return p
}

func limits(s *config.Server, c *config.Config) bridge.Limits {
	return bridge.Limits{Timeout: s.Timeout, Start: s.StartTimeout, Line: c.Limits.LineBytes}
}

// remoteConfig describes a remote server.
func remoteConfig(s *config.Server, l bridge.Limits) back.RemoteConfig {
	return back.RemoteConfig{Name: s.Name, URL: s.URL, Headers: s.Headers, EventsFirst: s.Transport == config.TransportSSE,
		Protocol: pinned(s.Protocol), Limits: l, Secrets: secrets(s), Proxy: s.Way.Proxy, CAFile: s.Way.CAFile,
		ClientCert: s.Way.ClientCert, ClientKey: s.Way.ClientKey, Insecure: s.Way.Insecure}
}

// remoteSecrets are the texts in a remote server's entry that nobody may see: values of headers, also without the word that names
// their kind, of the query, and what variables have put into the path.
func remoteSecrets(s *config.Server) []string {
	list := slices.Collect(maps.Values(s.Headers))
	for _, v := range s.Headers {
		if _, rest, ok := strings.Cut(v, " "); ok {
			list = append(list, rest)
		}
	}
	if u, err := url.Parse(s.Way.Proxy); err == nil && u.User != nil {
		password, _ := u.User.Password()
		list = append(list, password)
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return list
	}
	for _, values := range u.Query() {
		list = append(list, values...)
	}
	shown := s.ShownURL()
	for part := range strings.SplitSeq(u.Path, "/") {
		if !strings.Contains(shown, part) {
			list = append(list, part)
		}
	}
	return list
}

// remoteCondition is the state of a remote server, whether it can be used, and if not why.
func (e *endpoint) remoteCondition() (state string, ready bool, problem string) {
	switch s := e.remote.State(); {
	case s.Challenge != "":
		return stateUnauthorized, false, s.Problem
	case s.Problem != "":
		return stateUnreachable, false, s.Problem
	}
	for _, entry := range e.pool.Entries() {
		if entry.Link != nil && entry.Link.Live() != nil {
			return stateConnected, true, ""
		}
	}
	return "idle", true, ""
}

var errNoOutput = errors.New("it is a remote server, whose output stays where it runs; the bridge's own log tells what passes")
