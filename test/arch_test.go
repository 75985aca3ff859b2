// Package test holds the tests that look at the whole: this folder's own read the source tree and keep it in the shape
// it was designed in; the folders below run the program from outside. No product package imports anything from here.
package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "mcpbridge"

// systems are the platforms the program is built for; each has files, and so imports, of its own.
var systems = []string{"linux", "darwin", "windows"}

// pkg is a package as the go command lists it, merged over all systems.
type pkg struct {
	rel     string          // import path below the module, "." for its root
	dir     string          // folder
	imports map[string]bool // of product files
	sources map[string]bool // product files, absolute
	tests   map[string]bool // test files, absolute
}

// graph lists the packages of the module.
func graph(t *testing.T) []pkg {
	t.Helper()
	all := make(map[string]pkg)
	for _, system := range systems {
		cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Imports,GoFiles,TestGoFiles,XTestGoFiles", "./...")
		cmd.Dir = ".."
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		var problems bytes.Buffer
		cmd.Stderr = &problems
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("cannot list packages for %s: %v\n%s", system, err, &problems)
		}
		if err := merge(all, out); err != nil {
			t.Fatalf("cannot read the package list for %s: %v", system, err)
		}
	}
	if len(all) < 5 {
		t.Fatalf("go list found only %d packages: this test runs in the wrong folder", len(all))
	}
	return slices.SortedFunc(maps.Values(all), func(a, b pkg) int { return strings.Compare(a.rel, b.rel) })
}

