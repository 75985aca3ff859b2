package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"

	"github.com/spf13/cobra"

	"mcpbridge/admin"
	"mcpbridge/admin/client"
	"mcpbridge/telemetry"
)

type logsFlags struct {
	follow bool
	lines  int
}

func newLogsCommand(g *globals) *cobra.Command {
	r := reach{g: g}
	var f logsFlags
	cmd := r.flag(&cobra.Command{
		Use:   "logs NAME",
		Short: "Show what a server writes to its stderr",
		Long: "logs shows the last lines that the processes of a server wrote to their stderr, with secrets masked, and with -f\n" +
			"those that come. If no bridge runs it shows what the last one kept.",
		Args: serverName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.lines < 0 || f.lines > admin.MaxLines {
				return usageError(fmt.Errorf("cannot show %d lines; give -n a number from 0 to %d", f.lines, admin.MaxLines))
			}
			state, control, err := r.places(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), interrupts()...)
			defer stop()
			err = f.fromBridge(ctx, cmd, control, args[0])
			if errors.Is(err, client.ErrNoBridge) {
				return f.fromFiles(ctx, cmd, filepath.Join(state, "logs"), args[0], err)
			}
			return err
		},
	})
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with what comes, until Ctrl-C")
	cmd.Flags().IntVarP(&f.lines, "lines", "n", admin.DefaultLines, "show the last `LINES` lines")
	return cmd
}

func (f logsFlags) fromBridge(ctx context.Context, cmd *cobra.Command, control, name string) error {
	err := client.Dial(control).Logs(ctx, name, f.lines, f.follow, cmd.OutOrStdout())
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil && f.follow:
		fmt.Fprintln(cmd.ErrOrStderr(), "mcpbridge: the log ends here: the bridge stops, or the entry of the server has changed; run this again to go on")
	}
	return err
}

// fromFiles shows what the last bridge kept; noBridge is why none is asked.
func (f logsFlags) fromFiles(ctx context.Context, cmd *cobra.Command, dir, name string, noBridge error) error {
	log := telemetry.OpenServerLog(dir, name)
	if !log.Exists() {
		return fmt.Errorf("there is no log of %q in %s, and %w", name, dir, noBridge)
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "mcpbridge: no bridge runs; this is what the last one kept")
	if f.follow {
		return log.Follow(ctx, f.lines, cmd.OutOrStdout())
	}
	return log.Tail(f.lines, cmd.OutOrStdout())
}
