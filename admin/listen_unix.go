//go:build unix

package admin

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockPause is how long a folder that is locked is left alone.
const lockPause = 5 * time.Millisecond

// lockFolder keeps other bridges from opening a socket in dir at the same moment: two that find the same dead socket would
// else remove each other's new one. Where there are no locks, or somebody keeps this one, it is done without.
func lockFolder(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(liveTime); time.Now().Before(end); time.Sleep(lockPause) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return func() { _ = f.Close() }, nil
}

// listenPrivate opens a socket that is private from its first moment where the system takes over the mode of the descriptor,
// as Linux does.
func listenPrivate(path string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) })
	}}
	return config.Listen(context.Background(), "unix", path)
}
