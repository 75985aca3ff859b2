package config

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const examplePath = "testdata/example.jsonc"

// hiddenLine is a setting of the example that stands in a comment.
var hiddenLine = regexp.MustCompile(`(?m)^(\s*)// ("[A-Za-z]+":)`)

// The example can be used as it is, without a word of warning.
func TestExample(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	c, warnings, err := Parse(examplePath, []byte(read(t, examplePath)), none)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	for _, s := range c.Servers {
		if s.Problem != nil {
			t.Error(s.Problem)
		}
	}
	if len(c.Servers) != 3 || c.Servers[1].Path() != "My%20Notes" || c.Servers[1].Args[2] != "notes" {
		t.Errorf("%+v", c.Servers)
	}
}

// What the example says about defaults is true.
func TestExampleShowsDefaults(t *testing.T) {
	c, _, err := parse(t, read(t, examplePath))
	if err != nil {
		t.Fatal(err)
	}
	want := newConfig()
	if c.Limits != want.Limits || c.Log != want.Log || !slices.Equal(c.Listen, want.Listen) {
		t.Errorf("%+v", c)
	}
	files, server := c.Servers[0], newServer("files")
	server.Command, server.Args, server.Env, server.Mirror = files.Command, files.Args, files.Env, files.Mirror
	server.Isolation, server.Lazy, server.Spare = files.Isolation, files.Lazy, files.Spare
	sameServer(t, files, server)
}

// Also with the settings that stand in comments the example is right; on Windows absolute paths look different.
func TestExampleWithHiddenSettings(t *testing.T) {
	text := hiddenLine.ReplaceAllString(read(t, examplePath), "$1$2")
	if runtime.GOOS == "windows" {
		text = strings.NewReplacer(`"/var/`, `"C:/var/`, `"/run/`, `"C:/run/`).Replace(text)
	}
	text = strings.ReplaceAll(text, "MCPBRIDGE_KEY", "KEY")
	c, warnings, err := parse(t, text)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	if c.StateDir == "" || c.Control == "" || len(c.Keys) != 1 || c.Log.File == "" || c.Servers[0].Cwd == "" {
		t.Errorf("%+v", c)
	}
	if err := validate(t, text); err != nil {
		t.Error(err)
	}
}

// Every key is in the example, save those that this version does nothing with.
func TestExampleIsComplete(t *testing.T) {
	text := read(t, examplePath)
	f := &file{}
	keys := append(f.rootKeys(newConfig()).names(), (&entry{}).keys().names()...)
	for _, inner := range []settings{limitKeys(&Limits{}), logKeys(&Log{}), restartKeys(&Restart{}), cacheKeys(&Cache{})} {
		keys = append(keys, inner.names()...)
	}
	left := append(laterKeys().names(), "servers", "tls", "auth")
	for _, key := range keys {
		if strings.Contains(text, `"`+key+`":`) == slices.Contains(left, key) {
			t.Errorf("%s: in the example and of use must be the same", key)
		}
	}
}
