package listen

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A listen of a modern client at a modern server outlives the server: behind its back it is opened again, and the client is told that
// anything may have changed; it has one acknowledgement, and a result when the bridge stops (translation 8.5, SUB-09, SUB-16).
func TestModernServerRestarts(t *testing.T) {
	h := shop.House(t, fmt.Sprintf(`"mcpServers":{"s":{"command":%q,"args":["demo-server","--modern-only"],"restart":{"initial":"20ms"}}}`, shop.Bridge(t)))
	tenant := h.Start(t)
	c := &city{url: h.URL("s"), http: &http.Client{}}
	t.Cleanup(c.http.CloseIdleConnections)
	resp := c.post(t, modernHeader("subscriptions/listen", ""), `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["demo://clock"]},`+envelope+`}}`)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return ""
	}
	if got := next(); !strings.Contains(got, "notifications/subscriptions/acknowledged") {
		t.Fatalf("the stream begins with %s", got)
	}
	for range 5 { // more often than tries in a row are allowed
		if _, errOut, code := h.Run(t, "restart", "s"); code != 0 {
			t.Fatalf("restart: %s", errOut)
		}
		if got := next(); !strings.Contains(got, `"method":"notifications/resources/updated"`) || !strings.Contains(got, `"demo://clock"`) || !strings.Contains(got, `/subscriptionId":"l"`) {
			t.Fatalf("after a restart: %s", got)
		}
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); tenant.Stop(t) }()
	if got := next(); !strings.Contains(got, `"resultType":"complete"`) || !strings.Contains(got, `"id":"l"`) {
		t.Errorf("the stream ends with %s", got)
	}
	<-stopped
}
