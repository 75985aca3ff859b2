package config

import (
	"slices"
)

// foreignKeys are what other programs put into the same files. They are expected and mean nothing here.
func foreignKeys() []string {
	return []string{
		// at an entry
		"autoApprove", "alwaysAllow", "description", "icon", "icons", "title", "id", "name", "gallery", "version", "envFile",
		"options", "toolFilter", "disabledTools", "enabledTools", "includeTools", "excludeTools", "trust", "oauthScopes",
		"metadata", "tags", "source", "dev", "sandbox", "timeoutMs", "provider", "quarantined", "created", "updated",
		// at the top
		"inputs", "globalShortcut", "preferences", "projects", "theme", "model",
	}
}

// foreignServers are the keys under which other programs keep their servers.
func foreignServers() []string {
	return []string{"mcp", "mcp.servers", "amp.mcpServers", "context_servers"}
}

// foreignRoot deals with keys at the top of the file that other programs write (case 89).
func (f *file) foreignRoot(m member, keys settings, c *Config) {
	switch {
	case slices.Contains(foreignServers(), m.name) && (m.kind() == '{' || m.kind() == '['):
		m.key.warn(`the key is read as "mcpServers"`)
		f.readForeignServers(m.node, c)
	case m.name == "mcpProxy":
		m.key.warn("the key is not used: no address, token or filter in it has any effect")
	default:
		m.reportForeign(keys)
	}
}

// readForeignServers takes entries, or an object that holds them and other things.
func (f *file) readForeignServers(n node, c *Config) {
	inner := false
	for _, name := range []string{"servers", "mcpServers"} {
		if n.has(name) {
			inner = true
			f.readServers(n.member(name), c)
		}
	}
	if !inner {
		f.readServers(n, c)
	}
}

// aliases are foreign keys of an entry that mean the same as one of ours.
func aliases() map[string]string {
	return map[string]string{
		"serverUrl": "url", "httpUrl": "url",
		"environment": "env",
		"transport":   "type", "transportType": "type",
		"working_dir": "cwd", "workingDir": "cwd", "workingDirectory": "cwd",
	}
}

// foreign deals with keys of an entry that other programs write. Those that mean the same as one of ours are used.
func (e *entry) foreign(m member, keys settings) {
	if ours, ok := aliases()[m.name]; ok {
		if e.has(ours) {
			m.key.warn("the key is not used beside %q", ours)
			return
		}
		m.key.warn("the key is read as %q", ours)
		keys[ours].read(m.node)
		return
	}
	switch m.name {
	case "enabled":
		if value, ok := m.boolean(); ok {
			e.enabled = &value
			m.key.warn(`the key is read; write "disabled" instead`)
		}
	case "autoApprove", "alwaysAllow":
		m.key.warn("the key is not used: hosts ask their users, a bridge cannot")
	case "toolFilter", "options", "disabledTools", "enabledTools", "includeTools", "excludeTools":
		m.key.warn("the key is not used: no tool is hidden and nothing is protected by it")
	case "name":
		if !e.listed {
			m.reportForeign(keys)
		}
	default:
		m.reportForeign(keys)
	}
}

// foreignProtocols are the transports that some hosts name under "protocol".
func foreignProtocols() []string {
	return []string{"stdio", "http", "sse", "streamable-http", "streamableHttp", "streamable_http"}
}

func (e *entry) readProtocol(n node) {
	if n.kind() == '"' && slices.Contains(foreignProtocols(), n.literal()) {
		n.warn(`the value is read as "type"`)
		e.readType(n)
		return
	}
	n.choose(&e.Protocol, "auto", "modern", "legacy")
}

func isolations() []string {
	return []string{IsolationSession, IsolationPrincipal, IsolationShared, IsolationRequest}
}

// readIsolation takes one of ours. Some hosts have an object with settings of containers here.
func (e *entry) readIsolation(n node) {
	if n.kind() == '{' {
		n.warn("an object is not used: the server is not put into a container")
		return
	}
	n.choose(&e.Isolation, isolations()...)
}

// reportForeign deals with a key that is none of ours: a likely misspelling is an error, anything else a warning, as
// people share these files between programs.
func (m member) reportForeign(keys settings) {
	if !slices.Contains(foreignKeys(), m.name) {
		if near := nearestOf(m.name, keys.names()); near != "" {
			m.key.fail("unknown key; did you mean %q?", near)
			return
		}
	}
	m.key.warn("the key is not used")
}
