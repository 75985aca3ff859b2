package config

import (
	"encoding/json"
	"testing"
)

// Whatever the text: a configuration or an error, never both; entries without a problem can be used; the schema takes what
// the reader takes; and what is shown is a file again.
func FuzzParse(f *testing.F) {
	f.Add(`{"mcpServers":{"a":{"command":"${X:-y}","args":["a"]}}}`)
	f.Add(`{"listen":["unix:///x"],"servers":[{"name":"x","command":["a"]}]}`)
	f.Add(`{"limits":{"queueWait":"1.5s"},"mcp":{"a":{"url":"https://h/","timeout":5,"restart":{"breaker":"1/1m"}}}}`)
	f.Add(`{"mcpServers":{"größe":{"command":"x","env":{"A":1},"mirror":{"t":{"p":"H"}},"tools":["*"],"spare":1}}}`)
	f.Add(`{"allowedHosts":["h:*"],"allowedOrigins":["https://h"],"keys":["${KEY}"]}`)
	f.Add("{/*")
	f.Fuzz(func(t *testing.T, text string) {
		c, _, err := Parse("c.json", []byte(text), env)
		if (c == nil) != (err != nil) {
			t.Fatalf("config %v with error %v", c, err)
		}
		if c == nil {
			return
		}
		good := true
		for _, s := range c.Servers {
			if s.Problem == nil && !s.Disabled && (s.Command == "") == (s.URL == "") {
				t.Fatalf("server without problem is of no kind: %+v", s)
			}
			good = good && s.Problem == nil && !s.Disabled
		}
		if err := validate(t, text); good && err != nil {
			t.Fatalf("the schema refuses %s: %v", text, err)
		}
		c.Keys = nil // they are masked beyond use
		shown, err := json.Marshal(c.Show())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := Parse("c.json", shown, env); err != nil {
			t.Fatalf("%s is shown as %s: %v", text, shown, err)
		}
	})
}
