// Package back reaches servers: it turns a child process into an upstream of the core, finds out which era the server
// speaks, and carries out the handshake. It knows nothing of clients.
//
// # Which era is tried first
//
// Context: a server's era is unknown until it has answered something. The specification probes with server/discover;
// design decision 17 wants a server that speaks both eras opened in the era of the front.
//
// Choice: for a modern front the probe goes first, and initialize follows on anything but proof of a modern server
// (VER-20 to VER-25). For a legacy front initialize goes first: if it works, nothing need be known about the other era;
// if it is refused, the probe follows. Each verdict is remembered per server configuration, for an hour.
//
// Rejected: probing for legacy fronts too. It costs a server that keeps silent on unknown methods the whole probe
// timeout at its first start, and kills those that exit on a request before initialize, for knowledge nobody uses.
//
// Consequence: a modern-only server sees one refused initialize, once an hour, if legacy clients use it.
package back
