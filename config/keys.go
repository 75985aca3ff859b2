package config

import (
	"slices"
	"strings"
)

// foreignKeys are what other programs put into the same files. They are expected and mean nothing here.
func foreignKeys() []string {
	return []string{
		// at an entry
		"type", "transport", "transportType", "autoApprove", "alwaysAllow", "description", "icon", "icons", "title", "id",
		"name", "gallery", "version", "envFile", "options", "toolFilter", "disabledTools", "enabledTools", "includeTools",
		"excludeTools", "trust", "oauthScopes", "metadata", "tags", "source", "dev", "sandbox", "timeoutMs", "provider",
		// at the top
		"inputs", "mcpProxy", "mcp", "globalShortcut", "preferences", "projects", "theme", "model",
	}
}

// reportForeign deals with a key that is none of ours: a likely misspelling is an error, anything else a warning, as
// people share these files between programs.
func (m member) reportForeign(keys setters) {
	if !slices.Contains(foreignKeys(), m.name) {
		if near := nearest(m.name, keys); near != "" {
			m.key.fail("unknown key; did you mean %q?", near)
			return
		}
	}
	m.key.warn("the key is not used")
}

func nearest(name string, keys setters) string {
	known := make([]string, 0, len(keys))
	for key := range keys {
		known = append(known, key)
	}
	return nearestOf(name, known)
}

// nearestOf returns the word name is probably a misspelling of, "" if there is none: at most two edits away, one for
// words of up to four letters, whatever the case.
func nearestOf(name string, words []string) string {
	allowed := 2
	if len(name) <= 4 {
		allowed = 1
	}
	best, distance := "", allowed+1
	slices.Sort(words)
	for _, word := range words {
		if d := edits(strings.ToLower(name), strings.ToLower(word), allowed); d < distance {
			best, distance = word, d
		}
	}
	return best
}

// edits is the Levenshtein distance of a and b, or something above limit if it exceeds that.
func edits(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost++
			}
			corner = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
