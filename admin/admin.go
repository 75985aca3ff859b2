// Package admin is how the owner of a running bridge looks at it and steers it: HTTP and JSON over a Unix socket that only
// the owner may open (SEC-12). It owns the socket, the routes and the shape of the answers. It must not know how a bridge
// does what it is asked to: that is a [Backend], and package daemon is one.
package admin

import (
	"context"
	"errors"
	"io"
)

// ErrUnknownServer is wrapped by what a [Backend] returns for a name that no server has.
var ErrUnknownServer = errors.New("there is no server of that name; `mcpbridge status` lists them")

// ErrConfig is wrapped by what [Backend.Reload] returns for a configuration that has errors.
var ErrConfig = errors.New("the configuration has errors; everything goes on as before")

// Backend is a running bridge. Its methods may be called by several goroutines at once.
type Backend interface {
	// Status tells what there is. It does not wait for servers.
	Status() Status
	// Restart ends the processes of a server; the next message starts new ones. The error wraps [ErrUnknownServer] if there
	// is no such server.
	Restart(ctx context.Context, name string) error
	// Reload reads the configuration again. On an error everything is as before; it wraps [ErrConfig] if the file is the reason.
	Reload(ctx context.Context) (Reloaded, error)
	// Drain refuses new work and returns when nothing is open any more. The bridge keeps running. A second call is fine. When
	// ctx ends first new work stays refused, and the error says that not everything is done.
	Drain(ctx context.Context) error
	// Logs returns what a server wrote to its stderr. The error wraps [ErrUnknownServer] if there is no such server.
	Logs(name string) (LogSource, error)
}

// LogSource is the log of one server: lines that end with "\n", secrets masked.
type LogSource interface {
	// Tail writes the last n lines to w.
	Tail(n int, w io.Writer) error
	// Follow writes the last n lines to w and then each further one, until ctx ends, the log is closed (both nil) or w
	// fails. A slow w holds nobody else up.
	Follow(ctx context.Context, n int, w io.Writer) error
}
