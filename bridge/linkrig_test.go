package bridge_test

import (
	"context"
	"sync"
	"testing"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

// back opens connections to fake servers, one at a time.
type back struct {
	mu        sync.Mutex
	facts     bridge.Facts
	opened    []bridge.OpenOptions
	current   *bridge.Conn
	servers   chan *server // each opened, in order
	gate      chan struct{}
	fail      error
	stillborn bool // servers end right behind the handshake
	last      *server
}

func (b *back) Open(ctx context.Context, o bridge.OpenOptions) (*bridge.Conn, error) {
	b.mu.Lock()
	b.opened = append(b.opened, o)
	gate, fail, facts, stillborn := b.gate, b.fail, b.facts, b.stillborn
	b.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if fail != nil {
		return nil, fail
	}
	srv := newServer()
	c := bridge.NewConn(srv, o.Conn)
	c.Establish(facts)
	if stillborn {
		srv.die(errDied)
		<-c.Done()
	}
	b.mu.Lock()
	b.current, b.last = c, srv
	b.mu.Unlock()
	b.servers <- srv
	return c, nil
}

func (b *back) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *back) opens() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.opened)
}

func (b *back) Halt(ctx context.Context) error { return b.Close(ctx) }

// Close ends the server without waiting for the connection: that is the link's affair.
func (b *back) Close(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != nil {
		b.last.die(errDied)
	}
	return nil
}

// linkRig is a link over fake servers.
type linkRig struct {
	link *bridge.Link
	back *back
	ev   *events
}

func newLinkRig(t *testing.T, cfg bridge.LinkConfig, f bridge.Facts) *linkRig {
	k := &linkRig{back: &back{facts: f, servers: make(chan *server, 100)}, ev: &events{}}
	cfg.Name, cfg.Back, cfg.Events, cfg.Want = "srv", k.back, k.ev.add, mcp.Legacy
	k.link = bridge.NewLink(t.Context(), cfg)
	t.Cleanup(func() { _ = k.link.Close(context.Background()) })
	return k
}

// open returns the live connection and its server.
func (k *linkRig) open(t *testing.T) (*bridge.Conn, *server) {
	t.Helper()
	c, err := k.link.Conn(t.Context())
	if err != nil {
		t.Fatalf("Conn: %v", err)
	}
	return c, <-k.back.servers
}
