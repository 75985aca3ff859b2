package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// BridgePackage is the bridge's main package; BridgeEnv names a variable with the
// path of a bridge binary to test instead of one built from the checkout.
const (
	BridgePackage = "./cmd/mcpbridge"
	BridgeEnv     = "MCPBRIDGE_TEST_BINARY"
)

// Shop builds binaries, each at most once, into a directory of its own.
// It is safe for concurrent use.
type Shop struct {
	root, dir string
	mu        sync.Mutex
	built     map[string]error
}

// Run opens a shop, runs the tests and removes what was built; it returns the exit
// code for os.Exit. For TestMain.
func Run(m *testing.M, shop **Shop) int {
	s, err := open()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot prepare black-box tests:", err)
		return 1
	}
	defer os.RemoveAll(s.dir)
	*shop = s
	return m.Run()
}

func open() (*Shop, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mcpbridge-test-")
	if err != nil {
		return nil, err
	}
	return &Shop{root: root, dir: dir, built: map[string]error{}}, nil
}

// moduleRoot is the nearest folder above that holds go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("cannot find go.mod above the working directory")
		}
		dir = up
	}
}

// Bridge returns the path of the bridge binary. Under the race detector the bridge
// is built with it too.
func (s *Shop) Bridge(t testing.TB) string {
	t.Helper()
	if given := os.Getenv(BridgeEnv); given != "" {
		return given
	}
	return s.Build(t, BridgePackage)
}

// Build returns the path of the binary of a main package named from the module's root.
func (s *Shop) Build(t testing.TB, pkg string) string {
	t.Helper()
	bin := filepath.Join(s.dir, filepath.Base(pkg))
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err, done := s.built[pkg]
	if !done {
		err = s.build(pkg, bin)
		s.built[pkg] = err
	}
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

func (s *Shop) build(pkg, bin string) error {
	args := []string{"build", "-o", bin}
	if raceEnabled && pkg == BridgePackage {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = s.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s: %w\n%s", pkg, err, out)
	}
	return nil
}
