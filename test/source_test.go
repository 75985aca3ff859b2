package test

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// parse reads a Go file with its comments.
func parse(t *testing.T, name string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("cannot parse source: %v", err)
	}
	return f
}

// banned is a group of functions that only some files may name.
type banned struct {
	names []string // import path and function, with a dot between
	allow string   // pattern of the files, relative to the module
	why   string
}

func bans() []banned {
	return []banned{
		{
			names: []string{"os.Exit", "syscall.Exit", "golang.org/x/sys/unix.Exit", "log.Fatal", "log.Fatalf", "log.Fatalln"},
			allow: `^(cmd/mcpbridge/main\.go|procman/guard_[a-z]+\.go)$`,
			why:   "os.Exit skips every deferred clean-up and leaves children behind: return an error and let cmd/mcpbridge/main.go turn it into an exit code",
		},
		{
			names: []string{
				"os.StartProcess", "syscall.StartProcess", "syscall.ForkExec", "syscall.Exec", "golang.org/x/sys/unix.Exec",
				"golang.org/x/sys/windows.CreateProcess", "golang.org/x/sys/windows.CreateProcessAsUser",
			},
			allow: `^procman/`,
			why:   "processes are started by procman alone, since only it ends whole trees when the program dies: use its Spawner",
		},
	}
}

// judgeCalls lists what a product file at rel, relative to the module, names against the bans.
func judgeCalls(rel string, file *ast.File) []string {
	imports := make(map[string]string) // local name -> import path
	for _, spec := range file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		local := p[strings.LastIndex(p, "/")+1:]
		if spec.Name != nil {
			local = spec.Name.Name
		}
		imports[local] = p
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		name := imports[x.Name] + "." + sel.Sel.Name
		for _, b := range bans() {
			if slices.Contains(b.names, name) && !regexp.MustCompile(b.allow).MatchString(rel) {
				out = append(out, fmt.Sprintf("%s uses %s: %s", rel, name, b.why))
			}
		}
		return true
	})
	return out
}

// The program ends, and processes start, in one place each (design, section 3 and rule 5).
func TestCalls(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range graph(t) {
		if isTest(p.rel) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(p.sources)) {
			rel, err := filepath.Rel(root, name)
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range judgeCalls(filepath.ToSlash(rel), parse(t, name)) {
				t.Error(problem)
			}
		}
	}
}

func TestCallRules(t *testing.T) {
	const source = `package p
import ("os"; sys "syscall"; "log"; "golang.org/x/sys/unix")
func f(x struct{ os interface{ Exit(int) } }) { os.Exit(1); x.os.Exit(1); sys.ForkExec("", nil, nil); g(log.Fatalf); unix.Getpid(); os.Getpid() }`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		rel  string
		uses []string
	}{
		{"bridge/front/stream.go", []string{"os.Exit", "syscall.ForkExec", "log.Fatalf"}},
		{"cmd/mcpbridge/main.go", []string{"syscall.ForkExec"}},
		{"cmd/mcpbridge/root.go", []string{"os.Exit", "syscall.ForkExec", "log.Fatalf"}},
		{"procman/guard_unix.go", nil},
		{"procman/stop.go", []string{"os.Exit", "log.Fatalf"}},
	}
	for _, tt := range tests {
		got := judgeCalls(tt.rel, file)
		if len(got) != len(tt.uses) {
			t.Errorf("%s: got %q, want %q", tt.rel, got, tt.uses)
			continue
		}
		for i, use := range tt.uses {
			if !strings.Contains(got[i], " uses "+use+": ") {
				t.Errorf("%s: got %q, want %s", tt.rel, got[i], use)
			}
		}
	}
}

// traces are texts that only mean something on the machine a file was written on.
func traces() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"a path of one machine; use a relative path, a temporary folder or a variable": regexp.MustCompile(`(?m)(?:^|\W)/(?:work|root|farm)/`),
		"the host of a package registry; ordinary clients know theirs": regexp.MustCompile(
			`(?i)\b(?:registry\.[a-z0-9-]+\.[a-z]{2,}|registry-1\.docker\.io|(?:pypi|rubygems)\.org|files\.pythonhosted\.org|` +
				`(?:proxy|sum|index)\.golang\.org|goproxy\.(?:io|cn)|(?:static|index)\.crates\.io|repo1?\.maven\.(?:apache\.)?org)\b`),
		"a resolved download address; lock files go without (omit-lockfile-registry-resolved)": regexp.MustCompile(`"resolved":\s*"http`),
	}
}

// judgeText lists the traces in a text, with their lines.
func judgeText(text []byte) []string {
	var out []string
	for _, what := range slices.Sorted(maps.Keys(traces())) {
		for _, at := range traces()[what].FindAllIndex(text, -1) {
			line := 1 + bytes.Count(text[:at[1]], []byte("\n"))
			out = append(out, fmt.Sprintf("line %d holds %q, %s", line, bytes.TrimSpace(text[at[0]:at[1]]), what))
		}
	}
	return out
}

// No text file of the tree, known to version control or not, tells on which machine it was made. Folders that package
// managers fill are not ours.
func TestNoMachineTraces(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another test's temporary file
		} else if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || d.Name() == ".git" { // which is a file in a further working tree
			return nil
		}
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		if bytes.IndexByte(text[:min(len(text), 8192)], 0) >= 0 {
			return nil // not a text
		}
		files++
		for _, problem := range judgeText(text) {
			t.Errorf("%s: %s", name, problem)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("cannot read the tree: %v", err)
	}
	if files < 20 {
		t.Errorf("only %d text files were read: this test runs in the wrong folder", files)
	}
}

func TestTraceRules(t *testing.T) {
	// The samples are put together here so that this file does not hold them.
	slash := func(parts ...string) string { return strings.Join(parts, "/") }
	dot := func(parts ...string) string { return strings.Join(parts, ".") }
	bad := []string{
		slash("", "work", "x"), "cd " + slash("", "root", ".ssh"), "a\n" + slash("", "farm", ""), `"` + slash("", "work", "") + `"`, "file://" + slash("", "work", "a"),
		dot("registry", "npmjs", "org"), "https://" + dot("proxy", "golang", "org") + ",direct", dot("PyPI", "org"), `"resolved"` + `: "https://x.example/a.tgz"`,
	}
	for _, s := range bad {
		if got := judgeText([]byte("first\n" + s + "\nlast")); len(got) != 1 || !strings.HasPrefix(got[0], "line ") {
			t.Errorf("%q: got %q, want one problem", s, got)
		}
	}
	good := []string{
		"network/root/x", "/workspace/x", "/srv/work", "https://x.example/work/", "homework/", "the registry. It", "registry of tools",
		"image registry.k8s", `"resolved": "file:x"`, `"resolved": true`, "org.golang.proxy",
	}
	for _, s := range good {
		if got := judgeText([]byte(s)); len(got) != 0 {
			t.Errorf("%q: got %q, want none", s, got)
		}
	}
}
