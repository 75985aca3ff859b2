package admin_test

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpbridge/admin"
)

// The socket is its owner's alone, and gone when it is closed (SEC-12).
func TestListenIsPrivate(t *testing.T) {
	path := socket(t)
	l, err := admin.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		for name, want := range map[string]fs.FileMode{path: 0o600 | fs.ModeSocket, filepath.Dir(path): 0o700 | fs.ModeDir} {
			if info, err := os.Lstat(name); err != nil || info.Mode() != want {
				t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// A folder that is there keeps its mode.
func TestListenInFolder(t *testing.T) {
	path := socket(t)
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := admin.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Stat(filepath.Dir(path)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// leaveBehind leaves a socket that nobody answers on.
func leaveBehind(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
}

func TestListenWhereSomethingIs(t *testing.T) {
	for _, tt := range []struct {
		name  string
		put   func(t *testing.T, path string)
		fails string // "" if it is replaced
	}{
		{"a dead socket", leaveBehind, ""},
		{"a live socket", func(t *testing.T, path string) {
			l, err := admin.Listen(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
		}, "another program answers there"},
		{"a file", func(t *testing.T, path string) {
			_ = os.MkdirAll(filepath.Dir(path), 0o700)
			if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "something that is no socket has that name"},
		{"a folder", func(t *testing.T, path string) {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "something that is no socket has that name"},
		{"a link to a dead socket", func(t *testing.T, path string) {
			leaveBehind(t, path+"2")
			if err := os.Symlink(path+"2", path); err != nil {
				t.Fatal(err)
			}
		}, "something that is no socket has that name"},
		{"a file where the folder should be", func(t *testing.T, path string) {
			if err := os.WriteFile(filepath.Dir(path), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "mkdir"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := socket(t)
			tt.put(t, path)
			before, _ := os.Lstat(path)
			l, err := admin.Listen(path)
			if err == nil {
				defer l.Close()
			}
			if tt.fails == "" {
				if err != nil {
					t.Fatal(err)
				}
				_ = dial(t, path).Close()
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "cannot listen on control socket "+path+": ") || !strings.Contains(err.Error(), tt.fails) {
				t.Fatalf("%v, want %q", err, tt.fails)
			}
			after, _ := os.Lstat(path)
			if (before == nil) != (after == nil) || before != nil && !os.SameFile(before, after) {
				t.Error("what was there is gone")
			}
		})
	}
}

// The longest path works, one byte more is refused with a reason.
func TestListenPathLength(t *testing.T) {
	dir := filepath.Dir(filepath.Dir(socket(t)))
	for _, n := range []int{admin.MaxPath, admin.MaxPath + 1} {
		path := filepath.Join(dir, strings.Repeat("x", n-len(dir)-1))
		l, err := admin.Listen(path)
		if err == nil {
			_ = l.Close()
		}
		if (err == nil) != (n <= admin.MaxPath) || err != nil && !strings.Contains(err.Error(), "104 bytes, systems take 103") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// Of several bridges that find a dead socket at the same time one gets it, and keeps it.
func TestListenRace(t *testing.T) {
	for range 20 {
		path := socket(t)
		leaveBehind(t, path)
		var won atomic.Pointer[net.Listener]
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if l, err := admin.Listen(path); err == nil && !won.CompareAndSwap(nil, &l) {
					t.Error("two bridges have one socket")
					_ = l.Close()
				}
			})
		}
		wg.Wait()
		if won.Load() == nil {
			t.Fatal("nobody has the socket")
		}
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		_ = (*won.Load()).Close()
	}
}

// MaxConns connections are open at once; one more is closed at once, and one that ends makes room.
func TestConnectionLimit(t *testing.T) {
	path := socket(t)
	l, err := admin.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	var open []net.Conn
	for range admin.MaxConns {
		dial(t, path)
		open = append(open, <-accepted)
	}
	if n, err := dial(t, path).Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("one more: %d, %v", n, err)
	}
	_ = open[0].Close()
	_ = open[0].Close() // twice gives back one place
	dial(t, path)
	open = append(open, <-accepted)
	if n, err := dial(t, path).Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one more again: %d, %v", n, err)
	}
	for _, c := range open {
		_ = c.Close()
	}
	_ = l.Close()
	<-ended
}
