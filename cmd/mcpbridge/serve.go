package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sort"
	"syscall"

	"github.com/spf13/cobra"

	"mcpbridge/config"
	"mcpbridge/daemon"
)

const serveLong = `serve runs MCP servers and gives each its own HTTP endpoint, for clients of both protocol eras at once.

  mcpbridge serve -- npx -y @modelcontextprotocol/server-everything
      serves one server at http://127.0.0.1:8420/mcp

  mcpbridge serve --config mcp.json
      serves each entry of mcpServers at http://127.0.0.1:8420/servers/NAME/mcp

  mcpbridge serve
      serves the configuration in the platform's own place, or the built-in demo server if there is none

A change of the configuration file is noticed and carried out: servers whose entry is the same go on. SIGHUP and "mcpbridge reload" do the
same; a file with an error changes nothing. See also: mcpbridge status, logs, restart, drain.

Ctrl-C stops: open requests have 3 seconds to finish (limits.shutdown), then the servers are ended with all their children. A second Ctrl-C
does not wait. Legacy sessions go on when the bridge is started again.`

type serveFlags struct {
	listen    []string
	isolation string
}

func newServeCommand(g *globals) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve [-- COMMAND ARGS...]",
		Short: "Run MCP servers and serve them over HTTP",
		Long:  serveLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && cmd.ArgsLenAtDash() == 0 {
				return usageError(errors.New("there is no command behind --; name one, or leave out -- to serve the configuration"))
			}
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return usageError(fmt.Errorf("unexpected argument %q; put -- before the command of a server: mcpbridge serve -- %s", args[0], args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return serve(cmd, g, f, args) },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(fmt.Errorf("%w; flags of a server's own command go behind --: mcpbridge serve -- COMMAND ARGS; run `%s --help`", err, cmd.CommandPath()))
	})
	cmd.Flags().StringArrayVar(&f.listen, "listen", nil, "listen on `ADDRESS`: HOST:PORT on loopback or unix:///PATH; may be repeated (default "+config.DefaultListen+")")
	cmd.Flags().StringVar(&f.isolation, "isolation", "", "of a COMMAND: who shares a process: session, principal, shared or request (default: one process for each legacy session, one for all modern clients)")
	return cmd
}

func serve(cmd *cobra.Command, g *globals, f serveFlags, argv []string) error {
	file := servedFile(g, argv)
	loaded := daemon.Fingerprint(file)
	cfg, err := serveConfig(cmd, g, f, argv)
	if err != nil {
		return err
	}
	state, control, err := places(cfg)
	if err != nil {
		return err
	}
	if err := checkLevel(g.logLevel); err != nil {
		return err
	}
	log, closeLog := newLogger(g, cfg.Log, cmd.ErrOrStderr())
	defer closeLog()
	opt := daemon.Options{Config: cfg, Log: log, Version: buildVersion(), StateDir: state, Control: control,
		Ready: func(a daemon.Address) { announce(cmd.ErrOrStderr(), g.json, a) }}
	if file != "" {
		opt.File, opt.Loaded = file, loaded
		opt.Load = func() (*config.Config, error) { return serveConfig(cmd, g, f, argv) }
	}
	d, err := daemon.New(opt)
	if err != nil {
		return configError(err)
	}
	shareProcessors()
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the next signal ends the program at once
	reloadOnHangup(ctx, d)
	return d.Run(ctx)
}

// places are the state directory and the control socket.
func places(cfg *config.Config) (state, control string, err error) {
	if state = cfg.StateDir; state == "" {
		state = config.DefaultStateDir()
	}
	if state, err = filepath.Abs(state); err != nil {
		return "", "", err
	}
	if control = cfg.Control; control == "" {
		control = config.DefaultControl()
	}
	return state, control, nil
}

// shareProcessors leaves half of the processors to the servers, and to the clients where they run on the same machine: none
// of them gets anything done while the bridge has all. Measured on two cores, the bridge answers more calls with one than
// with both (test/bench/README.md). The environment variable GOMAXPROCS decides otherwise.
func shareProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS((runtime.GOMAXPROCS(0) + 1) / 2)
	}
}

// serveConfig finds out what to serve: the command given, the configuration file, or the demo server.
func serveConfig(cmd *cobra.Command, g *globals, f serveFlags, argv []string) (*config.Config, error) {
	cfg, err := pickConfig(cmd, g, argv)
	if err != nil {
		return nil, err
	}
	if len(f.listen) > 0 {
		cfg.Listen = f.listen
	}
	switch f.isolation {
	case "":
	case config.IsolationSession, config.IsolationPrincipal, config.IsolationShared, config.IsolationRequest:
		for i := range cfg.Servers {
			cfg.Servers[i].Isolation = f.isolation
		}
	default:
		return nil, usageError(fmt.Errorf("unknown isolation %q; use session, principal, shared or request", f.isolation))
	}
	return cfg, nil
}

func pickConfig(cmd *cobra.Command, g *globals, argv []string) (*config.Config, error) {
	if len(argv) > 0 {
		if g.config != "" {
			return nil, usageError(errors.New("a command and --config exclude each other; give one of them"))
		}
		return single(config.ForCommand(argv)), nil
	}
	path := servedFile(g, argv)
	if path == "" {
		return demoConfig()
	}
	cfg, warnings, err := config.Load(path)
	for _, w := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), w)
	}
	if err != nil {
		return nil, configError(err)
	}
	return cfg, nil
}

// servedFile is the configuration file that is served: the one named, else the default one if it is there; "" for none.
func servedFile(g *globals, argv []string) string {
	switch {
	case len(argv) > 0:
		return ""
	case g.config != "":
		if path, err := filepath.Abs(g.config); err == nil {
			return path
		}
		return g.config
	}
	path := config.DefaultPath()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return path
}

func demoConfig() (*config.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program to run its demo server: %w", err)
	}
	return single(config.ForDemo(self)), nil
}

// single lets the only server use all the processes the bridge may have.
func single(cfg *config.Config) *config.Config {
	cfg.Servers[0].MaxProcesses = cfg.Limits.Processes
	return cfg
}

// announce tells where the bridge can be reached, on stderr as all that is not protocol.
func announce(w io.Writer, asJSON bool, a daemon.Address) {
	if asJSON {
		_ = json.NewEncoder(w).Encode(map[string]any{"listening": a.Listening, "endpoints": a.Endpoints})
		return
	}
	names := make([]string, 0, len(a.Endpoints))
	for name := range a.Endpoints {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(w, "mcpbridge: serving %s at %s\n", name, a.Endpoints[name][0])
	}
}
