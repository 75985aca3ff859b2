package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"github.com/spf13/cobra"

	"mcpbridge/config"
	"mcpbridge/daemon"
)

func newCheckCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a configuration file and print what it means",
		Long: "check reads the configuration, prints it in full and in the spelling of this program, with keys\n" +
			"and the values of env, headers and ${...} masked, and tells what is wrong. Files of other programs\n" +
			"that hold MCP servers are read too.\n" +
			"It exits with 3 if the file or one of its servers cannot be used.",
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := g.config
			if len(args) == 1 {
				path = args[0]
			}
			if path == "" {
				path = config.DefaultPath()
			}
			return check(cmd, path, g.json)
		},
	}
}

// checked is the outcome of a check, in the shape of `check --json`.
type checked struct {
	File     string        `json:"file"`
	OK       bool          `json:"ok"`
	Config   *config.Shown `json:"config,omitempty"`
	Errors   []finding     `json:"errors"`
	Warnings []finding     `json:"warnings"`
}

// finding is one error or warning. Line and Column are 1-based, 0 if the file as a whole is meant.
type finding struct {
	Server string `json:"server,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"`
	full   string
}

func check(cmd *cobra.Command, path string, asJSON bool) error {
	result := inspect(path)
	show := result.printText
	if asJSON {
		show = result.printJSON
	}
	if err := show(cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
		return err
	}
	if !result.OK {
		return &codedError{code: exitConfig, err: errors.New("the configuration has errors"), told: true}
	}
	return nil
}

func inspect(path string) checked {
	result := checked{File: path, Errors: []finding{}, Warnings: []finding{}}
	c, warnings, err := config.Load(path)
	for _, w := range warnings {
		result.Warnings = append(result.Warnings, finding{Line: w.Line, Column: w.Col, Text: w.Text, full: w.String()})
	}
	result.addErrors("", err)
	if c != nil {
		if len(c.Servers) == 0 && err == nil {
			result.addErrors("", fmt.Errorf("%s names no server; add one to mcpServers", path))
		}
		for i := range c.Servers {
			if s := &c.Servers[i]; !s.Disabled || s.Problem != nil {
				result.addErrors(s.Name, entryError(path, s))
			}
		}
		shown := c.Show()
		result.Config = &shown
	}
	result.OK = len(result.Errors) == 0
	return result
}

// entryError is why an entry cannot be served, as a finding about the file.
func entryError(path string, s *config.Server) error {
	err := daemon.Usable(s)
	if err == nil || s.Problem != nil {
		return err
	}
	return config.Errors{{File: path, Text: "server " + strconv.Quote(s.Name) + ": " + err.Error()}}
}

// addErrors takes err apart into findings.
func (c *checked) addErrors(server string, err error) {
	var list config.Errors
	switch {
	case err == nil:
	case errors.As(err, &list):
		for _, e := range list {
			c.Errors = append(c.Errors, finding{Server: server, Line: e.Line, Column: e.Col, Text: e.Text, full: e.Error()})
		}
	default:
		text := err.Error()
		if errors.Is(err, fs.ErrNotExist) {
			text += "; name the file with --config FILE"
		}
		c.Errors = append(c.Errors, finding{Server: server, Text: text, full: "mcpbridge: " + text})
	}
}

func (c checked) printJSON(out, _ io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(c)
}

// printText prints the configuration to out and the findings to errOut.
func (c checked) printText(out, errOut io.Writer) error {
	for _, list := range [][]finding{c.Warnings, c.Errors} {
		for _, f := range list {
			if _, err := fmt.Fprintln(errOut, f.full); err != nil {
				return err
			}
		}
	}
	if c.Config == nil {
		return nil
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(c.Config)
}
