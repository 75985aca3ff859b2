// Package config owns the configuration file: its shape, its spellings, the expansion of variables, defaults and
// checks, its JSON Schema, the places of files that it leaves to the platform, and what differs between two of it. The
// file is JSON with comments and trailing commas in the mcpServers form that hosts use.
//
// Three kinds of findings come out of a file. A Warning says that something is not used. An Error makes the whole file
// unusable. A Server's Problem makes that entry unusable and leaves the others alone: one broken entry never takes the
// others down.
//
// Each key stands once, in a table of settings: how it is read, what its values look like, what it is for. Reader, list
// of known keys, suggestions and schema all come from there. Keys of other programs are in foreign.go; they cost a
// warning at most (case 89).
//
// The package must not know how servers are run or served. It reads the file itself and the files that ${file:PATH}
// names, and it never asks the file system whether a command exists, with one exception: a command with spaces in it,
// which is nearly always a whole command line by mistake.
package config
