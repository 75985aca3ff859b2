package main

import (
	"context"

	"mcpbridge/daemon"
)

// reloadOnHangup does nothing: Windows has no such signal. `mcpbridge reload` does it.
func reloadOnHangup(context.Context, *daemon.Daemon) {}
