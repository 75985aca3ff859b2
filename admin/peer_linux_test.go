package admin

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAdmit(t *testing.T) {
	for _, tt := range []struct {
		user, owner int
		ok          bool
	}{{1000, 1000, true}, {0, 1000, true}, {0, 0, true}, {1001, 1000, false}, {1000, 0, false}, {-1, 1000, false}} {
		if err := admit(tt.user, tt.owner); (err == nil) != tt.ok {
			t.Errorf("user %d at owner %d: %v", tt.user, tt.owner, err)
		}
	}
}

func TestCheckPeerKnowsItself(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if err := checkPeer(a); err == nil {
		t.Error("a connection without a user was let in")
	}
}

// asNobody calls f on a thread that has another user's rights.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)); errno != 0 {
			t.Errorf("cannot become another user: %v", errno)
			return
		}
		f()
	}()
	<-done
}

// Another user can neither open the socket nor, if its mode is spoiled, stay connected (SEC-12).
func TestAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user to try this; run the test as root")
	}
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "b.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	accepted := make(chan net.Conn, 1)
	go func() {
		defer close(ended)
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()
	asNobody(t, func() {
		if c, err := net.Dial("unix", path); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%v, %v", c, err)
		}
	})
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d, %v", n, err)
		}
	})
	select {
	case <-accepted:
		t.Error("another user was let in")
	default:
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	<-ended
	_ = (<-accepted).Close()
	_ = l.Close()
}
