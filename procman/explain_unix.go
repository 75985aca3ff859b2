//go:build unix

package procman

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// enterable tells why a directory cannot be made the working directory.
func enterable(dir string) error {
	if err := unix.Access(dir, unix.X_OK); err != nil {
		return fmt.Errorf("cannot use working directory %s: %w", dir, err)
	}
	return nil
}

// explainFile explains the failures that are the file's fault. A nil cause means that they are not.
func explainFile(path string, err error) (permanent bool, hint string, cause error) {
	switch {
	case errors.Is(err, unix.ENOENT):
		if interp := interpreter(path); interp != "" {
			return true, "install it, or correct the first line", fmt.Errorf("the interpreter %q named in the first line of %s is missing: %w", interp, path, unix.ENOENT)
		}
		return true, "the file, or the loader that its format asks for, is missing: is it built for this system?", fmt.Errorf("%s: %w", path, unix.ENOENT)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return true, "check the permissions of the file, of its directories and of its interpreter, and that the file system is not mounted noexec", fmt.Errorf("%s may not be executed: %w", path, unix.EACCES)
	case errors.Is(err, unix.ENOEXEC):
		return true, formatHint(path), fmt.Errorf("%s is not in a format that can be executed: %w", path, unix.ENOEXEC)
	case errors.Is(err, unix.E2BIG):
		return true, "", fmt.Errorf("arguments and environment are too large: %w", unix.E2BIG)
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.EINVAL):
		return true, "", fmt.Errorf("%s: %w", path, rootCause(err))
	}
	return false, "", nil
}

// head returns the first bytes of a file.
func head(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	buf := make([]byte, 256)
	n, _ := io.ReadFull(bufio.NewReader(f), buf)
	return buf[:n]
}

// interpreter returns the program that the first line of a script names, "" for other files.
func interpreter(path string) string {
	line, ok := bytes.CutPrefix(head(path), []byte("#!"))
	if !ok {
		return ""
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := strings.Fields(string(line))
	switch {
	case bytes.HasSuffix(line, []byte("\r")):
		return strings.TrimLeft(string(line), " ") // the carriage return is what is wrong: quoting shows it
	case len(words) == 0:
		return ""
	}
	return words[0]
}

func formatHint(path string) string {
	start := head(path)
	if len(start) == 0 {
		return "the file is empty"
	}
	if utf8.Valid(start[:len(start)-len(start)%utf8.UTFMax]) && !bytes.ContainsRune(start, 0) {
		return "a text file needs a first line such as #!/bin/sh, or name the interpreter as the command and the file as its first argument"
	}
	return "was it built for another system or processor?"
}
