package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// listen opens all listeners, or none. A name that means this machine by both address families is bound on both (case 43).
// Beyond loopback nothing is opened: this version has no authentication of clients (rule 7).
func listen(addrs []string) (list []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range list {
				_ = l.Close()
			}
			list = nil
		}
	}()
	for _, addr := range addrs {
		more, err := listenOn(addr)
		if err != nil {
			return list, err
		}
		list = append(list, more...)
	}
	return list, nil
}

func listenOn(addr string) ([]net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, "unix://"); ok {
		l, err := listenUnix(path)
		return []net.Listener{l}, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: want HOST:PORT or unix:///PATH: %w", addr, err)
	}
	if host == "localhost" {
		return listenBoth(port)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("cannot listen on %q: beyond loopback clients must be authenticated, which this version cannot do; "+
			"use 127.0.0.1, [::1], localhost or unix:///PATH, and a reverse proxy that authenticates in front", addr)
	}
	l, err := net.Listen("tcp", addr)
	return []net.Listener{l}, explainListen(addr, err)
}

// listenBoth binds both loopback addresses on one port; a machine without IPv6 has one.
func listenBoth(port string) ([]net.Listener, error) {
	four, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return nil, explainListen("localhost:"+port, err)
	}
	bound := strconv.Itoa(four.Addr().(*net.TCPAddr).Port)
	six, err := net.Listen("tcp6", net.JoinHostPort("::1", bound))
	if err != nil {
		return []net.Listener{four}, nil
	}
	return []net.Listener{four, six}, nil
}

// listenUnix binds a socket only its owner may open. A file left by an earlier run is replaced; a live one is not.
func listenUnix(path string) (net.Listener, error) {
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("cannot listen on %s: another program serves it", path)
	}
	if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSocket != 0 {
		_ = os.Remove(path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, explainListen(path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("cannot protect %s: %w", path, err)
	}
	return l, nil
}

func explainListen(addr string, err error) error {
	if err == nil {
		return nil
	}
	hint := ""
	if isAddrInUse(err) {
		hint = "; another program uses it, choose another with --listen"
	}
	return fmt.Errorf("cannot listen on %s: %w%s", addr, errors.Unwrap(err), hint)
}

func isAddrInUse(err error) bool {
	return strings.Contains(err.Error(), "address already in use") || strings.Contains(err.Error(), "Only one usage")
}
