// Package daemon puts the program together: it builds what the configuration names, connects the rooms that do not know
// each other, runs it, and takes it down in order. Tests run the whole program through it.
package daemon
