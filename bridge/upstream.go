package bridge

import (
	"context"

	"mcpbridge/framing"
)

// Upstream is one live connection to a server as the core sees it, whatever the transport.
type Upstream interface {
	// Send queues one message. It blocks only while the server does not read and its queue is full, until ctx ends; with
	// a ctx that has ended it still takes a message there is room for, and gives ctx.Err() if there is none. What waits first
	// is sent first. crowd tells that other messages are likely to follow at once, so that they may be sent together.
	Send(ctx context.Context, f framing.Frame, crowd bool) error
	// Serve delivers what the server sends, from one goroutine, until the connection ends, and returns why. It is
	// called once.
	Serve(r Receiver) error
	// Close ends the connection and what runs behind it, within ctx.
	Close(ctx context.Context) error
}

// Dispatched is a request that is under way for a client.
type Dispatched interface {
	// Cancel tells that its client does not wait any more; reason is a raw JSON string. It reports false when it is over already.
	Cancel(reason []byte) bool
}

// Receiver takes what a server sends.
type Receiver interface {
	// Message takes one well-formed message.
	Message(m *framing.Message)
	// Malformed takes bytes that are no acceptable message.
	Malformed(raw []byte, err error)
}

// Event is something an operator may want to know. Libraries emit events; the composition root logs and counts them.
type Event struct {
	Server string
	Kind   EventKind
	Detail string
	Err    error
}

// EventKind is a fixed vocabulary, fit for a metric label.
type EventKind string

// The kinds of events the core emits.
const (
	EventOpened    EventKind = "link_opened"
	EventClosed    EventKind = "link_closed"
	EventJunk      EventKind = "junk_output"        // a line of the server's that is no message (FRM-06)
	EventViolation EventKind = "protocol_violation" // a message the server should not have sent
	EventDropped   EventKind = "message_dropped"    // a message nobody can be given
	EventServerLog EventKind = "server_log"         // a log message that belongs to no request (LOG-09)
	EventTimeout   EventKind = "request_timeout"
	EventTool      EventKind = "tool_annotation" // an invalid x-mcp-header (XMH-12)
)

// EventFunc takes events; it must not block. A nil EventFunc drops them.
type EventFunc func(Event)

func (f EventFunc) emit(e Event) {
	if f != nil {
		f(e)
	}
}
