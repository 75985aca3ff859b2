package bridge

import (
	"context"
	"errors"
	"sync"

	"mcpbridge/framing"
)

// notices are messages that must hold nobody up while the server does not read: cancellations, and answers to the server's
// own requests, which are given by the goroutine that reads it. They wait in the order they came, and one goroutine, which
// is there only while some wait, takes its place behind what waits for room already.
type notices struct {
	mu      sync.Mutex
	list    []framing.Frame
	bytes   int
	running bool
	over    bool // the connection has ended: what waits is for nobody
	wg      sync.WaitGroup
	end     context.CancelFunc // of the goroutine
}

var errNoticesFull = errors.New("too much waits for a server that does not read its input")

// later sends a message at once if there is room, else as soon as there is. It never blocks. A message that is one too many
// is dropped with an event that says what it was; one to a server that takes no input any more is for nobody.
func (c *Conn) later(f framing.Frame, what string) {
	if !c.notices.add(c, f) {
		c.events.emit(Event{Server: c.name, Kind: EventDropped, Detail: what, Err: errNoticesFull})
	}
}

func (n *notices) add(c *Conn, f framing.Frame) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.running {
		err := c.up.Send(atOnce{}, f, false)
		if c.hasRoom(err); !errors.Is(err, errNoRoom) {
			return true
		}
	}
	switch {
	case n.over:
		return true
	case n.bytes > 0 && n.bytes+f.Len() > c.limits.Notices:
		return false
	}
	n.list = append(n.list, f)
	n.bytes += f.Len()
	if !n.running {
		n.running = true
		life, end := context.WithCancel(context.Background())
		n.end = end
		n.wg.Go(func() { n.deliver(life, c) })
	}
	return true
}

// deliver sends what waits, until nothing does or the connection ends.
func (n *notices) deliver(life context.Context, c *Conn) {
	for {
		f, ok := n.next()
		if !ok {
			return
		}
		c.hasRoom(c.up.Send(life, f, false))
		n.mu.Lock()
		n.bytes -= f.Len()
		n.mu.Unlock()
	}
}

func (n *notices) next() (f framing.Frame, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) == 0 || n.over {
		n.list, n.running = nil, false
		n.end()
		return f, false
	}
	f = n.list[0]
	n.list[0] = framing.Frame{}
	n.list = n.list[1:]
	return f, true
}

// close ends the goroutine and waits for it (rule 5).
func (n *notices) close() {
	n.mu.Lock()
	n.over = true
	if n.running {
		n.end()
	}
	n.mu.Unlock()
	n.wg.Wait()
}
