package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/mirror"
	"mcpbridge/framing"
)

const (
	// catalogPages bounds how many pages of tools/list are read.
	catalogPages = 1000
	// catalogPause is the least time between two fetches of a tool list that a mismatch or a failure asks for.
	catalogPause = time.Second
)

// catalog caches which arguments of which tools are mirrored into headers. It is fetched with the first tool call of a
// modern client, and again after the server announced a change, ended, or a header did not fit; never per call (XMH-18).
type catalog struct {
	mu       sync.Mutex
	conn     *Conn // the connection whose list this is, nil once it is out of date
	from     *Conn // the connection the content was read from
	tools    *toolList
	tried    time.Time
	busy     *Conn // the connection that could not be asked the last time
	fetching chan struct{}
	watched  *Conn // the modern connection whose changes are listened to
}

func (k *catalog) expire() {
	k.mu.Lock()
	k.conn = nil
	k.mu.Unlock()
}

// ToolParams returns the mirrored parameters of a tool. again asks for a newer list than the one in hand, at most one a
// second. A server without tools, or whose list cannot be read, has none: it decides by itself.
func (l *Link) ToolParams(ctx context.Context, c *Conn, tool string, again bool) []mirror.Param {
	k := &l.catalog
	for {
		k.mu.Lock()
		wait := k.fetching
		recent := time.Since(k.tried) < catalogPause
		fresh := wait == nil && (k.conn == c && (!again || recent) || k.busy == c && recent)
		if !fresh && wait == nil {
			k.fetching = make(chan struct{})
		}
		k.mu.Unlock()
		switch {
		case fresh:
			return k.lookup(c, tool)
		case wait == nil:
			l.fetchCatalog(ctx, c)
			return k.lookup(c, tool)
		}
		select {
		case <-wait:
			if k.of(c) {
				return k.lookup(c, tool)
			} // it was the list of a server that has ended since
		case <-ctx.Done():
			return k.lookup(c, tool)
		}
	}
}

func (k *catalog) of(c *Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.from == c
}

func (k *catalog) lookup(c *Conn, tool string) []mirror.Param {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.from != c {
		return nil
	}
	if k.tools == nil {
		return nil
	}
	params, _ := k.tools.Tool(tool)
	return params
}

// fetchCatalog reads the list and wakes those who wait. A failed fetch counts as an empty list until the next change, for a
// moment only if the server was too busy to be asked; a change announced meanwhile makes the next call fetch again.
func (l *Link) fetchCatalog(ctx context.Context, c *Conn) {
	k := &l.catalog
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.Limits.Start)
	defer stop()
	k.mu.Lock()
	k.conn = c
	k.mu.Unlock()
	var tools *toolList
	var err error
	if era.HasCapability(c.Facts().Capabilities(), "tools") {
		l.watchTools(ctx, c) // first, so that no change falls between
		tools, err = l.readTools(ctx, c)
	}
	if err != nil {
		l.cfg.Events.emit(Event{Server: l.cfg.Name, Kind: EventTool, Detail: "cannot read tools/list, headers of arguments are not checked", Err: err})
	}
	k.mu.Lock()
	k.tools, k.from, k.tried, k.busy = tools, c, time.Now(), nil
	if own, ok := errors.AsType[*Error](err); ok && own.Reason == ReasonBackBusy {
		k.conn, k.busy = nil, c
	}
	close(k.fetching)
	k.fetching = nil
	k.mu.Unlock()
}

// watchTools listens to tool changes of a modern server, which announces them only to those who asked (SUB-02).
func (l *Link) watchTools(ctx context.Context, c *Conn) {
	f := c.Facts()
	if f.Era != mcp.Modern || !era.HasCapability(f.Discovery.Capabilities, "tools", "listChanged") {
		return
	}
	l.catalog.mu.Lock()
	known := l.catalog.watched == c
	l.catalog.mu.Unlock()
	if known || !l.cfg.Remote && c.listensTools() || c.Watch(ctx, OwnParams(f.Version, `"notifications":{"toolsListChanged":true}`)) != nil {
		return
	}
	l.catalog.mu.Lock()
	l.catalog.watched = c
	l.catalog.mu.Unlock()
}

