//go:build unix

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"mcpbridge/daemon"
)

// reloadOnHangup has the configuration read again at SIGHUP, until ctx ends.
func reloadOnHangup(ctx context.Context, d *daemon.Daemon) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() { // ends with the program
		defer signal.Stop(hangup)
		for {
			select {
			case <-hangup:
				_, _ = d.Reload(ctx) // it logs what is wrong
			case <-ctx.Done():
				return
			}
		}
	}()
}
