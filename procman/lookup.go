package procman

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// Check tells without starting anything whether the command of spec can be found: nil, or the [*StartError] a start would
// give now (cases 101, 102).
func Check(spec Spec) error {
	_, err := resolve(spec)
	return err
}

// resolve returns the file that Command means: looked up in the PATH of the child's own environment (case 95), or, when
// it is a path, taken from Dir. Entries of PATH that are not absolute are passed over.
func resolve(spec Spec) (string, error) {
	if spec.Command == "" {
		return "", startError(spec, true, "name the program in \"command\"", errors.New("no command given"))
	}
	if isPath(spec.Command) {
		return resolvePath(spec)
	}
	path, ok := lookupVar(spec.Env, "PATH")
	if !ok || path == "" {
		return "", notFound(spec, "PATH is not set")
	}
	var denied string
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file, err := findExecutable(filepath.Join(dir, spec.Command), spec.Env)
		if err == nil {
			return file, nil
		}
		if errors.Is(err, fs.ErrPermission) && denied == "" {
			denied = filepath.Join(dir, spec.Command)
		}
	}
	if denied != "" {
		return "", notExecutable(spec, denied)
	}
	return "", notFound(spec, "PATH searched: "+path)
}

// resolvePath checks a command that is a path.
func resolvePath(spec Spec) (string, error) {
	path := spec.Command
	if !filepath.IsAbs(path) {
		abs, err := filepath.Abs(filepath.Join(spec.Dir, path))
		if err != nil {
			return "", startError(spec, false, "", err)
		}
		path = abs
	}
	file, err := findExecutable(path, spec.Env)
	switch {
	case err == nil:
		return file, nil
	case errors.Is(err, errIsDirectory):
		return "", startError(spec, true, "name the program in it", fmt.Errorf("%s %w", path, errIsDirectory))
	case errors.Is(err, fs.ErrNotExist):
		return "", notFound(spec, "looked for "+path)
	case errors.Is(err, fs.ErrPermission):
		return "", notExecutable(spec, path)
	}
	return "", startError(spec, true, "", err)
}

var errIsDirectory = errors.New("is a directory")

func notFound(spec Spec, where string) *StartError {
	cause := fmt.Errorf("command %q not found (%s): %w", maskCommand(spec.Command), where, fs.ErrNotExist)
	return startError(spec, true, missingHint(spec), cause)
}

func notExecutable(spec Spec, path string) *StartError {
	cause := fmt.Errorf("%s is not executable: %w", path, fs.ErrPermission)
	return startError(spec, true, executableHint(path), cause)
}

// missingHint says what is usually wrong when a command is missing.
func missingHint(spec Spec) string {
	if fix, ok := suggestSplit(spec.Command, spec.Args); ok {
		return "a command is one file name, not a line for a shell; write " + fix
	}
	if strings.HasPrefix(spec.Command, "~") {
		return "~ is not expanded here: write the whole path"
	}
	if isPath(spec.Command) {
		return ""
	}
	return "if it works in a terminal, the PATH there is longer: set PATH in the \"env\" of this server, or give the whole path of the command"
}
