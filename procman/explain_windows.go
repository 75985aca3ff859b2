package procman

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
)

// enterable has nothing to add: Windows reports a directory that may not be entered by itself.
func enterable(string) error { return nil }

// explainFile explains the failures that are the file's or the arguments' fault. A nil cause means that they are not.
func explainFile(path string, err error) (permanent bool, hint string, cause error) {
	switch {
	case errors.Is(err, errBatch):
		return true, "name the program behind the batch file instead", err
	case errors.Is(err, windows.ERROR_BAD_EXE_FORMAT), errors.Is(err, windows.ERROR_EXE_MACHINE_TYPE_MISMATCH):
		return true, "was it built for another system or processor?", fmt.Errorf("%s is not in a format that can be executed: %w", path, err)
	case errors.Is(err, windows.ERROR_ACCESS_DENIED):
		return true, "check the permissions of the file, and whether a virus scanner holds it back", fmt.Errorf("%s may not be executed: %w", path, err)
	case errors.Is(err, windows.ERROR_FILE_NOT_FOUND), errors.Is(err, windows.ERROR_PATH_NOT_FOUND):
		return true, "", fmt.Errorf("%s: %w", path, err)
	}
	return false, "", nil
}
