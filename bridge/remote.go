package bridge

import (
	"context"
	"errors"
	"slices"

	"mcpbridge/bridge/mirror"
	"mcpbridge/framing"
)

// StreamReceiver is a Receiver for upstreams that carry each request on a stream of its own, as HTTP does. A Conn is one. The
// first two methods belong to the goroutine of Serve, as those of Receiver do; the others may be called from any.
type StreamReceiver interface {
	Receiver
	// MessageOn takes a message that came on the stream of the request of that id (translation 5.10, HTTP-L-05).
	MessageOn(request int64, m *framing.Message)
	// Fail ends a request that will get no answer. One that has been answered already is left alone.
	Fail(request int64, err *Error)
	// Tool tells which arguments of a tool are mirrored into headers. last is what was told before and turned out to be out of
	// date, nil at first (HTTP-M-36).
	Tool(ctx context.Context, name string, last *ToolHeaders) *ToolHeaders
	// Headers returns the Mcp-Param headers that came with a request, by canonical name (HTTP-M-34).
	Headers(request int64) map[string][]string
	// Lost tells that the server has lost its session: what it had asked is withdrawn. Renewed tells that it has another, which
	// knows nothing of what clients had established (HTTP-L-22).
	Lost()
	Renewed(ctx context.Context)
}

// ToolHeaders are the mirrored arguments of a tool by one reading of the tool list.
type ToolHeaders struct {
	Params []mirror.Param
	Off    error // why the tool is left off the list (XMH-11), nil if it is not
	list   *toolList
}

// RemoteHandler is what the owner of a connection to a remote server knows beside what a Handler does.
type RemoteHandler interface {
	Tool(ctx context.Context, c *Conn, name string, last *ToolHeaders) *ToolHeaders
	Lost(c *Conn)
	Renewed(ctx context.Context, c *Conn)
	// Unwatched tells that the listen by which changes of tools are learned has ended. It may not block.
	Unwatched(c *Conn)
}

var _ StreamReceiver = (*Conn)(nil)

// MessageOn implements StreamReceiver.
func (c *Conn) MessageOn(request int64, m *framing.Message) {
	c.origin = request
	c.Message(m)
	c.origin = 0
}

// Origin is the open exchange on whose stream the message came that is being delivered, nil if that is not known or there
// is none. It is for methods of the Handler that deal with that message.
func (c *Conn) Origin() *Exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.calls[c.origin]; k != nil {
		return k.ex
	}
	return nil
}

// Fail implements StreamReceiver.
func (c *Conn) Fail(request int64, err *Error) {
	c.mu.Lock()
	k := c.calls[request]
	if k != nil {
		c.removeLocked(k)
	}
	c.mu.Unlock()
	if k == nil {
		return
	}
	c.unwatched(k)
	k.fail(err)
}

// unwatched tells the handler of the end of the listen by which it learns of changed tools.
func (c *Conn) unwatched(k *call) {
	if k.endless && k.ex == nil && k.listen == nil && c.remote != nil {
		c.remote.Unwatched(c)
	}
}

// Tool implements StreamReceiver.
func (c *Conn) Tool(ctx context.Context, name string, last *ToolHeaders) *ToolHeaders {
	if c.remote == nil {
		return &ToolHeaders{}
	}
	return c.remote.Tool(ctx, c, name, last)
}

// Headers implements StreamReceiver.
func (c *Conn) Headers(request int64) map[string][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.calls[request]; k != nil && k.ex != nil {
		return k.ex.Headers
	}
	return nil
}

// Lost implements StreamReceiver.
func (c *Conn) Lost() {
	c.mu.Lock()
	c.questions = map[string]*question{}
	for _, k := range c.calls {
		k.asks = 0
	}
	c.mu.Unlock()
	if c.remote != nil {
		c.remote.Lost(c)
	}
}

// Renewed implements StreamReceiver.
func (c *Conn) Renewed(ctx context.Context) {
	if c.remote != nil {
		c.remote.Renewed(ctx, c)
	}
}

var _ RemoteHandler = (*Link)(nil)

// Tool implements RemoteHandler. The list is read anew if the one that last is from is still in hand.
func (l *Link) Tool(ctx context.Context, c *Conn, name string, last *ToolHeaders) *ToolHeaders {
	k := &l.catalog
	if last != nil {
		k.mu.Lock()
		if k.tools == last.list {
			k.conn, k.busy = nil, nil
		}
		k.mu.Unlock()
	}
	l.ToolParams(ctx, c, name, false)
	return k.headers(c, name)
}

// Lost implements RemoteHandler.
func (l *Link) Lost(c *Conn) {
	l.mu.Lock()
	sessions := slices.Clone(l.sessions)
	l.mu.Unlock()
	for _, s := range sessions {
		s.ConnClosed(c)
	}
}

// Renewed implements RemoteHandler.
func (l *Link) Renewed(ctx context.Context, c *Conn) {
	l.catalog.expire()
	l.restore(ctx, c)
}

// Unwatched implements RemoteHandler.
func (l *Link) Unwatched(c *Conn) {
	l.catalog.mu.Lock()
	defer l.catalog.mu.Unlock()
	if l.catalog.watched == c {
		l.catalog.watched, l.catalog.conn = nil, nil
	}
}

// toolList is one reading of tools/list.
type toolList struct {
	mirror.Catalog
	off map[string]error // tools that are left off the list, and why
}

func (k *catalog) headers(c *Conn, name string) *ToolHeaders {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := &ToolHeaders{list: k.tools}
	if k.from != c || k.tools == nil {
		return h
	}
	h.Params, _ = k.tools.Tool(name)
	h.Off = k.tools.off[name]
	return h
}

// drops is the rewriter for modern remote servers: a tool with an annotation that is not valid goes, because no HTTP client
// may offer it (XMH-11); other tools are treated as those of any server.
func (r MirrorRules) drops(server string, events EventFunc) func(raw []byte, tool framing.Span) []framing.Edit {
	other := r.rewriter(server, events)
	return func(raw []byte, tool framing.Span) []framing.Edit {
		name, err := annotated(raw, tool)
		if err == nil {
			return other(raw, tool)
		}
		events.emit(Event{Server: server, Kind: EventTool, Detail: "tool " + name + " is left out", Err: err})
		return []framing.Edit{{At: tool}}
	}
}

// annotated returns a tool's name, and what is wrong with its annotations.
func annotated(raw []byte, tool framing.Span) (name string, err error) {
	members := framing.Members(raw, tool)
	at, _ := framing.Lookup(raw, members, "name")
	name, _ = framing.String(raw[at.Start:at.End])
	schema, _ := framing.Lookup(raw, members, "inputSchema")
	if !schema.OK() {
		return name, nil
	}
	_, err = mirror.Parse(raw[schema.Start:schema.End])
	if _, invalid := errors.AsType[*mirror.Invalid](err); !invalid {
		return name, nil
	}
	return name, err
}
