package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// listenShape is one address or several.
func listenShape() shape {
	address := shape{"type": "string", "pattern": `^(unix:///|.*:[0-9]+$)`}
	several := shape{"type": "array", "items": address, "minItems": 1, "uniqueItems": true}
	return shape{"anyOf": []shape{address, several}, "default": DefaultListen}
}

func readListen(n node) []string {
	var list []string
	add := func(e node) {
		text, ok := e.text()
		if !ok {
			return
		}
		if err := CheckListen(text); err != nil {
			e.fail("%v", err)
			return
		}
		if !Loopback(text) {
			e.fail("%q can be reached from other machines; that needs auth, which is %s", text, unsupported)
			return
		}
		if slices.Contains(list, text) {
			e.fail("%q stands twice", text)
			return
		}
		list = append(list, text)
	}
	if n.kind() != '[' {
		add(n)
		return list
	}
	elements := n.elements()
	if len(elements) == 0 {
		n.fail("must name at least one address")
	}
	for _, e := range elements {
		add(e)
	}
	return list
}

// CheckListen tells whether addr is "host:port", with a port from 0 to 65535, or "unix:///path".
func CheckListen(addr string) error {
	if path, ok := strings.CutPrefix(addr, "unix://"); ok {
		if !strings.HasPrefix(path, "/") {
			return fmt.Errorf("cannot listen on %q: write unix:///absolute/path", addr)
		}
		return nil
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf(`cannot listen on %q: write "host:port" or "unix:///path"`, addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("cannot listen on %q: the port must be from 0 to 65535", addr)
	}
	return nil
}

// Loopback reports whether only this machine reaches an address that passes CheckListen (ORG-05). Names other than
// localhost count as reachable, and so does no host at all.
func Loopback(addr string) bool {
	if strings.HasPrefix(addr, "unix://") {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
