// Package conformance runs the official MCP conformance suite against the bridge
// in front of a fixture server, and compares each scenario with a baseline of
// known failures that may only shrink. It owns the reading of the suite's output;
// it must not know how the bridge works.
package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// check is one line of a scenario's result file, as far as it is read here.
type check struct {
	ID           string `json:"id"`
	Status       string `json:"status"` // SUCCESS, FAILURE, WARNING, INFO, SKIPPED
	ErrorMessage string `json:"errorMessage"`
}

// outcome is what one scenario came to.
type outcome struct {
	successes int
	failures  []string // "check id: message"
}

// passed is stricter than the suite, which takes a scenario that checked nothing
// for a success.
func (o outcome) passed() bool { return o.successes > 0 && len(o.failures) == 0 }

func (o outcome) String() string {
	switch {
	case len(o.failures) > 0:
		return strings.Join(o.failures, "\n\t")
	case o.successes == 0:
		return "not run, or nothing was checked"
	}
	return "passed"
}

// resultDir is the name of a scenario's result folder: server-NAME-TIME.
var resultDir = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT[0-9-]+Z$`)

// readOutcomes reads every scenario's checks below dir.
func readOutcomes(dir string) (map[string]outcome, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read results: %w", err)
	}
	outcomes := map[string]outcome{}
	for _, e := range entries {
		m := resultDir.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name(), "checks.json"))
		if err != nil {
			return nil, fmt.Errorf("cannot read results of %s: %w", m[1], err)
		}
		o, err := parseChecks(b)
		if err != nil {
			return nil, fmt.Errorf("cannot parse results of %s: %w", m[1], err)
		}
		outcomes[m[1]] = o
	}
	return outcomes, nil
}

func parseChecks(b []byte) (outcome, error) {
	var checks []check
	if err := json.Unmarshal(b, &checks); err != nil {
		return outcome{}, err
	}
	var o outcome
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			o.successes++
		case "FAILURE":
			o.failures = append(o.failures, c.ID+": "+c.ErrorMessage)
		}
	}
	return o, nil
}

// requiredScenarios reads the server scenarios of a requirements file of the
// suite: the items of the list under "server:".
func requiredScenarios(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read requirements: %w", err)
	}
	defer f.Close()
	var names []string
	inServer := false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if key, isKey := strings.CutSuffix(strings.TrimRight(text, " "), ":"); isKey && !strings.HasPrefix(key, " ") {
			inServer = key == "server"
			continue
		}
		if item, isItem := strings.CutPrefix(strings.TrimSpace(text), "- "); isItem && inServer {
			names = append(names, strings.TrimSpace(item))
		}
	}
	return names, lines.Err()
}
