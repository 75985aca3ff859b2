package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"mcpbridge/admin"
)

// watchTime is how long a watched table stands before it is drawn again.
const watchTime = 2 * time.Second

// clearScreen moves to the corner and clears what is below.
const clearScreen = "\x1b[H\x1b[2J"

func newStatusCommand(g *globals) *cobra.Command {
	r := reach{g: g}
	var watching bool
	cmd := r.flag(&cobra.Command{
		Use:   "status",
		Short: "Show what the running bridge and its servers do",
		Long: "status shows the running bridge and each of its servers: state, process, uptime, restarts, sessions, calls, memory\n" +
			"and how its last process ended. It exits with 1 if no bridge answers.",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watching && !g.json && !isTerminal(cmd.OutOrStdout()) {
				return usageError(errors.New("--watch draws on a terminal; elsewhere use --json with it"))
			}
			bridge, err := r.dial(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			show := showStatus(g.json, watching)
			if !watching {
				s, err := bridge.Status(cmd.Context())
				if err != nil {
					return err
				}
				return show(cmd.OutOrStdout(), s)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), interrupts()...)
			defer stop()
			return watch(ctx, func() error {
				s, err := bridge.Status(ctx)
				if err != nil {
					return err
				}
				return show(cmd.OutOrStdout(), s)
			})
		},
	})
	cmd.Flags().BoolVar(&watching, "watch", false, "show it again every 2 seconds until Ctrl-C")
	return cmd
}

// showStatus returns how a status is printed.
func showStatus(asJSON, clear bool) func(io.Writer, admin.Status) error {
	if asJSON {
		return func(w io.Writer, s admin.Status) error { return printJSON(w, s) }
	}
	return func(w io.Writer, s admin.Status) error {
		var b bytes.Buffer
		if clear {
			b.WriteString(clearScreen)
		}
		printStatus(&b, s)
		_, err := w.Write(b.Bytes())
		return err
	}
}

// watch calls show every watchTime until ctx ends, which is no error, or show fails.
func watch(ctx context.Context, show func() error) error {
	tick := time.NewTicker(watchTime)
	defer tick.Stop()
	for {
		if err := show(); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
