package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker in releases: -X main.version=1.2.3.
var version string

// buildVersion returns the version of this binary: what the linker set, else the module's, else "devel".
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

// buildFacts is what `version --json` prints.
type buildFacts struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readBuildFacts() buildFacts {
	facts := buildFacts{Version: buildVersion(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return facts
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			facts.Revision = setting.Value
		case "vcs.modified":
			facts.Modified = setting.Value == "true"
		}
	}
	return facts
}

func newVersionCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			facts := readBuildFacts()
			if g.json {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(facts)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "mcpbridge %s (%s, %s)\n", facts.Version, facts.Go, facts.Platform)
			return err
		},
	}
}
