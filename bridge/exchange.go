package bridge

import (
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Principal names who a front authenticated. Nothing crosses from one principal to another (rule 2, SEC-08).
type Principal string

const (
	// Local is everybody who reaches the bridge over loopback, a Unix socket or stdio: the OS user, one trust domain.
	Local Principal = "local"
	// Anonymous is everybody on another unauthenticated listener: nobody is trusted to be the same person twice.
	Anonymous Principal = "anonymous"
)

// Exchange is one client request on its way, with everything known about its sender.
type Exchange struct {
	Message   *framing.Message
	Era       mcp.Era     // of the front
	Version   mcp.Version // modern: of this request; legacy: negotiated
	Method    string
	Traits    mcp.Traits
	Principal Principal
	Session   Session   // legacy fronts only, else nil
	Level     mcp.Level // log level this request asked for, mcp.NoLevel for none (LOG-01)
	Envelope  []byte    // legacy front before a modern server: raw client capabilities to declare
	Info      []byte    // legacy front before a modern server: raw clientInfo
	// Headers are the Mcp-Param headers of a modern HTTP client, by canonical name: those that nobody here recognises go on to a
	// modern remote server (HTTP-M-34).
	Headers map[string][]string
	Sink    Sink
	Asker   Asker // modern call that a legacy server may ask something in, else nil; it is the Sink too
}

// Answer is the one final message of an exchange.
type Answer struct {
	Frame  framing.Frame
	Status int // HTTP status while nothing has been sent yet (translation 11.4)
}

// Sink takes what comes back for an exchange. None of its methods may block: they are called from the goroutine that
// reads the server. A sink bounds itself. A call that is cancelled or out of time may be finished while a notification
// or question for it is on its way: what comes behind Finish is dropped.
type Sink interface {
	// Notify takes a notification about this request. Of several with the same key only the newest need survive
	// when the reader is slow; an empty key is never merged.
	Notify(f framing.Frame, key string)
	// Ask takes a request of the server to the client (legacy fronts only).
	Ask(f framing.Frame)
	// Finish takes the answer. It is called exactly once.
	Finish(a Answer)
}

// Session is a legacy session as the core sees it: where the server's own requests and unrelated notifications go.
// No method may block.
type Session interface {
	// Declares reports whether the client declared a feature: "elicitation", "sampling" or "roots".
	Declares(feature string) bool
	// Ask relays a server's request under an id of the session's own (translation 4.1), on the stream of the exchange
	// it belongs to, or on the session's own stream when via is nil. The answer goes back to c.
	Ask(c Questioner, m *framing.Message, via Sink)
	// Withdraw relays the server's cancellation of a request it made; id is the server's id of that request.
	Withdraw(c Questioner, m *framing.Message, id []byte)
	// Notify takes a notification that belongs to no request. Equal keys are merged while nobody listens.
	Notify(f framing.Frame, key string)
	// Listening reports whether the client has a stream open for what the server sends of its own accord.
	Listening() bool
	// ConnClosed tells that a connection is gone: questions it asked are withdrawn from the client.
	ConnClosed(c *Conn)
}

// Fail finishes an exchange with an error of the bridge.
func (e *Exchange) Fail(err *Error) {
	if e.Asker != nil {
		e.Asker.Failed(err)
		return
	}
	if f, ok := e.Sink.(interface{ Failed(*Error) bool }); ok && f.Failed(err) {
		return
	}
	err = err.WithID(e.Message.Bytes(e.Message.ID))
	e.Sink.Finish(Answer{Frame: framing.Whole(err.Body(e.Era == mcp.Legacy)), Status: err.HTTPStatus()})
}
