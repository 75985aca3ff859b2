// Package back reaches servers: it turns a child process, or what is behind a URL, into an upstream of the core, finds out which
// era the server speaks, and carries out the handshake. It knows nothing of clients.
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
// # Remote servers
//
// Three transports lead to a remote server, and the era decides between the first two:
//
//	probe ──modern──▶ stateless (B3)
//	  │ legacy             ▲ it is modern after all: probed once more
//	  ▼                    │
//	initialize ──────▶ streamable (B4)
//	  │ 400, 404, 405, 406, 415
//	  ▼
//	GET, endpoint ───▶ events (B5)
//
// What settles nothing about the era opens nothing either: 401 and 403, 429, 5xx, redirects to elsewhere, silence and a server that cannot
// be reached (VER-35). Only the verdict that a server is not modern is remembered, for an hour: the discovery of a modern one is needed
// for each connection anyhow.
//
// Context: design decision 17 has a server of both eras opened in the era of the front, and has initialize tried for a legacy front.
//
// Choice: a remote server is probed first whatever the front (VER-30). A legacy front gets the legacy era if discovery lists a revision of it
// or none but that; from a server that lists modern revisions alone it gets the modern one.
//
// Rejected: initialize on trial, as for local servers. A remote that is modern only must never see it (case 57), and one that speaks both
// says so in its list.
//
// Consequence: a server that hides its legacy era from discovery is reached in the modern one, unless protocol pins it.
//
// Over HTTP a connection is no socket: single requests fail, and the connection goes on. It ends when it is closed, when the event stream of B5
// ends, when the server turns out to speak another era, or when a session that it has lost comes back in another revision. A lost
// session of B4 is otherwise replaced under the connection (HTTP-L-22), and the owner of the connection restores what clients had
// established; the requests that found out are sent again, since nobody has carried them out.
//
// Beyond that a request is sent twice only where it does no harm: reads, lists and completions that met an outage (STD-06), and what was refused
// before anybody looked at it: by 429 with a short Retry-After, by -32020 for headers the bridge can make anew, by -32022 for a version that
// the same answer lists. The second try has an id of its own.
//
// # What counts as a failed start
//
// A server that ends on the handshake, refuses it, does not answer it in time or closes its output has failed, and may not
// be started again at once (procman, [procman.Breaker]); while it may not, Open says why within a second. An opening that
// nobody wants any more, and the end of a process on the probe, count nothing (VER-24).
package back
