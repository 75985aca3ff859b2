// Package parked keeps the calls of modern clients that a legacy server asks something in (translation 5). The server sends a
// request and holds its call open; the client can be asked only in the result of its own request. So that request is answered with
// input_required, the server's call stays open ("parked"), and the answers reach the server when the client calls again with the
// request state it was given.
//
// The package owns the table of such calls, the sealed request states, what a question becomes on its way to the client and an
// answer on its way back, and what happens when somebody does not come back. It must not know fronts, pools or how a server is
// reached: it is handed a link and a connection, and is the sink of the call.
//
// # A call
//
//	         asks (collected for Config.Window)
//	running ───────────────────────────────────▶ waiting
//	 │  ▲        input_required, round+1          │  │
//	 │  └─────────────────────────────────────────┘  │ server answered: kept for the retry
//	 │         retry that leaves nothing open        │
//	 ├──▶ finished: the outcome, kept a while  ◀─────┤
//	 └──▶ dead: cancelled, server lost, limits ◀─────┘ time is up, bridge stops
//
// A call that is never asked anything is in no table and leaves nothing behind.
//
// # Decision: a check of our own for forms
//
// Context. The content of a form must fit the schema the server asked with before the server gets it (CLF-08). A library for whole
// JSON Schema is at hand.
//
// Choice. A check of exactly what the revisions allow in such a schema: an object of flat properties that are strings, numbers,
// booleans or lists of choices. What the schema says beyond that is the server's to judge, which validates anyway.
//
// Rejected. The library: it computes numbers as fractions of unbounded size, which a client could make arbitrarily expensive, wants
// everything decoded first, and refuses answers for keywords that no client of such forms knows.
//
// Consequence. Numbers are compared as decimals of any length, at a cost bound by the length of the text.
//
// # Decision: request states hold no bodies
//
// Context. A state travels through the hands of clients and must stay short, whatever a server asks.
//
// Choice. It names the call, the round and who may go on with what, and holds digests of questions where a call may be run again.
// The authenticated text is one blob of package seal, whose head is the id of the key; the name of the server and the prefix are
// authenticated with it, so a state of one server is a forgery at any other.
//
// Rejected. Questions and answers in the state: any replica could go on then, but no replica has the server's open call anyway.
//
// Consequence. A state whose call is gone is void, and that is said (parked_call_lost). Retries of -32042 and of reads run the
// request again and need nothing that is gone.
package parked
