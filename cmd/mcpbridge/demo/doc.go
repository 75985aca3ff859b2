// Package demo is a small stdio MCP server that speaks both protocol eras: the four legacy revisions through initialize
// and 2026-07-28 per request, interleaved on one connection as the specification allows (STD-12). `mcpbridge serve`
// runs it when nothing else is configured, and tests use it as a peer.
//
// It owns the tools, resources and prompts it shows and the whole of its side of the protocol. It is a peer of the
// bridge, not a part of it: it must not use the bridge's framing, translation or process code, only its vocabulary.
//
// One mutex guards the state and the output, so that whatever is decided about a request (cancelled, answered) holds
// for every byte written afterwards (CAN-03, STD-08). Quick requests are answered in the order they arrive, by the
// reading goroutine; tools that wait run in goroutines of their own.
package demo
