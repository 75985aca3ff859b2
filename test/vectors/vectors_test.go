package vectors

import (
	"encoding/json"
	"regexp"
	"testing"
)

// groups is what the file must hold; a lost entry is a lost requirement.
var groups = map[string]int{
	"http-request": 259, "schema": 108, "framing": 65, "header-encode": 60, "era-http": 51, "era-stdio": 45,
	"header-decode": 34, "mrtr-retry": 28, "sse": 22, "error-map": 20, "capability-map": 17, "result-map": 17,
	"client-feature": 17, "handshake-version": 11, "subscription-ack": 7,
}

// later names the groups no test runs yet, with what they wait for. Every other group is run as a table test: header-encode,
// header-decode and schema in bridge/mirror; capability-map, result-map, error-map and handshake-version in bridge/era; framing and
// sse in framing, those of servers in bridge/back; era-stdio in bridge/back; http-request in bridge/front and test/exchange.
// Of era-http the answers that have a body to classify are run in bridge/era, all of it against a real HTTP server in bridge/back.
var later = map[string]string{
	"client-feature":   "questions of a legacy server to a modern client (parked calls)",
	"mrtr-retry":       "parked calls and their requestState",
	"subscription-ack": "listens of modern clients in front of a legacy server",
}

func TestLaterGroupsExist(t *testing.T) {
	for name, why := range later {
		if groups[name] == 0 || why == "" {
			t.Errorf("group %s waits for %q: there is no such group, or no reason", name, why)
		}
	}
}

func TestGroups(t *testing.T) {
	seen := map[string]bool{}
	total := 0
	for name, want := range groups {
		got := Group(t, name)
		if len(got) != want {
			t.Errorf("group %s has %d entries, want %d", name, len(got), want)
		}
		total += len(got)
		for _, v := range got {
			if v.ID == "" || seen[v.ID] {
				t.Errorf("group %s: id %q is empty or not unique", name, v.ID)
			}
			seen[v.ID] = true
			if len(v.Expect) == 0 || len(v.Refs) == 0 || (v.Level != "spec" && v.Level != "recommended") {
				t.Errorf("%s: lacks an expectation, a reference or a level: %s", v.ID, v.Raw)
			}
			if !json.Valid(v.Raw) {
				t.Errorf("%s: Raw is not the entry", v.ID)
			}
		}
	}
	if all := len(read(t).Vectors); all != total {
		t.Errorf("the file has %d entries, the known groups %d", all, total)
	}
}

func TestFixtures(t *testing.T) {
	var f struct {
		HTTP struct {
			Tools []json.RawMessage `json:"tools"`
		} `json:"http"`
	}
	if err := json.Unmarshal(Fixtures(t), &f); err != nil || len(f.HTTP.Tools) == 0 {
		t.Fatalf("cannot read fixtures.http.tools: %v, %d tools", err, len(f.HTTP.Tools))
	}
}

// The file speaks of example hosts and loopback only.
func TestHosts(t *testing.T) {
	known := regexp.MustCompile(`(?i)^(127\.0\.0\.1|([a-z]+\.)*example(\.com)?)$`)
	hosts := regexp.MustCompile(`https?://(?:[^"/@ ]*@)?([A-Za-z0-9.-]+)`)
	for _, m := range hosts.FindAllSubmatch(file, -1) {
		if !known.Match(m[1]) {
			t.Errorf("vectors.json names the host %q, which is no example host", m[1])
		}
	}
}
