package main

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the scripts run this binary as mcpbridge.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mcpbridge": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			env.Setenv("AppData", filepath.Join(env.WorkDir, "config"))
			return nil
		},
	})
}
