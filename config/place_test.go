package config

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"mcpbridge/bridge/seal"
)

// machineOf is a machine with these variables.
func machineOf(system string, root bool, variables map[string]string) machine {
	return machine{system: system, root: root, getenv: func(name string) string { return variables[name] }}
}

func TestStateDir(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths of other systems")
	}
	type vars = map[string]string
	for _, c := range []struct {
		system string
		vars   vars
		want   string
	}{
		{"linux", vars{"HOME": "/home/u"}, "/home/u/.local/state/mcpbridge"},
		{"linux", vars{"HOME": "/home/u", "XDG_STATE_HOME": "/state"}, "/state/mcpbridge"},
		{"linux", vars{"HOME": "/home/u", "XDG_STATE_HOME": "state"}, "/home/u/.local/state/mcpbridge"},
		{"linux", vars{}, "/var/lib/mcpbridge"},
		{"linux", vars{"HOME": "/"}, "/var/lib/mcpbridge"},
		{"linux", vars{"HOME": "u"}, "/var/lib/mcpbridge"},
		{"linux", vars{"XDG_STATE_HOME": "/state"}, "/state/mcpbridge"},
		{"darwin", vars{"HOME": "/Users/u", "XDG_STATE_HOME": "/state"}, "/Users/u/Library/Application Support/mcpbridge/state"},
		{"darwin", vars{}, "/var/lib/mcpbridge"},
		{"windows", vars{"LocalAppData": "/L", "HOME": "/home/u"}, "/L/mcpbridge"},
		{"windows", vars{"ProgramData": "/P"}, "/P/mcpbridge/state"},
		{"windows", vars{}, `C:\ProgramData/mcpbridge/state`},
	} {
		if got := machineOf(c.system, false, c.vars).stateDir(); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.system, c.vars, got, c.want)
		}
	}
}

func TestControlPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths of other systems")
	}
	for _, c := range []struct {
		system, runtimeDir string
		root               bool
		want               string
	}{
		{"linux", "/run/user/1000", false, "/run/user/1000/mcpbridge.sock"},
		{"linux", "/run/user/0", true, "/run/user/0/mcpbridge.sock"},
		{"linux", "", true, "/run/mcpbridge/mcpbridge.sock"},
		{"linux", "", false, "/s/control.sock"},
		{"linux", "run", false, "/s/control.sock"},
		{"darwin", "", false, "/s/control.sock"},
		{"darwin", "", true, "/var/run/mcpbridge/mcpbridge.sock"},
		{"windows", "", false, "/s/control.sock"},
	} {
		m := machineOf(c.system, c.root, map[string]string{"XDG_RUNTIME_DIR": c.runtimeDir})
		if got := m.control("/s"); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// The defaults are those of this machine, and absolute.
func TestDefaultPlaces(t *testing.T) {
	if got := DefaultStateDir(); got != thisMachine().stateDir() || !filepath.IsAbs(got) {
		t.Error(got)
	}
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if got := DefaultControl(); got != filepath.Join(dir, "mcpbridge.sock") {
		t.Error(got)
	}
	t.Setenv("XDG_RUNTIME_DIR", "")
	if got := DefaultControl(); os.Geteuid() != 0 && got != filepath.Join(DefaultStateDir(), "control.sock") {
		t.Error(got)
	}
}

// pathOf spells an absolute path of n bytes for a file.
func pathOf(t *testing.T, n int) string {
	t.Helper()
	root := "/"
	if runtime.GOOS == "windows" {
		root = "C:/"
	}
	return root + strings.Repeat("x", n-len(root))
}

func TestPlacesOfTheFile(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	long := pathOf(t, MaxControlBytes)
	c := configOf(t, `{"control": "`+long+`", "stateDir": "`+pathOf(t, 9)+`"}`)
	if c.Control != long || c.StateDir != pathOf(t, 9) {
		t.Errorf("%+v", c)
	}
	_, _, err := parse(t, `{"control": "`+pathOf(t, MaxControlBytes+1)+`"}`)
	wantError(t, err, "c.json:1:13: control: must have at most 100 bytes: the paths of sockets are limited")
	c = configOf(t, `{"stateDir": "`+pathOf(t, 9)+`${TOKEN}"}`)
	if c.StateDir != pathOf(t, 9)+"s3cret" || c.Control != "" {
		t.Errorf("%+v", c)
	}
}

// Where the socket lies in the state folder it follows the folder of the file, whichever key comes first.
func TestControlFollowsStateDir(t *testing.T) {
	for _, root := range []bool{true, false} {
		m := machineOf("linux", root, nil)
		follow := func(text string) (*Config, error) { return settleFor(t, m, text) }
		c, err := follow(`{"stateDir": "` + pathOf(t, 9) + `"}`)
		want := ""
		if !root {
			want = filepath.Join(pathOf(t, 9), "control.sock")
		}
		if err != nil || c.Control != want {
			t.Errorf("root %v: %q, %v", root, c.Control, err)
		}
		for _, text := range []string{`{"stateDir": "` + pathOf(t, 9) + `", "control": "` + pathOf(t, 5) + `"}`, `{"control": "` + pathOf(t, 5) + `", "stateDir": "` + pathOf(t, 9) + `"}`} {
			if c, err := follow(text); err != nil || c.Control != pathOf(t, 5) {
				t.Errorf("root %v: %q, %v", root, c.Control, err)
			}
		}
		fits, tooLong := MaxControlBytes-len("/control.sock"), MaxControlBytes+1-len("/control.sock")
		if _, err := follow(`{"stateDir": "` + pathOf(t, fits) + `"}`); err != nil {
			t.Errorf("root %v: %v", root, err)
		}
		_, err = follow("{\n \"stateDir\": \"" + pathOf(t, tooLong) + `"}`)
		if root != (err == nil) {
			t.Errorf("root %v: %v", root, err)
		}
		if err != nil {
			contains(t, err.Error(), "c.json:2:14: stateDir: the path is too long to hold the control socket")
			contains(t, err.Error(), "has more than 100 bytes; set control to a shorter path")
		}
	}
}

// The keys are read in every spelling of 32 bytes, the first stays first, and no message and no view shows any of one.
func TestKeys(t *testing.T) {
	raw := make([]byte, 32)
	for i := range raw {
		raw[i] = byte(0xff - i) // base64 of it has the signs that differ between the alphabets
	}
	for _, good := range []string{testKey, strings.ToUpper(testKey), base64.StdEncoding.EncodeToString(raw), base64.RawStdEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw)} {
		c, _, err := parse(t, `{"keys": ["`+good+`"]}`)
		if err != nil || len(c.Keys) != 1 || c.Keys[0] != good {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{testKey[1:], testKey[2:], testKey + "0", testKey + "00", "x" + testKey[1:], base64.StdEncoding.EncodeToString(raw[1:]), base64.StdEncoding.EncodeToString(append(raw, 1)), "hunter2", ""} {
		_, _, err := parse(t, `{"keys": ["${KEY}", "`+bad+`"]}`)
		wantError(t, err, "c.json:1:21: keys[1]: must be 64 hexadecimal digits or 32 bytes in base64; `openssl rand -hex 32` makes one")
	}
	_, _, err := parse(t, `{"keys": ["${KEY}", "`+strings.ToUpper(testKey)+`"]}`)
	wantError(t, err, "c.json:1:21: keys[1]: the key stands twice")
	file := write(t, "key", testKey+"\n")
	if c := configOf(t, `{"keys": ["${file:`+filepath.ToSlash(file)+`}"]}`); c.Keys[0] != testKey {
		t.Errorf("from a file: %v", c.Keys)
	}
	if c := configOf(t, `{"keys": [`+repeat(`"%064d"`, seal.MaxKeys)+`]}`); len(c.Keys) != seal.MaxKeys || !strings.HasSuffix(c.Keys[1], "01") {
		t.Errorf("%v", c.Keys)
	}
	_, _, err = parse(t, `{"keys": [`+repeat(`"%064d"`, seal.MaxKeys+1)+`]}`)
	wantError(t, err, "c.json:1:10: keys: more than 16 keys")
}

func TestKeysAreNotShown(t *testing.T) {
	shown, err := json.Marshal(configOf(t, `{"keys": ["${KEY}", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]}`).Show())
	if err != nil || strings.Contains(string(shown), testKey) || strings.Contains(string(shown), "AAEC") {
		t.Errorf("%s, %v", shown, err)
	}
	contains(t, string(shown), `"keys":["***","***"]`)
}

// settleFor reads a file on machine m.
func settleFor(t *testing.T, m machine, text string) (*Config, error) {
	t.Helper()
	f := &file{name: "c.json", dir: ".", text: []byte(text), env: env, machine: m}
	root, failure := f.parse()
	if failure != nil {
		t.Fatal(failure)
	}
	c := newConfig()
	f.readRoot(root, c)
	if len(f.errs) > 0 {
		return c, f.errs
	}
	return c, nil
}
