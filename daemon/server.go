package daemon

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/pool"
	"mcpbridge/bridge/session"
	"mcpbridge/config"
	"mcpbridge/procman"
)

// pipeSize is asked for on the pipes of children: large messages pass in fewer steps.
const pipeSize = 1 << 20

// trusted is who comes in over a loopback or Unix socket: the OS user (design section 8).
func trusted(*http.Request) (bridge.Principal, *bridge.Error) { return bridge.Local, nil }

// mark names this user's bridges in the environment of their children, so that a later run finds what an earlier one
// left behind.
func mark() string { return "u" + strconv.Itoa(os.Getuid()) }

// endpoint builds what belongs to one configured server.
func (d *Daemon) endpoint(s *config.Server, budget *pool.Budget) *endpoint {
	limits := bridge.Limits{Timeout: s.Timeout, Start: s.StartTimeout, Line: d.opt.Config.Limits.LineBytes}
	log := d.serverLog(s.Name)
	verdict := &back.Verdict{}
	verdict.Pin(pinned(s.Protocol))
	spec := procman.Spec{Name: s.Name, Command: s.Command, Args: s.Args, Dir: s.Cwd, Env: childEnv(s), Mark: mark(),
		PipeSize: pipeSize, Stderr: log.stderr}
	if err := procman.Check(spec); err != nil { // it may appear before the first request does
		log.log.Warn().Err(err).Msg("this server cannot be started as things are")
	}
	stdio := back.StdioConfig{
		Spec:    spec,
		Policy:  procman.Policy{Initial: s.Restart.Initial, Max: s.Restart.Max, ResetAfter: s.Restart.ResetAfter},
		Spawner: d.opt.Spawner, Limits: limits, Verdict: verdict, Events: log.process, Secrets: secrets(s),
	}
	e := &endpoint{name: s.Name, isolation: s.Isolation, opening: d.opening()}
	e.pool = pool.New(d.life, pool.Config{Name: s.Name, Max: s.MaxProcesses, Idle: s.IdleStop, Budget: budget,
		Back: func() bridge.Back { return back.NewStdio(stdio) },
		Link: bridge.LinkConfig{Name: s.Name, Limits: limits, Events: log.event, Mirror: s.Mirror}})
	e.sessions = session.NewStore(session.Config{Sessions: d.opt.Config.Limits.Sessions, Ended: e.leave})
	return e
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

// opening is the handshake of links that several clients share. It declares no client feature, since none can be carried
// on them.
func (d *Daemon) opening() []byte {
	self, _ := json.Marshal(map[string]string{"name": "mcpbridge", "version": d.opt.Version})
	return era.InitializeParams(mcp.LatestLegacy, nil, self)
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
	return list
}
