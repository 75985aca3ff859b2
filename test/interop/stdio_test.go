package interop

import (
	"fmt"
	"strings"
	"testing"
)

// dual is a house with the demo server in both eras. What other servers are worth behind these fronts, test/matrix tells.
func dual(t *testing.T) (bridge, config, url string) {
	t.Helper()
	bridge = shop.Bridge(t)
	house := shop.House(t, fmt.Sprintf(`"mcpServers":{"dual":{"command":%q,"args":["demo-server"]}}`, bridge))
	house.Start(t)
	return bridge, house.Config, house.URL("dual")
}

// TestStdioHost runs the official Go client as a host that launches the bridge, pinned to each revision (translation 18, F4 and F5).
func TestStdioHost(t *testing.T) {
	bridge, config, _ := dual(t)
	for _, revision := range sdkRevisions {
		t.Run(revision, func(t *testing.T) {
			exerciseDemo(t, strings.Join([]string{"stdio", bridge, "connect", "dual", "--config", config}, "\n"), revision)
		})
	}
}

// TestEvents runs the official Go client over HTTP+SSE, pinned to each revision that has sessions (translation 18, F3).
func TestEvents(t *testing.T) {
	_, _, url := dual(t)
	for _, revision := range sdkRevisions[:len(sdkRevisions)-1] {
		t.Run(revision, func(t *testing.T) { exerciseDemo(t, "sse\n"+strings.TrimSuffix(url, "mcp")+"sse", revision) })
	}
}