// OwnParams builds the params of a request of the bridge's own to a modern server; members may be empty.
func OwnParams(v mcp.Version, members string) []byte {
	p := `{"_meta":{"` + mcp.MetaProtocolVersion + `":"` + string(v) + `","` + mcp.MetaClientInfo +
		`":{"name":"mcpbridge","version":"1"},"` + mcp.MetaClientCapabilities + `":{}}`
	if members != "" {
		p += "," + members
	}
	return []byte(p + "}")
}

func (l *Link) readTools(ctx context.Context, c *Conn) (*toolList, error) {
	tools := &toolList{off: map[string]error{}}
	rewrite := c.tools
	cursor := ""
	for range catalogPages {
		m, err := c.RoundTrip(ctx, mcp.ToolsList, l.listParams(c, cursor))
		if err != nil {
			return nil, err
		}
		if m.Kind == framing.Error {
			return nil, fmt.Errorf("server answered tools/list with %s", m.Bytes(m.Error))
		}
		next := m.Bytes(m.ResultMember("nextCursor"))
		if m, err = rewriteTools(m, rewrite, tools.off); err != nil {
			return nil, err
		}
		tools.Add(m)
		if len(next) == 0 || framing.IsNull(next) {
			return tools, nil
		}
		if string(next) == cursor {
			return nil, errors.New("tools/list repeats its cursor")
		}
		cursor = string(next)
	}
	return nil, errors.New("tools/list has too many pages")
}

func (l *Link) listParams(c *Conn, cursor string) []byte {
	if cursor != "" {
		cursor = `"cursor":` + cursor
	}
	if c.Facts().Era == mcp.Modern {
		return OwnParams(c.Facts().Version, cursor)
	}
	return []byte("{" + cursor + "}")
}

// rewriteTools gives the list the form clients see, so that headers are checked against what they were told. Tools that
// clients do not see stay, and are entered in off.
func rewriteTools(m *framing.Message, rewrite era.ToolRewriter, off map[string]error) (*framing.Message, error) {
	list := m.ResultMember("tools")
	if rewrite == nil || !list.OK() || !framing.IsArray(m.Bytes(list)) {
		return m, nil
	}
	var edits []framing.Edit
	for _, tool := range framing.Elements(m.Raw, list) {
		change := rewrite(m.Raw, tool)
		if len(change) == 1 && change[0].At == tool && len(change[0].New) == 0 {
			name, err := annotated(m.Raw, tool)
			off[name] = err
			continue
		}
		edits = append(edits, change...)
	}
	if len(edits) == 0 {
		return m, nil
	}
	return framing.Scan(framing.Rewrite(m.Raw, edits).Bytes())
}

// MirrorRules are annotations the operator adds: tool name -> property path, dots for nesting -> header name (design
// decision 11).
type MirrorRules map[string]map[string]string

// rewriter returns the edits of one tool: annotations that are not valid are taken off, all of them, and the tool stays
// (XMH-12); those of the operator are added.
func (r MirrorRules) rewriter(server string, events EventFunc) era.ToolRewriter {
	return func(raw []byte, tool framing.Span) []framing.Edit {
		members := framing.Members(raw, tool)
		nameSpan, _ := framing.Lookup(raw, members, "name")
		schema, _ := framing.Lookup(raw, members, "inputSchema")
		if !schema.OK() {
			return nil
		}
		name, _ := framing.String(raw[nameSpan.Start:nameSpan.End])
		add := r[name]
		_, err := mirror.Parse(raw[schema.Start:schema.End])
		if err == nil && len(add) == 0 {
			return nil
		}
		entry := append([]byte(nil), raw[tool.Start:tool.End]...)
		if err != nil {
			events.emit(Event{Server: server, Kind: EventTool, Detail: "tool " + name, Err: err})
			entry = framing.Rewrite(entry, mirror.Strip(entry, whole(entry))).Bytes()
		}
		if len(add) > 0 {
			edits, err := mirror.Annotate(entry, whole(entry), add)
			if err != nil {
				events.emit(Event{Server: server, Kind: EventTool, Detail: "cannot mirror arguments of tool " + name, Err: err})
			} else {
				entry = framing.Rewrite(entry, edits).Bytes()
			}
		}
		s, _ := framing.Lookup(entry, framing.Members(entry, whole(entry)), "inputSchema")
		return []framing.Edit{{At: schema, New: entry[s.Start:s.End]}}
	}
}

func whole(raw []byte) framing.Span { return framing.Span{Start: 0, End: uint32(len(raw))} }
