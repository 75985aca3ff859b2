package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"mcpbridge/config"
)

// globals are the flags every command has.
type globals struct {
	config   string // path of the configuration file, "" for the default one
	logLevel string // "" leaves it to the configuration
	logFile  string
	logMaxMB int
	logKeep  int
	json     bool
	noColor  bool
}

func newRootCommand() *cobra.Command {
	var g globals
	root := &cobra.Command{
		Use:           "mcpbridge",
		Short:         "Bridge between MCP hosts and MCP tool servers",
		Long:          "mcpbridge stands between MCP clients and servers: it runs local servers, reaches remote ones, and serves each to clients of both protocol eras.",
		Version:       buildVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE:          helpOrUnknown,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&g.config, "config", "", "configuration `FILE` (default: "+config.DefaultPath()+")")
	flags.StringVar(&g.logLevel, "log-level", "", "least `LEVEL` logged: trace, debug, info, warn, error")
	flags.StringVar(&g.logFile, "log-file", "", "log into `FILE` instead of stderr")
	flags.IntVar(&g.logMaxMB, "log-max-mb", 0, "start a new log file above `N` megabytes")
	flags.IntVar(&g.logKeep, "log-keep", 0, "keep `N` old log files")
	flags.BoolVar(&g.json, "json", false, "print JSON for machines")
	flags.BoolVar(&g.noColor, "no-color", false, "print without colour")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(fmt.Errorf("%w; run `%s --help`", err, cmd.CommandPath()))
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(newServeCommand(&g), newConnectCommand(&g), newDoctorCommand(&g), newCheckCommand(&g), newSchemaCommand(), newVersionCommand(&g), newDemoServerCommand(),
		newStatusCommand(&g), newLogsCommand(&g), newRestartCommand(&g), newReloadCommand(&g), newDrainCommand(&g))
	return root
}

// helpOrUnknown runs when no subcommand was recognised.
func helpOrUnknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	hint := "run `mcpbridge --help` for the list"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	return usageError(fmt.Errorf("unknown command %q; %s", args[0], hint))
}

// atMost is a check of positional arguments whose failure is a usage error.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return usageError(fmt.Errorf("unexpected argument %q; run `%s --help`", args[n], cmd.CommandPath()))
	}
}
