package main

import (
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"mcpbridge/bridge/mcp"
	"mcpbridge/cmd/mcpbridge/demo"
)

func newDemoServerCommand() *cobra.Command {
	opts := demo.Options{Version: buildVersion()}
	var newest string
	cmd := &cobra.Command{
		Use:   "demo-server",
		Short: "Run a small MCP server on stdin and stdout",
		Long:  "demo-server is an MCP server on stdin and stdout for trying things out. It speaks both protocol eras.",
		Args:  atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.LegacyOnly && opts.ModernOnly {
				return usageError(errors.New("--legacy-only and --modern-only exclude each other; give one of them"))
			}
			opts.Newest = mcp.Version(newest)
			if newest != "" && opts.Newest.Era() != mcp.Legacy {
				return usageError(fmt.Errorf("--newest %s is not a legacy revision; use one of %v", newest, mcp.LegacyVersions()))
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return demo.Serve(ctx, cmd.InOrStdin(), cmd.OutOrStdout(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.LegacyOnly, "legacy-only", false, "speak the revisions up to 2025-11-25 only")
	cmd.Flags().BoolVar(&opts.ModernOnly, "modern-only", false, "speak 2026-07-28 only")
	cmd.Flags().StringVar(&newest, "newest", "", "newest legacy `REVISION` to negotiate")
	return cmd
}
