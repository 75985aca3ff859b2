package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseChecks(t *testing.T) {
	for _, c := range []struct {
		name, in string
		passed   bool
	}{
		{"all good", `[{"id":"a","status":"SUCCESS"},{"id":"b","status":"INFO"}]`, true},
		{"a warning is no failure", `[{"id":"a","status":"SUCCESS"},{"id":"b","status":"WARNING"}]`, true},
		{"one failure", `[{"id":"a","status":"SUCCESS"},{"id":"b","status":"FAILURE","errorMessage":"no"}]`, false},
		{"nothing checked", `[]`, false},
		{"skipped only", `[{"id":"a","status":"SKIPPED"}]`, false},
	} {
		o, err := parseChecks([]byte(c.in))
		if err != nil || o.passed() != c.passed {
			t.Errorf("%s: passed = %v, %v; want %v", c.name, o.passed(), err, c.passed)
		}
	}
	if _, err := parseChecks([]byte(`{`)); err == nil {
		t.Error("truncated results were accepted")
	}
}

func TestReadOutcomesTakesTheScenarioFromTheFolder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"server-tools-list-2026-11-30T23-19-35-959Z":   `[{"id":"a","status":"SUCCESS"}]`,
		"server-server-stateless-2026-11-30T23-19-35Z": `[{"id":"b","status":"FAILURE","errorMessage":"no"}]`,
		"unrelated": ``,
	} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "checks.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readOutcomes(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || !got["tools-list"].passed() || got["server-stateless"].passed() {
		t.Errorf("got %v", got)
	}
}

func TestRequiredScenarios(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.yaml")
	text := "# server: no\n\nserver:\n  - a # why\n  - b\n\nclient:\n  - c\nnot_scored:\n  - scenario: d\n    leg: server\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := requiredScenarios(path)
	if err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestParseBaseline(t *testing.T) {
	got, err := parseBaseline("# comment\n\n a  because of b \n")
	if err != nil || len(got) != 1 || got["a"] != "because of b" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"a\n", "a why\na again\n"} {
		if _, err := parseBaseline(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestCompare(t *testing.T) {
	good, bad := outcome{successes: 1}, outcome{successes: 1, failures: []string{"x: y"}}
	for _, c := range []struct {
		name  string
		run   map[string]outcome
		known baseline
		want  string // in the only complaint; "" for none
	}{
		{"passes", map[string]outcome{"a": good}, nil, ""},
		{"fails as known", map[string]outcome{"a": bad}, baseline{"a": "r"}, ""},
		{"fails unexpectedly", map[string]outcome{"a": bad}, nil, "a failed"},
		{"passes against the list", map[string]outcome{"a": good}, baseline{"a": "r"}, "remove it from the baseline"},
		{"was not run", nil, nil, "not run"},
		{"lists a stranger", map[string]outcome{"a": good}, baseline{"z": "r"}, "no such scenario"},
	} {
		got := compare([]string{"a"}, c.run, c.known)
		ok := len(got) == 0
		if c.want != "" {
			ok = len(got) == 1 && strings.Contains(got[0], c.want)
		}
		if !ok {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
