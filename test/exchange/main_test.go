// Package exchange tests the whole program from outside: a daemon with real listeners, real child processes behind it,
// and clients that send and compare bytes. Each test says which requirement, issue point or field case it holds.
package exchange

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpbridge/config"
	"mcpbridge/test/internal/e2e"
	"mcpbridge/test/internal/rig"
)

var shop *rig.Shop

func TestMain(m *testing.M) {
	code := rig.Run(m, &shop)
	if code == 0 {
		if err := goleak.Find(); err != nil { // rule 5: nothing outlives the bridges
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// start runs a bridge before a fixture server with these arguments.
func start(t testing.TB, args ...string) *e2e.Bridge {
	t.Helper()
	return startWith(t, nil, args...)
}

func startWith(t testing.TB, edit func(*config.Config, *config.Server), args ...string) *e2e.Bridge {
	t.Helper()
	return e2e.Start(t, e2e.Options{Fixture: fixture(t), Args: args, Edit: func(c *config.Config, s *config.Server) {
		s.Restart.Initial = 20 * time.Millisecond // how long a crash is held against a server is tested elsewhere
		if edit != nil {
			edit(c, s)
		}
	}})
}

func fixture(t testing.TB) string {
	t.Helper()
	return shop.Build(t, "./test/fakemcp/fixture")
}

// shared puts all clients of a server on one process for each era.
func shared(_ *config.Config, s *config.Server) { s.Isolation = config.IsolationShared }
