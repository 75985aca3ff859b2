package interop

import (
	"fmt"
	"strings"
	"testing"
)

// TestStdioHost runs the official Go client as a host that launches the bridge, pinned to each revision, in front of local servers of
// both eras and of a remote one (translation 18, F4 and F5).
func TestStdioHost(t *testing.T) {
	bridge, far := shop.Bridge(t), serveDemo(t)
	var entries []string
	for name, flag := range map[string]string{"dual": "", "legacy-only": `,"--legacy-only"`, "modern-only": `,"--modern-only"`} {
		entries = append(entries, fmt.Sprintf(`%q:{"command":%q,"args":["demo-server"%s]}`, name, bridge, flag))
	}
	house := shop.House(t, `"mcpServers":{`+strings.Join(entries, ",")+"}")
	for name, argv := range map[string][]string{
		"dual":           {"dual", "--config", house.Config},
		"legacy-only":    {"legacy-only", "--config", house.Config},
		"modern-only":    {"modern-only", "--config", house.Config},
		"remote":         {far.URL},
		"remote, legacy": {far.URL, "--protocol", "legacy"},
	} {
		for _, revision := range sdkRevisions {
			t.Run(name+"/"+revision, func(t *testing.T) {
				exerciseDemo(t, strings.Join(append([]string{"stdio", bridge, "connect"}, argv...), "\n"), revision)
			})
		}
	}
}

// TestEvents runs the official Go client over HTTP+SSE, pinned to each revision that has sessions, in front of local servers of both
// eras and of a remote one (translation 18, F3).
func TestEvents(t *testing.T) {
	bridge, far := shop.Bridge(t), serveDemo(t)
	house := shop.House(t, fmt.Sprintf(`"mcpServers":{"dual":{"command":%q,"args":["demo-server"]},"legacy-only":{"command":%q,"args":["demo-server","--legacy-only"]},
		"modern-only":{"command":%q,"args":["demo-server","--modern-only"]},"remote":{"url":%q}}`, bridge, bridge, bridge, far.URL))
	house.Start(t)
	for _, name := range []string{"dual", "legacy-only", "modern-only", "remote"} {
		for _, revision := range sdkRevisions[:len(sdkRevisions)-1] {
			t.Run(name+"/"+revision, func(t *testing.T) {
				exerciseDemo(t, "sse\n"+strings.TrimSuffix(house.URL(name), "mcp")+"sse", revision)
			})
		}
	}
}
