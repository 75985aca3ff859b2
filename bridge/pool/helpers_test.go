package pool_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/pool"
	"mcpbridge/framing"
)

func newPool(t *testing.T, s *shop, cfg pool.Config) *pool.Pool {
	cfg.Name = "srv"
	if cfg.Link.Limits.Timeout == 0 {
		cfg.Link.Limits.Timeout = 24 * time.Hour // calls last as long as the test wants
	}
	if cfg.Back == nil {
		cfg.Back = s.back
	}
	return pool.New(t.Context(), cfg)
}

func closePool(t *testing.T, p *pool.Pool) {
	t.Helper()
	if err := p.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// running runs a pool's own work; the function returned ends it, and closes the pool.
func running(t *testing.T, p *pool.Pool) (end func()) {
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(ctx) })
	return func() {
		t.Helper()
		stop()
		wg.Wait()
		closePool(t, p)
	}
}

func modern(principal bridge.Principal) pool.Key {
	return pool.Key{Era: mcp.Modern, Principal: principal}
}

func shared(t *testing.T, p *pool.Pool, k pool.Key) *bridge.Link {
	t.Helper()
	l, err := p.Shared(k, nil)
	if err != nil {
		t.Fatalf("no link for %v: %v", k, err)
	}
	return l
}

func exclusive(t *testing.T, p *pool.Pool) *bridge.Link {
	t.Helper()
	l, err := p.Exclusive(nil, false)
	if err != nil {
		t.Fatalf("no exclusive link: %v", err)
	}
	return l
}

func open(t *testing.T, l *bridge.Link) *bridge.Conn {
	t.Helper()
	c, err := l.Conn(t.Context())
	if err != nil {
		t.Fatalf("cannot open: %v", err)
	}
	return c
}

// opened returns exclusive links with a process each.
func opened(t *testing.T, p *pool.Pool, n int) (links []*bridge.Link) {
	t.Helper()
	for range n {
		l := exclusive(t, p)
		open(t, l)
		links = append(links, l)
	}
	return links
}

// call keeps a request open at the server of a link until end is called.
func call(t *testing.T, l *bridge.Link, method string) (end func()) {
	t.Helper()
	m, err := framing.Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	ticket, refused := open(t, l).Dispatch(t.Context(), &bridge.Exchange{Message: m, Method: method, Era: mcp.Modern, Sink: sink{}})
	if refused != nil {
		t.Fatal(refused)
	}
	return func() { ticket.Cancel(nil) }
}

// busy opens links and keeps a request open on each.
func busy(t *testing.T, links ...*bridge.Link) {
	t.Helper()
	for _, l := range links {
		call(t, l, mcp.ToolsCall)
	}
}

// outcome is how an opening went.
type outcome struct {
	err  *bridge.Error
	took time.Duration
}

// opening opens a link in the background.
func opening(t *testing.T, l *bridge.Link) <-chan outcome {
	done, began := make(chan outcome, 1), time.Now()
	go func() {
		_, err := l.Conn(t.Context())
		done <- outcome{err, time.Since(began)}
	}()
	return done
}

// entry finds what the pool knows about a link.
func entry(t *testing.T, p *pool.Pool, l *bridge.Link) pool.Entry {
	t.Helper()
	for _, e := range p.Entries() {
		if e.Link == l {
			return e
		}
	}
	t.Fatal("the pool does not know the link")
	return pool.Entry{}
}

// proc is the process of a link.
func proc(t *testing.T, p *pool.Pool, l *bridge.Link) *process {
	t.Helper()
	return entry(t, p, l).Back.(*server).current()
}

// kinds counts the entries of a pool.
func kinds(p *pool.Pool) map[string]int {
	n := map[string]int{}
	for _, e := range p.Entries() {
		n[e.Kind]++
	}
	return n
}
