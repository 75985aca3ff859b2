package admin

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// MaxPath is the longest path of a socket in bytes that all systems take.
	MaxPath = 103
	// MaxConns is how many connections may be open at once; further ones are closed at once.
	MaxConns = 64
	// liveTime is how long a program has to answer before its socket counts as alive but stuck.
	liveTime = 2 * time.Second
)

// Listen opens the control socket at path, for the owner of this process alone (SEC-12): the socket has mode 0600, a missing
// folder is made with 0700, and on Linux each connection's user must be the owner or root. A socket that a dead
// program left behind is replaced; if a program answers there, or something else has that name, it is an error that says
// so. Closing the listener removes the socket.
func Listen(path string) (net.Listener, error) {
	l, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on control socket %s: %w", path, err)
	}
	return &listener{Listener: l, room: make(chan struct{}, MaxConns)}, nil
}

func open(path string) (net.Listener, error) {
	if len(path) > MaxPath {
		return nil, fmt.Errorf("the path has %d bytes, systems take %d for a socket; name a shorter one with the setting control", len(path), MaxPath)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := clear(path); err != nil {
		return nil, err
	}
	l, err := listenPrivate(path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// clear removes a socket nobody answers on.
func clear(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("something that is no socket has that name; move it away, or name another path with the setting control")
	}
	conn, err := net.DialTimeout("unix", path, liveTime)
	switch {
	case err == nil:
		_ = conn.Close()
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("it belongs to another user; name a path of your own with the setting control: %w", err)
	}
	if !dead(err) {
		return errors.New("another program answers there: a bridge that runs already? Stop it, or give this one a path of its own with the setting control")
	}
	return os.Remove(path)
}

// refusedWindows is WSAECONNREFUSED, which package syscall has no portable name for.
const refusedWindows = syscall.Errno(10061)

// dead reports whether the outcome of a dial tells that no program holds the socket.
func dead(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, refusedWindows) || errors.Is(err, fs.ErrNotExist)
}

// listener hands out connections of users who may connect, MaxConns at once.
type listener struct {
	net.Listener
	room chan struct{}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if checkPeer(c) != nil {
			_ = c.Close()
			continue
		}
		select {
		case l.room <- struct{}{}:
			return &conn{Conn: c, leave: sync.OnceFunc(func() { <-l.room })}, nil
		default:
			_ = c.Close()
		}
	}
}

// conn is a connection that holds a place.
type conn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
