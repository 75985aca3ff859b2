package survive

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync"
	"testing"
)

// balancer gives what comes in to its targets in turn. One that cannot be reached is passed over.
type balancer struct {
	addr string

	mu      sync.Mutex
	targets []string
	turn    int
	counts  map[string]int
	conns   map[net.Conn]bool
	closed  bool
}

func newBalancer(targets []string) *balancer {
	return &balancer{targets: targets, counts: map[string]int{}, conns: map[net.Conn]bool{}}
}

// dial connects to the target whose turn it is.
func (b *balancer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	var failed error
	for range b.targets {
		b.mu.Lock()
		target := b.targets[b.turn%len(b.targets)]
		b.turn++
		b.mu.Unlock()
		c, err := d.DialContext(ctx, "tcp", target)
		if err == nil {
			b.mu.Lock()
			b.counts[target]++
			b.mu.Unlock()
			return c, nil
		}
		failed = err
	}
	return nil, failed
}

// wantBoth checks that each target had its share.
func (b *balancer) wantBoth(t testing.TB, atLeast int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, target := range b.targets {
		if b.counts[target] < atLeast {
			t.Errorf("the balancer made %v connections, want %d to each at least", b.counts, atLeast)
			return
		}
	}
}

// keep holds a connection so that it can be closed with the balancer, and reports whether there still is one.
func (b *balancer) keep(c net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		_ = c.Close()
		return false
	}
	b.conns[c] = true
	return true
}

func (b *balancer) drop(c net.Conn) {
	_ = c.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, c)
}

// balanceConnections is a TCP balancer: it knows nothing of what it carries.
func balanceConnections(t testing.TB, targets ...string) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := newBalancer(targets)
	b.addr = l.Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { b.carry(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		b.mu.Lock()
		b.closed = true
		for c := range b.conns {
			_ = c.Close()
		}
		b.mu.Unlock()
		wg.Wait()
	})
	return b
}

// carry connects a client with a target until one of them leaves.
func (b *balancer) carry(client net.Conn) {
	if !b.keep(client) {
		return
	}
	defer b.drop(client)
	target, err := b.dial(context.Background(), "", "")
	if err != nil || !b.keep(target) {
		return
	}
	defer b.drop(target)
	var wg sync.WaitGroup
	for _, pair := range [][2]net.Conn{{client, target}, {target, client}} {
		wg.Go(func() {
			_, _ = io.Copy(pair[1], pair[0])
			_ = client.Close()
			_ = target.Close()
		})
	}
	wg.Wait()
}

// balanceRequests is an HTTP balancer that opens a connection for each request.
func balanceRequests(t testing.TB, targets ...string) *balancer {
	t.Helper()
	b := newBalancer(targets)
	transport := &http.Transport{DisableKeepAlives: true, DialContext: b.dial, DisableCompression: true}
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", targets[0]
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
	srv := httptest.NewServer(proxy)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // a replica that is killed cuts answers off
	b.addr = srv.Listener.Addr().String()
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return b
}
