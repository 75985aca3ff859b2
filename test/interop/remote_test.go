package interop

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"mcpbridge/test/internal/rig"
)

// near runs a bridge with remote servers: name, then the members of its entry. It returns the URL of each.
func near(t *testing.T, entries map[string]string) func(name string) string {
	t.Helper()
	var list []string
	for name, members := range entries {
		list = append(list, fmt.Sprintf("%q: {%s}", name, members))
	}
	house := shop.House(t, `"mcpServers": {`+strings.Join(list, ",")+`}`)
	tenant := house.Start(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the near bridge:\n%s", tenant.Log())
		}
	})
	return house.URL
}

func remoteAt(url, more string) string { return fmt.Sprintf(`"url": %q%s`, url, more) }

// TestRemoteBridge runs the official Go client, pinned to each revision, against a bridge whose server is another bridge: in the
// modern era, in the legacy one, and in the one that is found out (translation 18, B3 and B4).
func TestRemoteBridge(t *testing.T) {
	far := serveDemo(t)
	url := near(t, map[string]string{"auto": remoteAt(far.URL, ""), "modern": remoteAt(far.URL, `, "protocol": "modern"`),
		"legacy": remoteAt(far.URL, `, "protocol": "legacy"`)})
	for _, revision := range sdkRevisions {
		t.Run("auto/"+revision, func(t *testing.T) { exerciseDemo(t, url("auto"), revision) })
		t.Run("modern/"+revision, func(t *testing.T) { exerciseDemo(t, url("modern"), revision) })
		t.Run("legacy/"+revision, func(t *testing.T) { exerciseDemo(t, url("legacy"), revision) })
	}
}

// TestRemoteEverything has clients of Node in front of a remote server that is Node's too, over both of its HTTP transports (B4, B5).
func TestRemoteEverything(t *testing.T) {
	for _, mode := range []struct{ kind, path, more string }{
		{"streamableHttp", "/mcp", ""}, {"sse", "/sse", ""}, {"sse", "/sse", `, "type": "sse"`},
	} {
		t.Run(mode.kind+mode.more, func(t *testing.T) {
			command, _ := everything(t)
			far := rig.Start(t, func(addr string) []string {
				_, port, _ := net.SplitHostPort(addr)
				return append(append([]string{"env", "PORT=" + port}, command...), mode.kind)
			})
			url := near(t, map[string]string{"far": remoteAt(strings.TrimSuffix(far.URL, "/mcp")+mode.path, mode.more)})
			clients := nodeClients
			if mode.more != "" { // the same server, reached in another way
				clients = clients[2:]
			}
			for _, c := range clients {
				t.Run(c.name, func(t *testing.T) {
					_, p := everything(t)
					p.Features, p.Negotiation = c.features, c.negotiation
					check(t, c, url("far"), p)
				})
			}
		})
	}
}