func merge(all map[string]pkg, list []byte) error {
	dec := json.NewDecoder(bytes.NewReader(list))
	for {
		var p struct {
			ImportPath, Dir                             string
			Imports, GoFiles, TestGoFiles, XTestGoFiles []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		rel := relative(p.ImportPath)
		if _, ok := all[rel]; !ok {
			all[rel] = pkg{rel, p.Dir, map[string]bool{}, map[string]bool{}, map[string]bool{}}
		}
		for _, i := range p.Imports {
			all[rel].imports[i] = true
		}
		for _, f := range p.GoFiles {
			all[rel].sources[filepath.Join(p.Dir, f)] = true
		}
		for _, f := range append(p.TestGoFiles, p.XTestGoFiles...) {
			all[rel].tests[filepath.Join(p.Dir, f)] = true
		}
	}
}

// relative cuts the module off an import path of ours, "" for one of others.
func relative(importPath string) string {
	if importPath == module {
		return "."
	}
	rel, ok := strings.CutPrefix(importPath, module+"/")
	if !ok {
		return ""
	}
	return rel
}

// within reports whether a package path is tree or lies below it.
func within(p, tree string) bool { return p == tree || strings.HasPrefix(p, tree+"/") }

// middle is the middle floor. Its rooms do not know each other.
var middle = []string{"front", "back", "pool", "session", "parked", "policy", "auth", "login", "admin", "telemetry"}

// lower is what the middle floor may stand on.
var lower = []string{"bridge", "era", "mirror", "mcp", "mask", "seal", "framing", "sse"}

// rooms says for each room what it may import of ours, itself and the folders below it apart.
func rooms() map[string][]string {
	r := map[string][]string{
		"framing": nil,
		"sse":     {"framing"},
		"procman": nil,
		"mcp":     {"framing"},
		"era":     {"mcp", "framing"},
		"mirror":  {"mcp", "framing"},
		"mask":    nil,
		"seal":    nil,
		"bridge":  {"era", "mirror", "mcp", "framing"},
		"config":  lower,
	}
	for _, m := range middle {
		r[m] = lower
	}
	r["back"] = append(slices.Clone(lower), "procman")
	r["daemon"] = append(append(slices.Clone(lower), middle...), "procman", "config")
	r["cmd"] = append(slices.Clone(r["daemon"]), "daemon")
	return r
}

// roomOf names the room of a package of ours: the first folder of its path, or the second where the first only groups
// rooms. "" is a package that has no room yet.
func roomOf(rel string) string {
	known := rooms()
	first, rest, _ := strings.Cut(rel, "/")
	second, _, _ := strings.Cut(rest, "/")
	if first == "framing" || first == "bridge" {
		if _, ok := known[second]; ok {
			return second
		}
		if rest != "" {
			return ""
		}
	}
	if _, ok := known[first]; ok {
		return first
	}
	return ""
}

// isTest reports whether a package of ours exists for tests only.
func isTest(rel string) bool { return within(rel, "test") }

// judgeImport says what is wrong with one import of a product package, "" if nothing is.
func judgeImport(rel, imported string) string {
	if rule := judgeForeign(rel, imported); rule != "" {
		return rule
	}
	to := relative(imported)
	if to == "" {
		return ""
	}
	if isTest(to) {
		return "packages below test/ exist for tests; product code must not need them"
	}
	room, target := roomOf(rel), roomOf(to)
	if room == "" {
		return "this package has no room yet: find out which floor it belongs to and add it to rooms() in test/arch_test.go"
	}
	if room == target || slices.Contains(rooms()[room], target) {
		return ""
	}
	switch {
	case room == "framing" || room == "procman":
		return room + " is a leaf: it imports nothing of ours, so that it can be understood and tested alone. Hand it what it needs as a parameter"
	case target == "procman":
		return "only back starts processes: reach them through a back, or through an interface that daemon connects"
	case slices.Contains(middle, room) && slices.Contains(middle, target):
		return "both are on the middle floor, and its rooms do not know each other: declare a small interface in package bridge " +
			"(or where it is used) and let daemon connect them"
	case slices.Contains(middle, room) && target == "config":
		return "the whole configuration is not passed around: take a small options struct of your own and let daemon fill it"
	case room == "mcp" || room == "era" || room == "mirror":
		return "vocabulary, translation and mirroring are pure: era and mirror stand on mcp and framing, mcp on framing, and on nothing else of ours"
	case room == "bridge":
		return "the core stands on era, mirror, mcp and framing only: declare the interface it needs in bridge and let daemon connect the rest"
	}
	return "imports point one way: cmd -> daemon -> middle floor -> bridge -> era, mirror, mcp -> framing; back -> procman. " +
		"Move the shared part down, or turn the call round with an interface"
}

// foreign is an import of others that only some rooms may have.
type foreign struct {
	tree  string                      // import path, with all below it
	allow func(rel, room string) bool // packages that may import it
	why   string
}

func only(rooms ...string) func(rel, room string) bool {
	return func(_, room string) bool { return slices.Contains(rooms, room) }
}

func except(rooms ...string) func(rel, room string) bool {
	return func(_, room string) bool { return !slices.Contains(rooms, room) }
}

const sdk = "github.com/modelcontextprotocol/go-sdk"

// restricted lists such imports.
func restricted() []foreign {
	list := []foreign{
		{"net/http", only("front", "back", "admin", "auth", "login", "telemetry", "daemon", "cmd"),
			"HTTP is spoken by fronts, backs and the rooms around them alone; the core and what is below it do not know it. Take or return plain values"},
		{"os/exec", only("procman"),
			"processes are started by procman alone, since only it ends whole trees when the program dies. Use its Spawner"},
		{"encoding/json", except("framing", "sse", "bridge", "mcp", "era", "mirror", "front", "back", "pool", "session"),
			"messages are never decoded into values and encoded again: bytes pass. Read spans and splice with package framing"},
		{"testing", only(), "this package is for tests; put the helper into a test file or below test/"},
		{sdk, func(_, room string) bool { return false },
			"an SDK's types lose what they do not model; the official SDK is a peer in tests. (Its auth and oauthex packages are open to auth and login)"},
	}
	for _, p := range []string{"pgregory.net/rapid", "go.uber.org/goleak", "github.com/google/go-cmp", "github.com/rogpeppe/go-internal", "github.com/tmaxmax/go-sse"} {
		list = append(list, foreign{p, only(), "this module is for tests; product code must not need it"})
	}
	return list
}

func judgeForeign(rel, imported string) string {
	room := roomOf(rel)
	if (within(imported, sdk+"/auth") || within(imported, sdk+"/oauthex")) && (room == "auth" || room == "login") {
		return ""
	}
	for _, f := range restricted() {
		if within(imported, f.tree) && !f.allow(rel, room) {
			return f.why
		}
	}
	return ""
}

// Imports point one way (design, section 3).
func TestImports(t *testing.T) {
	for _, p := range graph(t) {
		if isTest(p.rel) {
			continue
		}
		for _, imported := range slices.Sorted(maps.Keys(p.imports)) {
			if rule := judgeImport(p.rel, imported); rule != "" {
				t.Errorf("%s imports %s: %s", p.rel, imported, rule)
			}
		}
		if roomOf(p.rel) == "" {
			t.Errorf("%s has no room: find out which floor it belongs to and add it to rooms() in test/arch_test.go", p.rel)
		}
	}
}

// Each rule bites, and none bites where it should not.
func TestImportRules(t *testing.T) {
	tests := []struct {
		rel, imported string
		says          string // "" is allowed
	}{
		{"framing", "mcpbridge/bridge/mcp", "leaf"},
		{"framing", "mcpbridge/framing/sse", "leaf"},
		{"framing", "bytes", ""},
		{"framing/sse", "mcpbridge/framing", ""},
		{"framing/sse", "mcpbridge/bridge", "one way"},
		{"procman", "mcpbridge/framing", "leaf"},
		{"procman", "os/exec", ""},
		{"bridge/mcp", "mcpbridge/framing", ""},
		{"bridge/mcp", "mcpbridge/bridge/era", "pure"},
		{"bridge/era", "mcpbridge/bridge/mcp", ""},
		{"bridge/era", "mcpbridge/bridge/mirror", "pure"},
		{"bridge/mirror", "mcpbridge/bridge", "pure"},
		{"bridge", "mcpbridge/bridge/era", ""},
		{"bridge", "mcpbridge/framing/sse", "core"},
		{"bridge", "mcpbridge/bridge/front", "core"},
		{"bridge", "mcpbridge/procman", "only back"},
		{"bridge/front", "mcpbridge/bridge", ""},
		{"bridge/front", "mcpbridge/framing/sse", ""},
		{"bridge/front", "mcpbridge/bridge/back", "middle floor"},
		{"front", "mcpbridge/session", "middle floor"},
		{"bridge/front", "mcpbridge/config", "options"},
		{"bridge/front", "mcpbridge/daemon", "one way"},
		{"bridge/front", "mcpbridge/procman", "only back"},
		{"bridge/back", "mcpbridge/procman", ""},
		{"bridge/admin/client", "mcpbridge/bridge/admin", ""},
		{"bridge/admin/client", "mcpbridge/bridge/pool", "middle floor"},
		{"config", "mcpbridge/bridge/mcp", ""},
		{"config", "mcpbridge/bridge/policy", "one way"},
		{"daemon", "mcpbridge/bridge/front", ""},
		{"daemon", "mcpbridge/config", ""},
		{"daemon", "mcpbridge/cmd/mcpbridge/demo", "one way"},
		{"cmd/mcpbridge", "mcpbridge/cmd/mcpbridge/demo", ""},
		{"cmd/mcpbridge", "mcpbridge/daemon", ""},
		{"cmd/mcpbridge", "mcpbridge/test/vectors", "test"},
		{"helpers", "mcpbridge/framing", "no room"},
		{"bridge/helpers", "mcpbridge/framing", "no room"},
		{"daemon", "mcpbridge/helpers", "one way"},

		{"bridge", "net/http", "HTTP"},
		{"bridge/pool", "net/http/httptest", "HTTP"},
		{"bridge/front", "net/http", ""},
		{"bridge/front", "net/httpx", ""},
		{"cmd/mcpbridge/demo", "net/http", ""},
		{"bridge/back", "os/exec", "procman"},
		{"bridge/session", "encoding/json", "bytes pass"},
		{"bridge/front", "encoding/json/jsontext", "bytes pass"},
		{"config", "encoding/json", ""},
		{"bridge/front", sdk + "/mcp", "SDK"},
		{"bridge/front", sdk + "/auth", "SDK"},
		{"bridge/auth", sdk + "/mcp", "SDK"},
		{"bridge/auth", sdk + "/auth", ""},
		{"bridge/login", sdk + "/oauthex", ""},
		{"daemon", "pgregory.net/rapid", "tests"},
		{"daemon", "testing", "tests"},
		{"daemon", "github.com/rs/zerolog", ""},
	}
	for _, tt := range tests {
		got := judgeImport(tt.rel, tt.imported)
		if (got == "") != (tt.says == "") || !strings.Contains(got, tt.says) {
			t.Errorf("%s imports %s: got %q, want a message with %q", tt.rel, tt.imported, got, tt.says)
		}
	}
}

// Each package says what it owns (design, section 3).
func TestPackageComments(t *testing.T) {
	for _, p := range graph(t) {
		files := slices.Concat(slices.Sorted(maps.Keys(p.sources)), slices.Sorted(maps.Keys(p.tests)))
		if problem := judgeComment(t, files); problem != "" {
			t.Errorf("%s: %s", p.rel, problem)
		}
	}
}

// judgeComment says what is wrong with the package comment in a package's files, "" if nothing is.
func judgeComment(t *testing.T, files []string) string {
	t.Helper()
	var comments []string
	for _, f := range files {
		file := parse(t, f)
		if file.Doc == nil {
			continue
		}
		text := strings.TrimSpace(file.Doc.Text())
		name := file.Name.Name
		start := "Package " + strings.TrimSuffix(name, "_test") + " "
		if name == "main" {
			start = "Command "
		}
		if !strings.HasPrefix(text, start) {
			return fmt.Sprintf("the package comment in %s must start with %q", path.Base(filepath.ToSlash(f)), start)
		}
		comments = append(comments, path.Base(filepath.ToSlash(f)))
	}
	switch len(comments) {
	case 0:
		return "there is no package comment: say above a package clause what the package owns and what it must not know"
	case 1:
		return ""
	}
	return "there are several package comments, in " + strings.Join(comments, " and ") + ": keep one, in the file a reader opens first"
}
