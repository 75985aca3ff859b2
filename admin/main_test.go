package admin_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpbridge/admin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// fake is a bridge whose answers a test sets.
type fake struct {
	status  admin.Status
	restart func(ctx context.Context, name string) error
	reload  func(ctx context.Context) (admin.Reloaded, error)
	drain   func(ctx context.Context) error
	logs    map[string]admin.LogSource
}

func (f *fake) Status() admin.Status                               { return f.status }
func (f *fake) Restart(ctx context.Context, name string) error     { return f.restart(ctx, name) }
func (f *fake) Reload(ctx context.Context) (admin.Reloaded, error) { return f.reload(ctx) }
func (f *fake) Drain(ctx context.Context) error                    { return f.drain(ctx) }
func (f *fake) Logs(name string) (admin.LogSource, error) {
	if l := f.logs[name]; l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("cannot show the log of %q: %w", name, admin.ErrUnknownServer)
}

// source is a log made of two functions.
type source struct {
	tail   func(n int, w io.Writer) error
	follow func(ctx context.Context, n int, w io.Writer) error
}

func (s source) Tail(n int, w io.Writer) error                        { return s.tail(n, w) }
func (s source) Follow(ctx context.Context, n int, w io.Writer) error { return s.follow(ctx, n, w) }

// socket returns a short path for a socket.
func socket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "run", "b.sock")
}

// serve runs b on a socket. stop ends it and waits; it is called by itself at the end.
func serve(t *testing.T, b admin.Backend) (path string, stop func()) {
	t.Helper()
	path = socket(t)
	l, err := admin.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	go func() { end <- admin.Serve(ctx, l, b) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-end; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return path, stop
}

func dial(t *testing.T, path string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

// within fails the test if c is not closed soon.
func within(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("did not happen: " + what)
	}
}
