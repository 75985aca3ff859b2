package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// Limits of the file itself.
const (
	MaxFileBytes = 4 << 20 // longer files are an error
	MaxDepth     = 64      // deeper nesting is an error
	MaxServers   = 1000    // more entries are an error
)

// Load reads and checks the file at path with the variables of the process. The error is an Errors, or wraps what the
// file system said.
func Load(path string) (*Config, []Warning, error) {
	data, err := readBounded(path, MaxFileBytes)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read configuration: %w", err)
	}
	return Parse(path, data, os.LookupEnv)
}

// Parse checks the text of a file. name stands in findings, and relative ${file:PATH}s are looked for beside it. env
// looks variables up. Servers that cannot be used are in the result with their Problem; an error is an Errors.
func Parse(name string, data []byte, env func(string) (string, bool)) (*Config, []Warning, error) {
	f := &file{name: name, dir: filepath.Dir(name), text: data, env: env, machine: thisMachine()}
	root, failure := f.parse()
	if failure != nil {
		return nil, nil, Errors{failure}
	}
	c := newConfig()
	f.readRoot(root, c)
	if len(f.errs) > 0 {
		return nil, f.warnings, f.errs
	}
	return c, f.warnings, nil
}

// file is one file being read.
type file struct {
	name, dir string
	text      []byte
	env       func(string) (string, bool)
	machine   machine
	warnings  []Warning
	errs      Errors
	entry     *entry // see blankEntry
	entryKeys settings
}

// parse checks the syntax.
func (f *file) parse() (node, *Error) {
	if len(f.text) > MaxFileBytes {
		return node{}, &Error{File: f.name, Text: fmt.Sprintf("the file has more than %d bytes", MaxFileBytes)}
	}
	f.text = bytes.TrimPrefix(f.text, []byte("\xef\xbb\xbf"))
	if at := firstInvalid(f.text); at >= 0 {
		return node{}, f.errorAt(at, "not valid UTF-8")
	}
	if at := tooDeep(f.text); at >= 0 {
		return node{}, f.errorAt(at, "more than %d levels of nesting", MaxDepth)
	}
	value, err := hujson.Parse(f.text)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		// The parser wants a line end behind a comment, people leave the last one out.
		if again, ended := hujson.Parse(append(bytes.Clone(f.text), '\n')); ended == nil {
			value, err = again, nil
		}
	}
	if err != nil {
		return node{}, f.syntaxError(err)
	}
	return node{file: f, value: &value, errs: &f.errs}, nil
}

// syntaxError takes over the position the parser put in front of its text.
func (f *file) syntaxError(err error) *Error {
	var line, col int
	text := err.Error()
	if _, scanErr := fmt.Sscanf(text, "hujson: line %d, column %d:", &line, &col); scanErr != nil {
		return &Error{File: f.name, Text: text}
	}
	_, text, _ = strings.Cut(text, ": ")
	_, text, _ = strings.Cut(text, ": ")
	if errors.Is(err, io.ErrUnexpectedEOF) {
		text = "the file ends in the middle: a closing bracket, quote or comment end is missing"
	}
	return &Error{File: f.name, Line: line, Col: col, Text: "not valid JSON: " + text}
}

func firstInvalid(text []byte) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
	return -1
}

// tooDeep returns where the nesting exceeds MaxDepth, -1 if nowhere. The parser would follow it without bound.
func tooDeep(text []byte) int {
	depth := 0
	for at := 0; at < len(text); {
		switch text[at] {
		case '"', '/':
			at += skip(text[at:])
			continue
		case '{', '[':
			if depth++; depth > MaxDepth {
				return at
			}
		case '}', ']':
			depth--
		}
		at++
	}
	return -1
}

// skip returns the length of the string or comment text starts with, 1 if it is neither.
func skip(text []byte) int {
	end := -1
	switch {
	case text[0] == '"':
		for at := 1; at < len(text); at++ {
			switch text[at] {
			case '\\':
				at++
			case '"':
				return at + 1
			}
		}
		return len(text)
	case bytes.HasPrefix(text, []byte("//")):
		end = bytes.IndexByte(text, '\n')
	case bytes.HasPrefix(text, []byte("/*")):
		if end = bytes.Index(text[2:], []byte("*/")); end >= 0 {
			end += 4
		}
	default:
		return 1
	}
	if end < 0 {
		return len(text)
	}
	return end
}

// position turns an offset into line and column.
func (f *file) position(offset int) (line, col int) {
	before := f.text[:min(offset, len(f.text))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[start:]) + 1
}

func (f *file) errorAt(offset int, format string, args ...any) *Error {
	line, col := f.position(offset)
	return &Error{File: f.name, Line: line, Col: col, Text: fmt.Sprintf(format, args...)}
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() { // a pipe nobody writes to would be waited for
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("is no regular file")}
	}
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, nil
}
