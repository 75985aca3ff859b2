package procman

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// StartError explains a start that failed (cases 101, 102).
type StartError struct {
	// Spec holds Name, Command and Dir only: arguments and environment may hold secrets.
	Spec Spec
	// Permanent tells that trying again without a change is useless.
	Permanent bool
	// Hint says what to do about it; may be "".
	Hint string
	// Err is the cause, for instance one that wraps fs.ErrNotExist.
	Err error
}

// Error reads "cannot start NAME: cause; hint".
func (e *StartError) Error() string {
	s := "cannot start " + e.Spec.Name + ": " + e.Err.Error()
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

func startError(spec Spec, permanent bool, hint string, err error) *StartError {
	kept := Spec{Name: spec.Name, Command: maskCommand(spec.Command), Dir: spec.Dir}
	return &StartError{Spec: kept, Permanent: permanent, Hint: hint, Err: err}
}

// explain says why the file path could not be started. The operating system's word for it often names the wrong thing: a
// missing directory or interpreter also reads "no such file".
func explain(spec Spec, path string, err error) *StartError {
	if cause := badDir(spec.Dir); cause != nil {
		return startError(spec, true, "correct \"cwd\"", cause)
	}
	if permanent, hint, cause := explainFile(path, err); cause != nil {
		return startError(spec, permanent, hint, cause)
	}
	return startError(spec, false, "", fmt.Errorf("%s: %w", path, rootCause(err)))
}

// badDir says what is wrong with a working directory.
func badDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("working directory %s does not exist: %w", dir, fs.ErrNotExist)
	case err != nil:
		return fmt.Errorf("cannot use working directory %s: %w", dir, rootCause(err))
	case !info.IsDir():
		return fmt.Errorf("working directory %s is not a directory", dir)
	}
	return enterable(dir)
}

// rootCause leaves out what the messages here say themselves.
func rootCause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
