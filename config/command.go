package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// readCommand takes a program, or what some hosts write: a list of program and arguments, or an object of both.
func (e *entry) readCommand(n node) {
	switch n.kind() {
	case '[':
		e.readCommandList(n)
	case '{':
		n.warn(`an object is read as "command", "args" and "env"`)
		n.read(settings{"path": {read: e.readCommand}, "args": {read: e.readArgs}, "env": {read: e.readEnv}}, func(m member) { m.key.warn("the key is not used") })
	default:
		e.Command, e.shown.command = n.expanded()
		if e.shown.command == "" && n.kind() == '"' {
			n.fail("must not be empty")
		}
	}
}

func (e *entry) readCommandList(n node) {
	elements := n.elements()
	if len(elements) == 0 {
		n.fail("must not be empty")
		return
	}
	n.warn(`a list is read as "command" and "args"`)
	e.Command, e.shown.command = elements[0].expanded()
	var args, shownArgs []string
	for _, element := range elements[1:] {
		arg, raw := element.expanded()
		args, shownArgs = append(args, arg), append(shownArgs, raw)
	}
	e.Args, e.shown.args = append(args, e.Args...), append(shownArgs, e.shown.args...)
}

func (e *entry) readArgs(n node) {
	for _, element := range n.elements() {
		arg, raw := element.expanded()
		e.Args, e.shown.args = append(e.Args, arg), append(e.shown.args, raw)
	}
}

// checkCommandLine finds a whole command line in command. It is never split or given to a shell; the message shows how
// to write it.
func (e *entry) checkCommandLine() {
	words := splitWords(e.shown.command)
	if len(words) < 2 && !isAssignment(e.shown.command) || programExists(e.Command, e.Cwd) {
		return
	}
	var fixed struct {
		Command string            `json:"command"`
		Args    []string          `json:"args,omitempty"`
		Env     map[string]string `json:"env,omitempty"`
	}
	for len(words) > 1 && isAssignment(words[0]) {
		name, value, _ := strings.Cut(words[0], "=")
		if fixed.Env == nil {
			fixed.Env = map[string]string{}
		}
		fixed.Env[name] = value
		words = words[1:]
	}
	fixed.Command, fixed.Args = words[0], append(slices.Clone(words[1:]), e.shown.args...)
	text, err := json.Marshal(fixed)
	if err != nil {
		return
	}
	e.fail("command: %q is not one program and no shell splits it; write %s", e.shown.command, text[1:len(text)-1])
}

// isAssignment reports whether word is NAME=value as a shell would read it.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && isVariable(name)
}

func programExists(command, cwd string) bool {
	if !filepath.IsAbs(command) && cwd != "" {
		command = filepath.Join(cwd, command)
	}
	extensions := []string{""}
	if runtime.GOOS == "windows" {
		extensions = append(extensions, ".exe", ".cmd", ".bat", ".com")
	}
	return slices.ContainsFunc(extensions, func(extension string) bool {
		_, err := os.Stat(command + extension)
		return err == nil
	})
}

// splitWords cuts a command line at spaces outside of quotes. Backslashes mean nothing, as in Windows paths.
func splitWords(line string) []string {
	var words []string
	var word strings.Builder
	quote, open := rune(0), false
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			quote, open = c, true
		case c == ' ' || c == '\t':
			if open || word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(c)
		}
	}
	if open || word.Len() > 0 {
		words = append(words, word.String())
	}
	return words
}

// checkContainer warns of containers that cannot be spoken to: stdin is closed without -i, and -t turns lines into a
// terminal's.
func (e *entry) checkContainer() {
	program := strings.TrimSuffix(filepath.Base(e.Command), ".exe")
	if program != "docker" && program != "podman" || len(e.Args) == 0 || e.Args[0] != "run" {
		return
	}
	interactive, terminal := false, false
	for _, arg := range e.Args[1:] {
		switch {
		case arg == "--interactive" || arg == "--interactive=true":
			interactive = true
		case arg == "--tty" || arg == "--tty=true":
			terminal = true
		case strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--"):
			flags := strings.TrimLeft(arg, "-")
			interactive = interactive || shortFlag(flags, 'i')
			terminal = terminal || shortFlag(flags, 't')
		}
	}
	if !interactive {
		e.warn("args: %s run without -i gives the server no input; add \"-i\"", program)
	}
	if terminal {
		e.warn("args: %s run with -t changes what the server writes; remove it", program)
	}
}

// shortFlag reports whether flag is among flags that are combined like -it. Only flags without value can be combined.
func shortFlag(flags string, flag byte) bool {
	return strings.IndexByte(flags, flag) >= 0 && strings.Trim(flags, "ditPq") == ""
}
