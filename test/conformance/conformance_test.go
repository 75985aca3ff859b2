package conformance

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"mcpbridge/test/internal/rig"
)

// targetEnv set to "direct" runs the suite against the fixture without the bridge,
// with empty baselines: it shows what the fixture and its SDK are worth.
const targetEnv = "MCPBRIDGE_CONFORMANCE_TARGET"

const (
	suiteEntry = "@modelcontextprotocol/conformance/dist/index.js"
	suiteLimit = 4 * time.Minute // one revision; it takes seconds if all is well
)

// revision is one requirement set of the suite.
type revision struct {
	name     string
	required int // how many scenarios it is known to require
	extra    []string
}

// The extra scenarios are run by the suite and not scored; here they count.
var revisions = []revision{
	{"2025-11-25", 30, []string{"server-session-lifecycle", "json-schema-2020-12"}},
	{"2026-07-28", 37, []string{"http-header-validation", "http-custom-header-server-validation", "json-schema-2020-12"}},
}

// kinds are the servers behind the bridge: one of both eras, and one that has never
// heard of 2026-07-28.
var kinds = map[string][]string{
	"dual":        nil,
	"legacy-only": {"-legacy-only"},
}

var shop *rig.Shop

func TestMain(m *testing.M) { os.Exit(rig.Run(m, &shop)) }

func TestServerRole(t *testing.T) {
	node, suite := shop.Node(t), shop.Peer(t, suiteEntry)
	fixture := shop.Build(t, "./test/fakemcp/conformance")
	for kind, flags := range kinds {
		for _, rev := range revisions {
			t.Run(kind+"/"+rev.name, func(t *testing.T) {
				var known baseline
				var server *rig.Server
				if os.Getenv(targetEnv) == "direct" {
					server = startDirect(t, fixture, kind, rev)
				} else {
					known = mustBaseline(t, kind, rev)
					server = shop.Serve(t, append([]string{fixture}, flags...)...)
				}
				outcomes := runSuite(t, node, suite, server.URL, rev)
				judge(t, scenarios(t, suite, rev), outcomes, known)
			})
		}
	}
}

func startDirect(t *testing.T, fixture, kind string, rev revision) *rig.Server {
	if kind != "dual" {
		t.Skip("with " + targetEnv + "=direct the fixture is run without the bridge, and its HTTP side always speaks both eras: kind " + kind + " is a way to run it behind the bridge only; run without " + targetEnv)
	}
	stateless := "-stateless=true"
	if rev.name < "2026-07-28" {
		stateless = "-stateless=false"
	}
	return rig.Start(t, func(addr string) []string { return []string{fixture, stateless, "-http", addr} })
}

func mustBaseline(t *testing.T, kind string, rev revision) baseline {
	t.Helper()
	known, err := readBaseline("baseline-" + kind + "-" + rev.name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// scenarios returns the names that count for a revision.
func scenarios(t *testing.T, suite string, rev revision) []string {
	t.Helper()
	file := filepath.Join(filepath.Dir(suite), "..", "requirements", rev.name+".yaml")
	names, err := requiredScenarios(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != rev.required {
		t.Fatalf("%s requires %d scenarios, want %d: is the pinned suite another one?", rev.name, len(names), rev.required)
	}
	return append(names, rev.extra...)
}

// runSuite runs the suite's scenarios of one revision. Its exit code is not asked:
// it does not know the baseline.
func runSuite(t *testing.T, node, suite, url string, rev revision) map[string]outcome {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), suiteLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, suite, "server", "--url", url, "--requirements", rev.name, "--output-dir", filepath.Join(dir, "results"))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("cannot run the suite: %v (%v)\n%s", err, ctx.Err(), out)
	}
	outcomes, err := readOutcomes(filepath.Join(dir, "results"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return outcomes
}

func judge(t *testing.T, names []string, outcomes map[string]outcome, known baseline) {
	t.Helper()
	passed := 0
	for _, n := range names {
		if outcomes[n].passed() {
			passed++
		}
	}
	t.Logf("%d of %d scenarios pass, %d are known to fail", passed, len(names), len(known))
	for _, complaint := range compare(names, outcomes, known) {
		t.Error(complaint)
	}
}
