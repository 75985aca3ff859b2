package config

import (
	"os"
	"path/filepath"
	"runtime"
)

// MaxControlBytes is the longest path of a control socket. Systems allow paths of 103 to 107 bytes for sockets.
const MaxControlBytes = 100

// DefaultPath is where the file is looked for when none is named: mcpbridge/config.json in the user's configuration
// folder ($XDG_CONFIG_HOME or ~/.config, ~/Library/Application Support on macOS, %AppData% on Windows), or in the
// machine's one for a service that has no home.
func DefaultPath() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		dir = machineDir()
	}
	return filepath.Join(dir, "mcpbridge", "config.json")
}

func machineDir() string {
	if runtime.GOOS != "windows" {
		return "/etc"
	}
	return programData(os.Getenv)
}

// DefaultStateDir is where state is kept when the file names no stateDir: $XDG_STATE_HOME/mcpbridge or
// ~/.local/state/mcpbridge, ~/Library/Application Support/mcpbridge/state on macOS, %LocalAppData%\mcpbridge on Windows.
// A service that has no home gets /var/lib/mcpbridge (%ProgramData%\mcpbridge\state on Windows).
func DefaultStateDir() string { return thisMachine().stateDir() }

// DefaultControl is where the control socket is when the file names neither control nor stateDir:
// $XDG_RUNTIME_DIR/mcpbridge.sock, /run/mcpbridge/mcpbridge.sock for root without one, else control.sock in the state
// folder.
func DefaultControl() string {
	m := thisMachine()
	return m.control(m.stateDir())
}

// machine is what the default places depend on.
type machine struct {
	system string // as runtime.GOOS
	root   bool
	getenv func(string) string
}

func thisMachine() machine {
	return machine{system: runtime.GOOS, root: os.Geteuid() == 0, getenv: os.Getenv}
}

func (m machine) stateDir() string {
	switch m.system {
	case "windows":
		if dir := m.getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "mcpbridge")
		}
		return filepath.Join(programData(m.getenv), "mcpbridge", "state")
	case "darwin", "ios":
		if home := m.home(); home != "" {
			return filepath.Join(home, "Library", "Application Support", "mcpbridge", "state")
		}
	default:
		// The XDG rules: a path that is not absolute is ignored.
		if dir := m.getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "mcpbridge")
		}
		if home := m.home(); home != "" {
			return filepath.Join(home, ".local", "state", "mcpbridge")
		}
	}
	return "/var/lib/mcpbridge"
}

// control is the path of the control socket of a bridge that keeps its state in stateDir.
func (m machine) control(stateDir string) string {
	if dir := m.getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "mcpbridge.sock")
	}
	switch {
	case !m.root:
		return filepath.Join(stateDir, "control.sock")
	case m.system == "darwin":
		return "/var/run/mcpbridge/mcpbridge.sock"
	}
	return "/run/mcpbridge/mcpbridge.sock"
}

// home is the user's folder, "" for none. Users without one are given the root folder by some systems.
func (m machine) home() string {
	if home := m.getenv("HOME"); filepath.IsAbs(home) && filepath.Clean(home) != "/" {
		return home
	}
	return ""
}

func programData(getenv func(string) string) string {
	if dir := getenv("ProgramData"); dir != "" {
		return dir
	}
	return `C:\ProgramData`
}
