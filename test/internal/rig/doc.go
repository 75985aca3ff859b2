// Package rig starts real programs for the black-box tests: the bridge itself,
// fixture servers, and the Node peers pinned in test/peers. It owns temporary
// binaries, ports and child processes for the length of a test; it must not know
// what the tests check. It knows the bridge by its command line only.
package rig
