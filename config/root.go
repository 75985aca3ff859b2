package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// unsupported is the answer to settings that protect: ignoring one would be worse than refusing the file.
const unsupported = "not supported yet by this version; remove it"

func (f *file) readRoot(root node, c *Config) {
	entries := func(n node) { f.readServers(n, c) }
	keys := setters{
		"listen":         func(n node) { c.Listen = readListen(n) },
		"allowedHosts":   func(n node) { c.AllowedHosts = readChecked(n, checkHost) },
		"allowedOrigins": func(n node) { c.AllowedOrigins = readChecked(n, checkOrigin) },
		"limits":         func(n node) { n.readStrict(limitKeys(&c.Limits)) },
		"log":            func(n node) { n.readStrict(logKeys(&c.Log)) },
		"tls":            func(n node) { n.fail(unsupported) },
		"auth":           func(n node) { n.fail(unsupported) },
		"$schema":        func(n node) { n.text() },
		"mcpServers":     entries,
		"servers":        entries,
	}
	root.read(keys, func(m member) { m.reportForeign(keys) })
	f.checkNames(c.Servers)
}

func limitKeys(l *Limits) setters {
	return setters{
		"bodyBytes": setInt(&l.BodyBytes, 1024, 1<<30), "bodyTotalBytes": setInt(&l.BodyTotal, 1<<20, 1<<36),
		"lineBytes": setInt(&l.LineBytes, 1024, 1<<30),
		"sessions":  setInt(&l.Sessions, 1, 1_000_000),
		"processes": setInt(&l.Processes, 1, 10_000),
	}
}

func logKeys(l *Log) setters {
	return setters{
		"level": setOneOf(&l.Level, "trace", "debug", "info", "warn", "error"),
		"file":  setText(&l.File),
		"maxMB": setInt(&l.MaxMB, 1, 100_000),
		"keep":  setInt(&l.Keep, 0, 1000),
	}
}

// readServers takes the entries of an object, or of a list whose entries have a name.
func (f *file) readServers(n node, c *Config) {
	if n.kind() == '[' {
		for _, e := range n.elements() {
			f.addServer(e, nameOf(e), c)
		}
		return
	}
	for _, m := range n.members() {
		f.addServer(m.node, m.name, c)
	}
}

func (f *file) addServer(n node, name string, c *Config) {
	if len(c.Servers) == MaxServers {
		n.fail("more than %d servers", MaxServers)
	}
	if len(c.Servers) < MaxServers {
		c.Servers = append(c.Servers, n.readServer(name))
	}
}

// nameOf finds the name in an entry of a list.
func nameOf(n node) string {
	object, ok := n.value.Value.(*hujson.Object)
	if !ok {
		return ""
	}
	for _, m := range object.Members {
		if m.Name.Value.(hujson.Literal).String() == "name" && m.Value.Value.Kind() == '"' {
			return m.Value.Value.(hujson.Literal).String()
		}
	}
	return ""
}

// checkNames refuses a second server whose name differs from an earlier one in case only: some file systems, caches and
// people do not tell the two apart.
func (f *file) checkNames(servers []Server) {
	first := map[string]string{}
	for i := range servers {
		s := &servers[i]
		folded := strings.ToLower(s.Name)
		if earlier, ok := first[folded]; ok && s.Name != "" {
			s.addProblem(f.errorAt(s.shown.offset, "servers %q and %q have names that are equal or differ in case only; rename one", earlier, s.Name))
			continue
		}
		first[folded] = s.Name
	}
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

func readChecked(n node, check func(string) error) []string {
	var list []string
	for _, e := range n.elements() {
		text, ok := e.text()
		if !ok {
			continue
		}
		if err := check(text); err != nil {
			e.fail("%v", err)
			continue
		}
		list = append(list, text)
	}
	return list
}

func checkHost(host string) error {
	if host == "" || strings.ContainsAny(host, "/@?# \t\\") {
		return fmt.Errorf(`%q is no host; write "bridge.example", "bridge.example:8420" or "bridge.example:*"`, host)
	}
	return nil
}

func checkOrigin(origin string) error {
	if origin == "null" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || u.Scheme+"://"+u.Host != origin {
		return fmt.Errorf(`%q is no origin; write scheme, host and port only, such as "https://app.example"`, origin)
	}
	return nil
}
