// Package mask hides secrets in text that people will see: errors, logs and status (SEC-09). It must not know where secrets
// come from or where the text goes.
package mask

import (
	"cmp"
	"slices"
	"strings"
)

// MinSecret is the length in bytes below which a secret is not looked for: it would blank out ordinary words.
const MinSecret = 6

// Masker hides a fixed set of secrets. The zero value hides nothing. It may be used by several goroutines.
type Masker struct{ texts []string }

// New returns a masker of secrets. The lines of a secret of several count one by one, because output is shown by lines.
// The longest is hidden first, so that none leaves its end behind.
func New(secrets []string) Masker {
	var out []string
	for _, s := range secrets {
		for _, part := range append(strings.Split(s, "\n"), s) {
			if part = strings.TrimSpace(part); len(part) >= MinSecret {
				out = append(out, part)
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return Masker{out}
}

// Text returns text with every secret replaced by "***".
func (m Masker) Text(text string) string {
	for _, secret := range m.texts {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}
