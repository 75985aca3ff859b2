// Package interop lets clients and servers that other people wrote talk to each
// other through the bridge: the official Go SDK's client in every revision, the two
// generations of the official TypeScript client, and real servers from npm. It owns
// the plans (what is called with which arguments, and what must come back); it must
// not know how the bridge works.
package interop
