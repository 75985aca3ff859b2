package bridge

import (
	"context"
	"errors"
	"strconv"
	"time"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// RoundTrip sends a request of the bridge's own and waits for the answer, a Result or Error message. params is a raw
// object or nil. When ctx ends an established server is told that the answer is not waited for any more (CAN-08); one in
// its handshake is not (CAN-02).
func (c *Conn) RoundTrip(ctx context.Context, method string, params []byte) (*framing.Message, error) {
	k := &call{reply: make(chan *framing.Message, 1), started: time.Now()}
	k.deadline = k.started.Add(c.limits.HardTimeout) // a net below: ctx is what bounds it
	k.stage.Store(sent)
	if err := c.add(k); err != nil {
		return nil, err
	}
	if err := c.send(ctx, ownRequest(k.id, method, params), k); err != nil {
		c.drop(k)
		return nil, c.ownError(err)
	}
	select {
	case m, ok := <-k.reply:
		return c.replied(k, m, ok)
	case <-ctx.Done():
	}
	if !c.drop(k) {
		m, ok := <-k.reply // the answer has just come
		return c.replied(k, m, ok)
	}
	if c.established() {
		c.tellCancelled(k.id, nil)
	}
	return nil, context.Cause(ctx)
}

func (c *Conn) replied(k *call, m *framing.Message, ok bool) (*framing.Message, error) {
	if ok {
		return m, nil
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	return nil, k.failed
}

// Notify sends a notification of the bridge's own.
func (c *Conn) Notify(ctx context.Context, method string, params []byte) error {
	b := framing.AppendString([]byte(`{"jsonrpc":"2.0","method":`), method)
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	return c.send(ctx, framing.Whole(append(b, '}')), nil)
}

// Forward sends a message as it is. That it could not be sent is reported too.
func (c *Conn) Forward(ctx context.Context, f framing.Frame) error {
	err := c.send(ctx, f, nil)
	if err != nil {
		c.events.emit(Event{Server: c.name, Kind: EventDropped, Detail: "message of a client", Err: err})
	}
	return err
}

// ownError is the failure of a request of the bridge's own that was not sent.
func (c *Conn) ownError(err error) error {
	if errors.Is(err, errNoRoom) || errors.Is(err, errStopping) {
		return c.sendError(err)
	}
	return err
}

func ownRequest(id int64, method string, params []byte) framing.Frame {
	b := strconv.AppendInt([]byte(`{"jsonrpc":"2.0","id":`), id, 10)
	b = framing.AppendString(append(b, `,"method":`...), method)
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	return framing.Whole(append(b, '}'))
}

// Watch opens a listen of the bridge's own at a modern server. What comes is given to the handler; the answer, which ends
// it, is dropped.
func (c *Conn) Watch(ctx context.Context, params []byte) error {
	k := &call{reply: make(chan *framing.Message, 1), started: time.Now(), endless: true}
	k.stage.Store(sent)
	if err := c.add(k); err != nil {
		return err
	}
	if err := c.send(ctx, ownRequest(k.id, mcp.Listen, params), k); err != nil {
		c.drop(k)
		return c.ownError(err)
	}
	return nil
}
