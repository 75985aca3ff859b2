package bridge

import (
	"context"
	"errors"
	"strconv"
	"time"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Why a message is not sent.
var (
	errNoRoom    = errors.New("server does not read its input")
	errStopping  = errors.New("server is being stopped")
	errCalledOff = errors.New("request was called off")
)

// atOnce is a context for a message that is sent only if there is room for it.
type atOnce struct{}

func (atOnce) Deadline() (time.Time, bool) { return time.Time{}, false }
func (atOnce) Err() error                  { return errNoRoom }
func (atOnce) Value(any) any               { return nil }

func (atOnce) Done() <-chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}

// waiter is a message that waits for room.
type waiter struct {
	ctx context.Context
	end context.CancelCauseFunc
}

// send sends a message, and waits for room if there is none, within Limits.SendWait and Limits.Waiting. k is the request it
// is, nil if it is none.
func (c *Conn) send(ctx context.Context, f framing.Frame, k *call) error {
	err := c.up.Send(atOnce{}, f, k != nil && k.crowd)
	if !errors.Is(err, errNoRoom) {
		c.hasRoom(err)
		return err
	}
	w, err := c.enterQueue(ctx, f.Len(), k)
	if err != nil {
		return err
	}
	defer c.leaveQueue(w, f.Len())
	err = c.up.Send(w.ctx, f, false)
	c.hasRoom(err)
	if err != nil && w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	return err
}

// enterQueue admits a message to those that wait for room.
func (c *Conn) enterQueue(ctx context.Context, size int, k *call) (*waiter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full.CompareAndSwap(false, true) {
		c.fullSince = time.Now()
	}
	left := c.limits.SendWait - time.Since(c.fullSince)
	switch {
	case c.err != nil:
		return nil, c.err
	case c.retired.Load():
		return nil, errStopping
	case k != nil && c.calls[k.id] != k:
		return nil, errCalledOff
	case left <= 0:
		return nil, errNoRoom
	case len(c.waiters) > 0 && c.waiting+size > c.limits.Waiting:
		return nil, &Error{Status: 503, Code: mcp.CodeInternal, Reason: ReasonBackBusy, Retry: 1, Message: "server " + c.name +
			" does not read its input, and " + strconv.Itoa(c.waiting) + " bytes wait for it already; the request was not sent"}
	}
	ctx, stop := context.WithTimeoutCause(ctx, left, errNoRoom)
	w := &waiter{}
	ctx, end := context.WithCancelCause(ctx)
	w.ctx, w.end = ctx, func(cause error) { end(cause); stop() }
	c.waiters[w] = struct{}{}
	c.waiting += size
	if k != nil {
		k.waiter = w
	}
	return w, nil
}

func (c *Conn) leaveQueue(w *waiter, size int) {
	w.end(nil)
	c.mu.Lock()
	delete(c.waiters, w)
	c.waiting -= size
	c.mu.Unlock()
}

// hasRoom notes that the server has taken a message.
func (c *Conn) hasRoom(err error) {
	if err == nil && c.full.Load() {
		c.full.Store(false)
	}
}

// retire tells that the server is about to be stopped on purpose. What waits for room is not sent any more.
func (c *Conn) retire() {
	c.retired.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.waiters {
		w.end(errStopping)
	}
}

// sendError is the answer to a request that was not sent.
func (c *Conn) sendError(err error) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	dead := c.Err()
	switch {
	case c.retired.Load():
		return (&Error{Status: 503, Code: mcp.CodeInternal, Reason: ReasonStopping, Retry: 1,
			Message: "server " + c.name + " is being stopped; the request was not sent"}).Because(err)
	case dead != nil:
		return terminated(c.name, dead)
	case errors.Is(err, errNoRoom), errors.Is(err, context.DeadlineExceeded):
		return &Error{Status: 503, Code: mcp.CodeInternal, Reason: ReasonBackBusy, Retry: 1,
			Message: "server " + c.name + " does not read its input; the request was not sent"}
	}
	return Unavailable("cannot send to server " + c.name + ": " + err.Error()).Because(err)
}
