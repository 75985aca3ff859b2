// Package sse owns the wire form of server-sent events as the HTML standard defines it: it writes single events and
// comments, and parses a stream of them (FRM-35). It must not know HTTP, sessions, resumption or what the data of an event mean.
package sse
