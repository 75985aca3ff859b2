package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const testKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1e"

// env is the environment of the tests.
func env(name string) (string, bool) {
	value, ok := map[string]string{"TOKEN": "s3cret", "EMPTY": "", "HOST": "h.example", "KEY": testKey}[name]
	return value, ok
}

func parse(t *testing.T, text string) (*Config, []string, error) {
	t.Helper()
	c, warnings, err := Parse("c.json", []byte(text), env)
	var list []string
	for _, w := range warnings {
		list = append(list, w.String())
	}
	return c, list, err
}

// serverOf parses a file with the one server s of these members.
func serverOf(t *testing.T, members string) (Server, []string) {
	t.Helper()
	c, warnings, err := parse(t, `{"mcpServers":{"s":{`+members+`}}}`)
	if err != nil {
		t.Fatalf("%s: %v", members, err)
	}
	return c.Servers[0], warnings
}

// sameServer compares what is public.
func sameServer(t *testing.T, got, want Server) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Server{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
}

func plain(change func(*Server)) Server {
	s := newServer("s")
	s.Command = "x"
	change(&s)
	return s
}

// problem is the text of a server's problem, "" for none.
func problem(s Server) string {
	if s.Problem == nil {
		return ""
	}
	return s.Problem.Error()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	var list Errors
	if err == nil || !errors.As(err, &list) {
		t.Fatalf("got %v, want an Errors", err)
	}
	if err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
	var one *Error
	if !errors.As(err, &one) {
		t.Error("no *Error in it")
	}
}

func contains(t *testing.T, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) || want == "" && got != "" {
		t.Errorf("got %q, want %q in it", got, want)
	}
}

func repeat(format string, n int) string {
	var parts []string
	for i := range n {
		parts = append(parts, fmt.Sprintf(format, i))
	}
	return strings.Join(parts, ",")
}
