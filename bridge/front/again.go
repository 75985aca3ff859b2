package front

import (
	"mcpbridge/bridge"
)

// again decides what becomes of a request that could not be sent. If that is because its connection was ending just then,
// nothing has been done with the request, and it is given to the server's next incarnation, once: what the client sees is a
// call that works although the server has ended before it (STD-04, STD-06). It returns nil if the error is the answer.
func (x *exchange) again(link *bridge.Link, conn *bridge.Conn, err *bridge.Error) *bridge.Conn {
	if err.Reason != bridge.ReasonBackTerminated && err.Reason != bridge.ReasonBackUnavailable {
		return nil
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
