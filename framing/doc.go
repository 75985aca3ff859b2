// Package framing owns the step between bytes and JSON-RPC messages: the strict scan of one message, byte-exact edits
// of a scanned message, newline framing of streams in both directions, and batches.
//
// A message is never decoded into values and encoded again. [Scan] checks the text once and remembers where the members
// the bridge reads begin and end; [EditObject] and [Rewrite] replace single spans, and every other byte passes as it
// came (FRM-30). What the scan accepts is unambiguous: RFC 8259 grammar, valid UTF-8, no trailing data, no duplicate names
// among the members that are read (FRM-01, FRM-02, FRM-08, FRM-13, FRM-34). Policy, routing and forwarding all look at
// the same scan, so that no two of them can understand a message differently.
//
// The package must not know what a method means, which revision is spoken, where bytes come from or who sent them. It
// imports no other package of this module.
package framing
