package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// unsupported is the answer to settings that protect: ignoring one would be worse than refusing the file.
const unsupported = "not supported yet by this version; remove it"

func (f *file) readRoot(root node, c *Config) {
	keys := f.rootKeys(c)
	root.read(keys, func(m member) { f.foreignRoot(m, keys, c) })
	f.checkNames(c.Servers)
	if len(f.errs) == 0 {
		root.settleControl(c)
	}
}

// rootKeys says what each key of the file means.
func (f *file) rootKeys(c *Config) settings {
	servers := setting{func(n node) { f.readServers(n, c) }, shape{"$ref": "#/$defs/servers"}, ""}
	keys := settings{
		"$schema": {func(n node) { n.text() }, shape{"type": "string"}, "Where the schema of this file is, for editors. The bridge does not read it."},
		"listen": {func(n node) { c.Listen = readListen(n) }, listenShape(),
			`Addresses to listen on, "host:port" or "unix:///path", one or several in a list. Without authentication only addresses of this machine are taken.`},
		"allowedHosts": {func(n node) { c.AllowedHosts = readChecked(n, checkHost) }, list(shape{"minLength": 1, "pattern": `^[^/@?# \t\\]+$`}),
			`Names under which clients may reach the bridge besides those of this machine, such as "bridge.example", "bridge.example:8420" or "bridge.example:*". A request for any other Host is refused.`},
		"allowedOrigins": {func(n node) { c.AllowedOrigins = readChecked(n, checkOrigin) }, list(shape{"pattern": `^(null|[A-Za-z][A-Za-z0-9+.-]*://[^/?#@]+)$`}),
			`Web pages that may call the bridge, by origin, such as "https://app.example". A request from any other Origin is refused.`},
		"limits": object(limitKeys(&c.Limits), "What all servers together may use."),
		"log":    object(logKeys(&c.Log), "Where the log of the bridge goes."),
	}
	servers.doc = "The servers by name. Each is served at /servers/NAME/mcp."
	keys["mcpServers"] = servers
	servers.doc = "As mcpServers."
	keys["servers"] = servers
	for name, one := range placeKeys(c) {
		keys[name] = one
	}
	for _, name := range []string{"tls", "auth"} {
		keys[name] = setting{func(n node) { n.fail(unsupported) }, shape{"not": shape{}}, "Not supported yet by this version."}
	}
	return keys
}

// Longest times of limits.
const (
	maxQueueWait = 10 * time.Minute
	maxShutdown  = 10 * time.Minute
)

func limitKeys(l *Limits) settings {
	return settings{
		"bodyBytes":      integer(&l.BodyBytes, 1024, 1<<30, "Longest HTTP body taken, in bytes."),
		"bodyTotalBytes": integer(&l.BodyTotal, 1<<20, 1<<36, "What the bodies of all requests under way may hold together, in bytes."),
		"lineBytes":      integer(&l.LineBytes, 1024, 1<<30, "Longest message taken from a server, in bytes."),
		"sessions":       integer(&l.Sessions, 1, 1_000_000, "Sessions open at once."),
		"processes":      integer(&l.Processes, 1, 10_000, "Server processes alive at once."),
		"sessionIdle":    duration(&l.SessionIdle, maxDuration, "A session that is not used for so long ends."),
		"sessionLife":    duration(&l.SessionLife, maxDuration, "No session lives longer, used or not."),
		"queueWait":      duration(&l.QueueWait, maxQueueWait, "How long a request may wait for a process when there are as many as allowed."),
		"shutdown":       duration(&l.Shutdown, maxShutdown, "How long open requests may go on when the bridge stops."),
	}
}

func logKeys(l *Log) settings {
	return settings{
		"level": oneOf(&l.Level, "Least severe events that are logged.", "trace", "debug", "info", "warn", "error"),
		"file":  text(&l.File, "File to log into instead of stderr."),
		"maxMB": integer(&l.MaxMB, 1, 100_000, "Size in megabytes at which a new log file is begun."),
		"keep":  integer(&l.Keep, 0, 1000, "How many old log files are kept."),
	}
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
