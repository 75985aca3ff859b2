// Command mcpbridge stands between MCP hosts and MCP tool servers. This package owns the command line: arguments, exit
// codes and what is printed. It must not know how anything is bridged; package daemon puts that together.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"mcpbridge/procman"
)

// Exit codes, part of the contract with callers.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitConfig  = 3
)

func main() {
	procman.MaybeGuard()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code. Errors go to stderr, one line each.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	cmd := newRootCommand()
	cmd.SetArgs(args)
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	err := cmd.Execute()
	if err == nil {
		return exitOK
	}
	var coded *codedError
	if !errors.As(err, &coded) {
		coded = &codedError{code: exitFailure, err: err}
	}
	if !coded.told {
		fmt.Fprintf(errOut, "mcpbridge: %v\n", err)
	}
	return coded.code
}

// codedError is an error that decides the exit code.
type codedError struct {
	code int
	err  error
	told bool // the user has read it already
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

func usageError(err error) error  { return &codedError{code: exitUsage, err: err} }
func configError(err error) error { return &codedError{code: exitConfig, err: err} }
