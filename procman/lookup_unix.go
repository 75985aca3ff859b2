//go:build unix

package procman

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
)

func isPath(command string) bool { return strings.Contains(command, "/") }

// findExecutable returns path if it is a file that somebody may execute.
func findExecutable(path string, _ []string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return "", errIsDirectory
	case info.Mode()&0o111 == 0:
		return "", fs.ErrPermission
	}
	return path, nil
}

func executableHint(path string) string { return fmt.Sprintf("run chmod +x %q", path) }
