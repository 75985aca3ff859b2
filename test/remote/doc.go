// Package remote holds black-box tests of bridges whose servers are remote: the program runs with url entries in its configuration, the
// servers are another bridge, servers of the official Go SDK, or scripted ones that die and come back.
package remote
