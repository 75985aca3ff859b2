package procman

import (
	"encoding/json"
	"regexp"
	"strings"
)

// suggestSplit spells a command that was written as one line ("VAR=x npx -y pkg") as command, args and env, the way the
// configuration has them (case 102). It returns false for a command that does not look like a line.
func suggestSplit(command string, args []string) (string, bool) {
	words := splitWords(command)
	env := map[string]string{}
	for len(words) > 0 && assignment.MatchString(words[0]) {
		name, value, _ := strings.Cut(words[0], "=")
		env[name] = maskValue(name, value)
		words = words[1:]
	}
	if len(words) == 0 || len(words) == 1 && len(env) == 0 {
		return "", false
	}
	fix := `"command": ` + quoteJSON(words[0])
	if all := append(maskWords(words[1:]), maskWords(args)...); len(all) > 0 {
		fix += `, "args": ` + quoteJSON(all)
	}
	if len(env) > 0 {
		fix += `, "env": ` + quoteJSON(env)
	}
	return fix, true
}

var (
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	secretName = regexp.MustCompile(`(?i)key|token|secret|pass|auth|cred|bearer`)
)

func quoteJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return `""` // strings, lists and maps of strings always encode
	}
	return strings.TrimSpace(b.String())
}

// masked stands for a value that may be a secret.
const masked = "..."

func maskValue(name, value string) string {
	if secretName.MatchString(name) {
		return masked
	}
	return value
}

// maskWords hides what looks like a secret: the value in NAME=VALUE, and the word after an option, where the name
// sounds like one.
func maskWords(words []string) []string {
	out := make([]string, 0, len(words))
	hide := false
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		switch {
		case hide && !strings.HasPrefix(w, "-"):
			w = masked
		case ok:
			w = name + "=" + maskValue(name, value)
		}
		hide = strings.HasPrefix(w, "-") && !ok && secretName.MatchString(w)
		out = append(out, w)
	}
	return out
}

// maskCommand hides secrets in a command that is really a line.
func maskCommand(command string) string {
	if !strings.ContainsAny(command, " \t") && !assignment.MatchString(command) {
		return command
	}
	return strings.Join(maskWords(splitWords(command)), " ")
}

// splitWords splits a line at blanks outside of quotes. Backslashes stay: they are more often part of a Windows path than
// an escape.
func splitWords(line string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	open := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
			if open {
				words = append(words, word.String())
				word.Reset()
			}
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words
}
