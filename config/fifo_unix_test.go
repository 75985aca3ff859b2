//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What is no regular file is not waited for: a pipe that nobody writes to would keep a reload, and the end of the bridge, waiting
// for ever.
func TestPipesAreRefused(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("skipped: this file system has no named pipes: %v", err)
	}
	if _, _, err := Load(pipe); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a configuration: %v", err)
	}
	file := filepath.Join(dir, "mcp.json")
	text := `{"mcpServers": {"a": {"command": "x", "env": {"T": "${file:pipe}"}}, "b": {"command": "y"}}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Servers[0].Problem; p == nil || !strings.Contains(p.Error(), "no regular file") || c.Servers[1].Problem != nil {
		t.Errorf("problems %v and %v", p, c.Servers[1].Problem)
	}
}

// A secret that stands in env is not shown in args either (SEC-09).
func TestArgsHideWhatEnvHolds(t *testing.T) {
	c, _, err := Parse("f", []byte(`{"mcpServers": {"a": {"command": "x", "args": ["--token=hunter22", "plain"], "env": {"T": "hunter22"}}}}`), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	if args := c.Show().Servers["a"].Args; strings.Join(args, " ") != "--token=*** plain" {
		t.Errorf("args %q", args)
	}
}
