package procman

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// errBatch is why a batch file is not run: cmd.exe would read something else than what is meant.
var errBatch = errors.New("cannot run the batch file as it is meant")

func isBatch(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".bat" || ext == ".cmd"
}

// batchLine returns the command interpreter and the line that makes it run a batch file with the arguments unchanged
// (case 29). CreateProcess would run the interpreter too, but with a line in which & | < > ^ % keep their power.
func batchLine(path string, spec Spec) (shell, line string, err error) {
	root, ok := lookupVar(spec.Env, "SystemRoot")
	if !ok {
		root = `C:\Windows`
	}
	shell = filepath.Join(root, "System32", "cmd.exe")
	if strings.ContainsAny(path, "\"%\r\n\x00") {
		return "", "", fmt.Errorf("%w: its name %q has a character that cmd.exe interprets", errBatch, path)
	}
	var b strings.Builder
	b.WriteString(`cmd.exe /e:on /v:off /d /s /c ""` + path + `"`)
	for i, arg := range spec.Args {
		if strings.ContainsAny(arg, "\r\n\x00") {
			return "", "", fmt.Errorf("%w: argument %d has a line break or a NUL", errBatch, i+1)
		}
		b.WriteString(" " + batchQuote(arg))
	}
	b.WriteString(`"`)
	return shell, b.String(), nil
}

// batchQuote quotes an argument for cmd.exe and for the program that the batch file hands it to: inside quotes only "
// and % are special; a quote is doubled, and a % is kept from naming a variable by an expansion to nothing.
func batchQuote(arg string) string {
	var b strings.Builder
	b.WriteByte('"')
	slashes := 0
	for _, c := range []byte(arg) {
		switch c {
		case '\\':
			slashes++
		case '"':
			b.WriteString(strings.Repeat(`\`, slashes) + `"`)
			slashes = 0
		case '%':
			b.WriteString(`%%cd:~,`)
			slashes = 0
		default:
			slashes = 0
		}
		b.WriteByte(c)
	}
	b.WriteString(strings.Repeat(`\`, slashes) + `"`)
	return b.String()
}
