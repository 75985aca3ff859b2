package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"mcpbridge/config"
	"mcpbridge/daemon"
)

const connectLong = `connect is what a host launches that can only start programs: it speaks MCP on stdin and stdout, in either protocol era, and reaches a
remote server, or one of the configuration, for it.

  mcpbridge connect https://mcp.example/mcp --header 'Authorization: Bearer ${env:TOKEN}'
      a remote server; variables are replaced by the bridge, so that no secret stands in the list of processes

  mcpbridge connect files --config mcp.json
      the entry "files" of mcpServers, local or remote

In the configuration of a host:

  {"mcpServers": {"linear": {"command": "mcpbridge", "args": ["connect", "https://mcp.example/mcp"]}}}

Nothing but protocol is written to stdout; the log goes to stderr, or to --log-file. connect ends, with everything it has started, when the
host closes stdin.`

type connectFlags struct {
	headers  []string
	protocol string
}

func newConnectCommand(g *globals) *cobra.Command {
	var f connectFlags
	cmd := &cobra.Command{
		Use:   "connect URL|NAME",
		Short: "Reach a server for a host that speaks stdio",
		Long:  connectLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError(errors.New("name one server: mcpbridge connect URL, or mcpbridge connect NAME with an entry of the configuration"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return connect(cmd, g, f, args[0]) },
	}
	f.add(cmd)
	return cmd
}

func (f *connectFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.headers, "header", nil, "send `'NAME: VALUE'` with each request to a URL; may be repeated")
	cmd.Flags().StringVar(&f.protocol, "protocol", "", "era of the server: auto, modern or legacy (default auto)")
}

func connect(cmd *cobra.Command, g *globals, f connectFlags, target string) error {
	cfg, err := connectConfig(cmd, g, f, target)
	if err != nil {
		return err
	}
	if err := checkLevel(g.logLevel); err != nil {
		return err
	}
	log, closeLog := newLogger(g, cfg.Log, cmd.ErrOrStderr())
	defer closeLog()
	d, err := daemon.New(daemon.Options{Config: cfg, Log: log, Version: buildVersion()})
	if err != nil {
		return configError(err)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return d.Connect(ctx, os.Stdin, os.Stdout)
}

// connectConfig is a configuration of the one server that is meant.
func connectConfig(cmd *cobra.Command, g *globals, f connectFlags, target string) (*config.Config, error) {
	if strings.Contains(target, "://") {
		return remoteConfig(cmd, g, f, target)
	}
	if len(f.headers) > 0 {
		return nil, usageError(errors.New("--header is for a URL; those of an entry stand in the configuration"))
	}
	if servedFile(g, nil) == "" {
		return nil, configError(fmt.Errorf("%q is no URL, and there is no configuration that could have an entry of that name; name a file with --config", target))
	}
	cfg, err := pickConfig(cmd, g, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range cfg.Servers {
		if s.Name != target {
			names = append(names, s.Name)
			continue
		}
		if s.Problem != nil {
			return nil, configError(s.Problem)
		}
		if s.Disabled {
			return nil, configError(fmt.Errorf("server %q is disabled in the configuration", target))
		}
		if f.protocol != "" {
			s.Protocol = f.protocol
		}
		cfg.Servers = []config.Server{s}
		return cfg, checkProtocol(f.protocol)
	}
	return nil, configError(fmt.Errorf("there is no server %q in the configuration; it has %s", target, strings.Join(names, ", ")))
}

func checkProtocol(name string) error {
	switch name {
	case "", "auto", "modern", "legacy":
		return nil
	}
	return usageError(fmt.Errorf("unknown protocol %q; use auto, modern or legacy", name))
}

// remoteConfig is the configuration of a server named by its URL alone.
func remoteConfig(cmd *cobra.Command, g *globals, f connectFlags, url string) (*config.Config, error) {
	if g.config != "" {
		return nil, usageError(errors.New("a URL and --config exclude each other; give one of them"))
	}
	if err := checkProtocol(f.protocol); err != nil {
		return nil, err
	}
	entry := map[string]any{"url": url}
	if f.protocol != "" {
		entry["protocol"] = f.protocol
	}
	headers := map[string]string{}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return nil, usageError(fmt.Errorf("--header %q has no colon; write it as 'NAME: VALUE'", name))
		}
		headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	if len(headers) > 0 {
		entry["headers"] = headers
	}
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"remote": entry}})
	if err != nil {
		return nil, err
	}
	cfg, warnings, err := config.Parse("command line", text, os.LookupEnv)
	for _, w := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), w)
	}
	if err != nil {
		return nil, configError(err)
	}
	if problem := cfg.Servers[0].Problem; problem != nil {
		return nil, configError(problem)
	}
	return cfg, nil
}
