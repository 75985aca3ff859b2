package conformance

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// baseline maps a scenario that is known to fail to the reason why.
type baseline map[string]string

// readBaseline reads a file of lines "scenario reason"; empty lines and lines that
// start with # are comments. A scenario without a reason is an error.
func readBaseline(path string) (baseline, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read baseline: %w", err)
	}
	return parseBaseline(string(b))
}

func parseBaseline(text string) (baseline, error) {
	known := baseline{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		scenario, reason, _ := strings.Cut(line, " ")
		if reason = strings.TrimSpace(reason); reason == "" {
			return nil, fmt.Errorf("cannot parse baseline: line %d: %s has no reason", n, scenario)
		}
		if _, twice := known[scenario]; twice {
			return nil, fmt.Errorf("cannot parse baseline: line %d: %s is listed twice", n, scenario)
		}
		known[scenario] = reason
	}
	return known, nil
}

// compare returns what is wrong with a run: scenarios that fail and are not
// listed, scenarios that pass and are, and listed scenarios nobody runs.
func compare(scenarios []string, outcomes map[string]outcome, known baseline) []string {
	var wrong []string
	for _, s := range scenarios {
		o := outcomes[s]
		_, listed := known[s]
		switch {
		case o.passed() && listed:
			wrong = append(wrong, s+": passes now; remove it from the baseline")
		case !o.passed() && !listed:
			wrong = append(wrong, s+" failed:\n\t"+o.String())
		}
	}
	for _, s := range slices.Sorted(maps.Keys(known)) {
		if !slices.Contains(scenarios, s) {
			wrong = append(wrong, s+": no such scenario; remove it from the baseline")
		}
	}
	return wrong
}
