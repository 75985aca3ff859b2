// Package era turns the messages of one protocol era into those of the other: legacy (2024-11-05 .. 2025-11-25, opened
// by initialize) and modern (2026-07-28, everything in each request). It owns what is added, removed and rewritten when a
// message crosses, the handshake and discovery results made from one another, the mapping of capabilities and error
// codes, and the reading of an era probe. It consists of pure functions and small structs: it must not know links,
// sessions, transports, clocks or goroutines, and it speaks in edits, so that every byte it does not own stays (FRM-30).
//
// # What is carried
//
//   - Requests: method, all params and all _meta keys nobody reserved, traceparent, tracestate and baggage among them,
//     byte for byte (FRM-28, FRM-29). Id and progress token are replaced and can be restored.
//   - Results: all members the other era does not define otherwise, vendor _meta keys, empty cursors (FEA-06), isError.
//     A legacy result gains resultType, the caching hints where they are due and the server's identity (FRM-21, CCH-01,
//     META-10); a modern one loses exactly these.
//   - Errors: every code that means the same in both eras, with its message and data. A code that would mean something
//     else is wrapped: code, and data where there is some, stay readable under data.original (FRM-18).
//   - Server capabilities: tools, prompts, resources, logging, completions, experimental and the Apps extension; client
//     capabilities: elicitation, sampling, roots, experimental and the Apps extension (META-14, EXT-03).
//   - Within one era nothing is stripped: legacy to legacy changes id and token and, on links that are not exclusive,
//     what an older client would reject; modern to modern changes id, token and envelope, and adds result fields the
//     revision demands.
//
// # What is lost
//
//   - Towards a legacy server: the envelope, subscriptionId, inputResponses, requestState. Others act on them first.
//   - Between the eras: the experimental task parameter and related-task key of 2025-11-25, extensions other than Apps,
//     capabilities neither era's table names, roots.listChanged, tool execution hints towards modern clients.
//   - A legacy result's own resultType is overwritten. Caching hints that make no sense become 0 and private.
//   - Towards older clients: audio (2024-11-05), resource links (before 2025-06-18) and blocks of unknown type (before
//     2025-11-25) become a line of text; the block's annotations and _meta stay, its data does not. Structured content
//     that is no object becomes text, an output schema that is not of type object disappears (FEA-08).
//   - The code -32042 towards clients that do not know it: the URLs move into the message.
//   - Flags a bridge cannot honour are dropped from the discovery result when the caller says so.
//
// # What crosses, cell by cell
//
// First for a legacy client before a modern server, then for a modern client before a legacy one. Between equals everything is the
// same. `mcpbridge doctor` prints what of it concerns a server.
//
//   - handshake: initialize is answered from the server's discovery; discovery is answered from the server's
//     handshake, which the bridge makes.
//   - tools: the same, both ways.
//   - resources: the same, both ways.
//   - prompts: the same, both ways.
//   - completion: the same, both ways.
//   - progress and cancellation: the same, both ways.
//   - log messages: the session's level goes with each request; those a request asked for, if they can be told to be
//     about it.
//   - questions of the server (elicitation, sampling, roots): asked by requests on the stream of the call, which is
//     then made again with the answers; the call is parked: the client is asked in its result, and a further request
//     brings the answers.
//   - changes of lists: the bridge listens for the session; told on the client's listen.
//   - changes of resources: a subscription becomes a listen; a listen becomes a subscription, shared by all who want
//     it.
//   - tasks: never offered; never offered; a tool that runs as a task only cannot be called.
package era
