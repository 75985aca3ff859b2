package daemon

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mask"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/parked"
	"mcpbridge/bridge/pool"
	"mcpbridge/bridge/session"
	"mcpbridge/config"
	"mcpbridge/procman"
	"mcpbridge/telemetry"
)

// proof is how long a process has to run to have been of use to somebody.
const proof = time.Second

// pipeSize is asked for on the pipes of children: large messages pass in fewer steps.
const pipeSize = 1 << 20

// trusted is who comes in over a loopback or Unix socket: the OS user (design section 8).
func trusted(*http.Request) (bridge.Principal, *bridge.Error) { return bridge.Local, nil }

// mark names this user's bridges in the environment of their children, so that a later run finds what an earlier one
// left behind.
func mark() string { return "u" + strconv.Itoa(os.Getuid()) }

// endpoint builds what belongs to one configured server. Nothing of it runs yet.
func (d *Daemon) endpoint(s *config.Server, c *config.Config) *endpoint {
	e := &endpoint{name: s.Name, path: s.Path(), cfg: s, isolation: s.Isolation, opening: d.opening, leaving: make(chan struct{}), verdict: &back.Verdict{},
		breaker: procman.NewBreaker(s.Restart.BreakerCount, s.Restart.BreakerWindow, s.Restart.Max)}
	hide := mask.New(secrets(s))
	e.pinned = pinned(s.Protocol)
	e.log = d.serverLog(s.Name, hide)
	e.verdict.Pin(pinned(s.Protocol))
	if d.state.logs != "" && s.URL == "" {
		e.file = telemetry.NewServerLog(d.state.logs, s.Name, c.Log.MaxMB, c.Log.Keep, hide)
	}
	e.parked = d.parked(s)
	if s.URL != "" {
		var err error
		e.remote, err = back.NewRemote(remoteConfig(s, limits(s, c)))
		e.missing = func() error { return err } // only if a file has changed since Usable looked
	} else {
		spec := d.stdio(e, s, c).Spec
		e.missing = func() error { return procman.Check(spec) }
	}
	if err := e.missing(); err != nil { // it may appear before the first request does
		e.log.log.Warn().Err(err).Msg("this server cannot be started as things are")
	}
	if e.remote == nil && e.eager() && e.exclusive() && s.MaxProcesses == 1 {
		e.log.log.Warn().Msg("lazy: false has no effect: the only process this server may have is kept for the first client; raise maxProcesses, or set isolation to principal or shared")
	}
	e.pool = pool.New(d.life, d.links(e, s, c))
	e.sessions = session.NewStore(session.Config{Sessions: d.sessions, Idle: c.Limits.SessionIdle, Life: c.Limits.SessionLife,
		Ended: e.leave, Endpoint: s.Name, Sealer: d.state.ring.Box("session id"), Facts: d.state.facts})
	return e
}

// parked is the table of calls in which the server asks a modern client something.
func (d *Daemon) parked(s *config.Server) *parked.Table {
	return parked.New(parked.Config{Server: s.Name, Box: d.state.ring.Box("request state"), TTL: s.Ask.TTL, Life: s.Ask.Life, Window: s.Ask.Window,
		PerPrincipal: s.Ask.PerPrincipal, PerLink: s.Ask.PerLink, NoRestart: !s.RestartReads, Roots: roots(s.Roots)})
}

// roots is the raw result of roots/list for clients that have none, nil for none.
func roots(uris []string) []byte {
	if len(uris) == 0 {
		return nil
	}
	list := make([]map[string]string, len(uris))
	for i, uri := range uris {
		list[i] = map[string]string{"uri": uri}
	}
	raw, _ := json.Marshal(map[string]any{"roots": list}) // strings only
	return raw
}

// stdio describes how the processes of a server are run.
func (d *Daemon) stdio(e *endpoint, s *config.Server, c *config.Config) back.StdioConfig {
	return back.StdioConfig{
		Spec: procman.Spec{Name: s.Name, Command: s.Command, Args: s.Args, Dir: s.Cwd, Env: childEnv(s), Mark: mark(),
			PipeSize: pipeSize},
		Policy: procman.Policy{Initial: s.Restart.Initial, Max: s.Restart.Max, ResetAfter: s.Restart.ResetAfter,
			Breaker: e.breaker, Proof: proof},
		Spawner: d.opt.Spawner,
		Limits:  limits(s, c),
		Verdict: e.verdict, Events: e.process, Secrets: secrets(s),
	}
}

func pinned(protocol string) mcp.Era {
	switch protocol {
	case "modern":
		return mcp.Modern
	case "legacy":
		return mcp.Legacy
	}
	return mcp.EraUnknown
}

// opening is the handshake of links that several clients share. It declares what all of them can do.
func (d *Daemon) opening(p era.Profile) []byte {
	self, _ := json.Marshal(map[string]string{"name": "mcpbridge", "version": d.opt.Version})
	return era.InitializeParams(mcp.LatestLegacy, p.Capabilities(), self)
}

// childEnv is the whole environment of a server: a documented base set, or all of the bridge's save its own settings, and
// what its entry sets (case 83, STD-11).
func childEnv(s *config.Server) []string {
	env := os.Environ()
	if s.InheritEnv {
		env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(strings.ToUpper(kv), "MCPBRIDGE_") })
	} else {
		env = procman.BaseEnv(env)
	}
	for k, v := range s.Env {
		env = append(env, k+"="+v)
	}
	return env
}

// secrets are the values an error of this server must not show.
func secrets(s *config.Server) []string {
	var list []string
	for _, v := range s.Env {
		list = append(list, v)
	}
	if s.URL != "" {
		list = append(list, remoteSecrets(s)...)
	}
	return list
}
