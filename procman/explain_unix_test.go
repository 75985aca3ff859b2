//go:build unix

package procman_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpbridge/procman"
)

// write makes a file and returns its path.
func write(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// Cases 95, 101, 102: each failure has its own message, which says what to do; all of these are permanent.
func TestStartFailuresExplain(t *testing.T) {
	dir := t.TempDir()
	tool := write(t, dir, "tool", "#!/bin/sh\n", 0o755)
	plain := write(t, dir, "plain", "#!/bin/sh\n", 0o644)
	text := write(t, dir, "text", "echo hello\n", 0o755)
	empty := write(t, dir, "empty", "", 0o755)
	binary := write(t, dir, "binary", "\x00\x01\x02\x03 not a program", 0o755)
	lost := write(t, dir, "lost", "#!/nosuch/node -x\n", 0o755)
	crlf := write(t, dir, "crlf", "#!/bin/sh\r\n", 0o755)
	tests := []struct {
		name string
		spec procman.Spec
		want []string
	}{
		{"missing in PATH", procman.Spec{Command: "nosuchtool", Env: []string{"PATH=/nosuch:" + dir}}, []string{`"nosuchtool" not found`, "PATH searched: /nosuch:" + dir, `set PATH in the "env"`}},
		{"no PATH", procman.Spec{Command: "nosuchtool"}, []string{"PATH is not set"}},
		{"missing path", procman.Spec{Command: dir + "/nosuch"}, []string{"not found", "looked for " + dir + "/nosuch"}},
		{"missing relative path", procman.Spec{Command: "./nosuch", Dir: dir}, []string{"looked for " + dir + "/nosuch"}},
		{"tilde", procman.Spec{Command: "~/bin/x"}, []string{"~ is not expanded"}},
		{"none", procman.Spec{}, []string{"no command"}},
		{"not executable", procman.Spec{Command: plain}, []string{plain + " is not executable", "chmod +x"}},
		{"not executable in PATH", procman.Spec{Command: "plain", Env: []string{"PATH=" + dir}}, []string{plain + " is not executable"}},
		{"directory", procman.Spec{Command: dir}, []string{dir + " is a directory"}},
		{"no such cwd", procman.Spec{Command: tool, Dir: dir + "/nosuch"}, []string{"working directory " + dir + "/nosuch does not exist", `"cwd"`}},
		{"cwd is a file", procman.Spec{Command: tool, Dir: plain}, []string{"working directory " + plain + " is not a directory"}},
		{"text without first line", procman.Spec{Command: text}, []string{"format", "#!/bin/sh"}},
		{"empty file", procman.Spec{Command: empty}, []string{"the file is empty"}},
		{"foreign binary", procman.Spec{Command: binary}, []string{"format", "another system or processor"}},
		{"missing interpreter", procman.Spec{Command: lost}, []string{`the interpreter "/nosuch/node"`, lost, "missing"}},
		{"interpreter with a carriage return", procman.Spec{Command: crlf}, []string{`"/bin/sh\r"`}},
		{"one line", procman.Spec{Command: "npx -y @x/y", Args: []string{"/srv"}, Env: []string{"PATH=/bin"}}, []string{`"command": "npx", "args": ["-y","@x/y","/srv"]`}},
		{"variables in front", procman.Spec{Command: `NODE_ENV=production node "a b.js"`}, []string{`"command": "node", "args": ["a b.js"], "env": {"NODE_ENV":"production"}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Name = "files"
			p, err := procman.OS().Spawn(tt.spec)
			if err == nil {
				awaitEnd(t, p)
				t.Fatal("it started")
			}
			start, ok := errors.AsType[*procman.StartError](err)
			if !ok || !start.Permanent || start.Spec.Name != "files" {
				t.Errorf("error %#v, want a permanent StartError", err)
			}
			if !strings.HasPrefix(err.Error(), "cannot start files: ") {
				t.Errorf("error %q", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

// Secrets do not get into messages, not even when they stand where a command should.
func TestStartErrorsHideSecrets(t *testing.T) {
	for _, spec := range []procman.Spec{
		{Command: "API_KEY=hunter2 npx -y x"},
		{Command: "npx --token hunter2 x"},
		{Command: "npx --token=hunter2 x"},
		{Command: "nosuch", Args: []string{"--password", "hunter2"}, Env: []string{"SECRET=hunter2"}},
	} {
		_, err := procman.OS().Spawn(spec)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v", err)
		}
		if start, ok := errors.AsType[*procman.StartError](err); !ok || start.Spec.Args != nil || start.Spec.Env != nil || strings.Contains(start.Spec.Command, "hunter2") {
			t.Errorf("error carries %+v", start)
		}
	}
}

func TestCauseIsThere(t *testing.T) {
	if _, err := procman.OS().Spawn(procman.Spec{Command: "/nosuch/x"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v is not fs.ErrNotExist", err)
	}
	if _, err := procman.OS().Spawn(procman.Spec{Command: write(t, t.TempDir(), "x", "", 0o600)}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error %v is not fs.ErrPermission", err)
	}
}

// Case 95: the PATH of the entry finds the command, the first directory wins, and relative directories count for nothing.
func TestCommandIsLookedUpInTheChildsPath(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	write(t, first, "tool", "#!/bin/sh\necho first\n", 0o755)
	write(t, second, "tool", "#!/bin/sh\necho second\n", 0o755)
	t.Chdir(second)
	p := spawn(t, procman.Spec{Name: "x", Command: "tool", Env: []string{"PATH=.::" + first + ":" + second}})
	if out := readAll(t, p); out != "first\n" {
		t.Errorf("got %q", out)
	}
}

// A relative command counts from cwd, also for the look-up.
func TestRelativeCommandCountsFromDir(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "tool", "#!/bin/sh\npwd\n", 0o755)
	p := spawn(t, procman.Spec{Name: "x", Command: "./tool", Dir: dir})
	want, _ := filepath.EvalSymlinks(dir)
	if out := strings.TrimSpace(readAll(t, p)); out != want && out != dir {
		t.Errorf("got %q", out)
	}
}

// A program may be named with spaces; the command is never split.
func TestCommandWithSpacesThatExists(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "my tool", "#!/bin/sh\necho ok\n", 0o755)
	if out := readAll(t, spawn(t, procman.Spec{Name: "x", Command: path})); out != "ok\n" {
		t.Errorf("got %q", out)
	}
}
