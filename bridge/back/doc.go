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
// if it is refused, the probe follows. Each verdict is remembered per server configuration, for an hour. Three rules keep a
// server that is slow to start, or that dies of the wrong question, from being misjudged:
//
//   - after a recognised modern error nothing but the error follows, whatever the server does next (VER-08);
//   - a server that ends on its second question is asked it again in a process of its own (VER-24);
//   - one that kept silent on the probe and refuses initialize is probed again: it was asleep (case 28). If instead its
//     handshake succeeds after a wait, the silence is not remembered.
//
// Rejected: probing for legacy fronts too. It costs a server that keeps silent on unknown methods the whole probe
// timeout at its first start, and kills those that exit on a request before initialize, for knowledge nobody uses.
//
// Consequence: a modern-only server sees one refused initialize, once an hour, if legacy clients use it.
//
// # What counts as a failed start
//
// A server that ends on the handshake, refuses it, does not answer it in time or closes its output has failed, and may not
// be started again at once (procman, [procman.Breaker]); while it may not, Open says why within a second. An opening that
// nobody wants any more, and the end of a process on the probe, count nothing (VER-24).
package back
