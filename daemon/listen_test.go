package daemon

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"mcpbridge/bridge/era"
)

// Nothing is opened beyond loopback without authentication, whatever the spelling (rule 7, ORG-05, ORG-06).
func TestListenLoopbackOnly(t *testing.T) {
	for addr, want := range map[string]string{
		"0.0.0.0:0": "loopback", ":0": "loopback", "[::]:0": "loopback", "192.0.2.1:0": "loopback", "example.com:0": "loopback",
		"127.0.0.1": "HOST:PORT", "8420": "HOST:PORT",
	} {
		list, err := listen([]string{"127.0.0.1:0", addr})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that speaks of %s", addr, err, want)
		}
		if len(list) > 0 {
			t.Errorf("%s: %d listeners are left open", addr, len(list))
		}
	}
	list, err := listen([]string{"127.0.0.1:0", "127.3.2.1:0"})
	if runtime.GOOS == "linux" && err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		_ = l.Close()
	}
}

func TestListenLocalhostIsBoth(t *testing.T) { // case 43
	list, err := listen([]string{"localhost:0"})
	if err != nil {
		t.Fatal(err)
	}
	ports := map[int]bool{}
	for _, l := range list {
		ports[l.Addr().(*net.TCPAddr).Port] = true
		_ = l.Close()
	}
	if len(ports) != 1 {
		t.Errorf("%d ports for one name", len(ports))
	}
}

func TestListenPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = listen([]string{l.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "--listen") || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("%v: want the address and what to do", err)
	}
}

// A socket is its owner's alone; one left by a dead program is replaced, a live one and a plain file are not.
func TestListenUnix(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("file modes mean something else on Windows")
	}
	path := filepath.Join(t.TempDir(), "s")
	first, err := listen([]string{"unix://" + path})
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if _, err := listen([]string{"unix://" + path}); err == nil {
		t.Error("a live socket was replaced")
	}
	first[0].(*net.UnixListener).SetUnlinkOnClose(false) // as after kill -9
	_ = first[0].Close()
	second, err := listen([]string{"unix://" + path})
	if err != nil {
		t.Fatal(err)
	}
	_ = second[0].Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listen([]string{"unix://" + path}); err == nil {
		t.Error("a plain file was replaced")
	}
}

// A client that asks for a revision without handshake does not get one from a server of both eras; all else it says passes
// as it is (VER-43, rule 1).
func TestLegacyVersion(t *testing.T) {
	for _, tt := range [][3]string{
		{"2026-07-28", `{"protocolVersion":"2026-07-28", "capabilities":{"x":1.0}}`, `{"protocolVersion":"2025-11-25", "capabilities":{"x":1.0}}`},
		{"1999-01-01", `{"protocolVersion":"1999-01-01"}`, `{"protocolVersion":"2025-11-25"}`},
		{"2024-11-05", `{ "protocolVersion" : "2024-11-05" }`, `{ "protocolVersion" : "2024-11-05" }`},
	} {
		if got := string(legacyVersion(era.Opening{Requested: tt[0]}, []byte(tt[1]))); got != tt[2] {
			t.Errorf("%s became %s, want %s", tt[1], got, tt[2])
		}
	}
}
