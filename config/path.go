package config

import (
	"os"
	"path/filepath"
	"runtime"
)

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
	if dir := os.Getenv("ProgramData"); dir != "" {
		return dir
	}
	return `C:\ProgramData`
}
