// Package e2e runs the whole program inside a test: the daemon with real listeners and real child processes, a hub
// through which a test sees and steers each fixture process behind it, and small HTTP clients of both eras that send
// exactly the bytes they are given. It must not know what the tests check, and shares no code with the product beyond
// the daemon's own options.
package e2e
