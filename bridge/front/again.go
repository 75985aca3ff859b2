package front

import (
	"mcpbridge/bridge"
)

// again decides what becomes of a request that could not be sent. If that is because its connection was ending just then, by
// itself or because its server is started anew, nothing has been done with the request, and it is given to the server's next
// incarnation, once: what the client sees is a call that works although the server has ended before it (STD-04, STD-06). It
// returns nil if the error is the answer, as when the server is stopped for good.
func (x *exchange) again(link *bridge.Link, conn *bridge.Conn, err *bridge.Error) *bridge.Conn {
	switch err.Reason {
	case bridge.ReasonBackTerminated, bridge.ReasonBackUnavailable, bridge.ReasonStopping:
	default:
		return nil
	}
	if x.stopping() {
		return nil
	}
	if next, failed := link.Conn(x.r.Context()); failed != nil || next != conn {
		return next
	}
	select {
	case <-conn.Done(): // soon: a process that takes no input is ended
	case <-x.r.Context().Done():
		return nil
	case <-x.cfg.Stopping:
		return nil
	}
	next, failed := link.Conn(x.r.Context())
	if failed != nil || next == conn {
		return nil
	}
	return next
}

func (x *exchange) stopping() bool {
	select {
	case <-x.cfg.Stopping:
		return true
	default:
		return false
	}
}
