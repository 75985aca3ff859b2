package config

import "strings"

// nearestOf returns the word name is probably a misspelling of, "" if there is none: at most two edits away, one for
// words of up to four letters, whatever the case. Of words equally near it is the first.
func nearestOf(name string, words []string) string {
	allowed := 2
	if len(name) <= 4 {
		allowed = 1
	}
	best, distance := "", allowed+1
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
