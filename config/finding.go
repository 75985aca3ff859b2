package config

import (
	"fmt"
	"strings"
)

// Warning is something in the file that is not used, or not used as written.
type Warning struct {
	File      string
	Line, Col int // 1-based, columns count characters
	Text      string
}

func (w Warning) String() string { return place(w.File, w.Line, w.Col) + "warning: " + w.Text }

// Error is something in the file that cannot be right.
type Error struct {
	File      string
	Line, Col int    // 1-based, columns count characters; 0 if the file as a whole is meant
	Text      string // names the entry and key, and what to write instead
}

func (e *Error) Error() string { return place(e.File, e.Line, e.Col) + e.Text }

// Errors are all that was found, in the order of the file. It is never empty as an error.
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each finding to errors.As.
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i, one := range e {
		list[i] = one
	}
	return list
}

func place(file string, line, col int) string {
	switch {
	case file == "":
		return ""
	case line == 0:
		return file + ": "
	}
	return fmt.Sprintf("%s:%d:%d: ", file, line, col)
}
