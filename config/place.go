package config

import (
	"path/filepath"
	"slices"

	"mcpbridge/bridge/seal"
)

// placeKeys say where the bridge keeps what outlives a run, how it is controlled and what it seals with.
func placeKeys(c *Config) settings {
	return settings{
		"stateDir": {func(n node) { c.StateDir = n.absolute() }, shape{"type": "string", "minLength": 1},
			"Folder for what outlives a run: the key that seals sessions, what sessions have set, logs of servers. An absolute path that no other bridge uses. " +
				"Without it $XDG_STATE_HOME/mcpbridge or ~/.local/state/mcpbridge, ~/Library/Application Support/mcpbridge/state on macOS, %LocalAppData%\\mcpbridge on Windows, /var/lib/mcpbridge for services that have no home."},
		"control": {func(n node) { c.Control = n.control() }, shape{"type": "string", "minLength": 1, "maxLength": MaxControlBytes},
			"Socket that status, logs, restart, reload and drain use. An absolute path of at most 100 bytes. " +
				"Without it $XDG_RUNTIME_DIR/mcpbridge.sock, /run/mcpbridge/mcpbridge.sock for root, or control.sock in the state folder."},
		"keys": {func(n node) { c.Keys = n.masterKeys() }, keysShape(),
			"Master keys for bridges that share their sessions, instead of the one in the state folder. The first seals, all open: put a new one in front and remove the old one when its sessions have ended. " +
				"Each has 32 bytes, as 64 hexadecimal digits or in base64. Keep them out of this file with ${env:NAME} or ${file:PATH}."},
	}
}

func keysShape() shape {
	form := list(shape{"minLength": 1})
	form["minItems"], form["maxItems"], form["uniqueItems"] = 1, seal.MaxKeys, true
	return form
}

// settleControl finds the place of the control socket where that depends on the state folder of the file.
func (n node) settleControl(c *Config) {
	if c.StateDir == "" || c.Control != "" {
		return
	}
	machine := n.file.machine
	socket := machine.control(c.StateDir)
	if socket == machine.control(machine.stateDir()) {
		return
	}
	if len(socket) > MaxControlBytes {
		n.member("stateDir").fail("the path is too long to hold the control socket: %s has more than %d bytes; set control to a shorter path", socket, MaxControlBytes)
		return
	}
	c.Control = socket
}

// absolute reads the path of a place.
func (n node) absolute() string {
	before := len(*n.errs)
	path, _ := n.expanded()
	if len(*n.errs) == before && !filepath.IsAbs(path) {
		n.fail("must be an absolute path")
	}
	return path
}

// control reads the path of a socket.
func (n node) control() string {
	path := n.absolute()
	if len(path) > MaxControlBytes {
		n.fail("must have at most %d bytes: the paths of sockets are limited", MaxControlBytes)
	}
	return path
}

// masterKeys reads the list of keys. No message shows any of one.
func (n node) masterKeys() []string {
	elements := n.elements()
	switch {
	case n.kind() == '[' && len(elements) == 0:
		n.fail("must name at least one key; remove it to use the key in the state folder")
	case len(elements) > seal.MaxKeys:
		n.fail("more than %d keys", seal.MaxKeys)
		return nil
	}
	var texts, keys []string
	for _, e := range elements {
		before := len(*n.errs)
		text, _ := e.expanded()
		if len(*n.errs) > before {
			continue
		}
		key, err := seal.ParseKey(text)
		switch {
		case err != nil:
			e.fail("must be 64 hexadecimal digits or 32 bytes in base64; `openssl rand -hex 32` makes one")
		case slices.Contains(keys, string(key[:])):
			e.fail("the key stands twice")
		}
		keys, texts = append(keys, string(key[:])), append(texts, text)
	}
	return texts
}
