package bridge_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

// Callers that come while the server starts wait for the same start (case 28).
func TestOneOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{}`))
		k.back.gate = make(chan struct{})
		got := make(chan *bridge.Conn, 50)
		for range 50 {
			go func() {
				c, err := k.link.Conn(context.Background())
				if err != nil {
					t.Error(err)
				}
				got <- c
			}()
		}
		ctx, stop := context.WithCancel(t.Context())
		impatient := make(chan *bridge.Error, 1)
		go func() { _, err := k.link.Conn(ctx); impatient <- err }()
		synctest.Wait()
		if k.link.Live() != nil {
			t.Error("live before it is open")
		}
		stop()
		if err := <-impatient; err == nil || err.Status != 503 || err.Reason != bridge.ReasonBackUnavailable {
			t.Errorf("a caller that left: %v", err)
		}
		close(k.back.gate)
		first := <-got
		for range 49 {
			if c := <-got; c != first {
				t.Error("another connection")
			}
		}
		if n := k.back.opens(); n != 1 || k.link.Live() != first {
			t.Errorf("opened %d times", n)
		}
	})
}

// A failed opening is everybody's 503 who waited for it; the next caller tries again.
func TestFailedOpening(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{}`))
	k.back.fail = errors.New("no such file")
	for range 2 {
		_, err := k.link.Conn(t.Context())
		if err == nil || err.Status != 503 || err.Reason != bridge.ReasonBackUnavailable || !strings.Contains(err.Message, "no such file") {
			t.Fatalf("error %v", err)
		}
	}
	k.back.set(func() { k.back.fail = nil })
	k.open(t)
	if n := k.back.opens(); n != 3 {
		t.Errorf("opened %d times, want 3", n)
	}
}

// The start is bounded (case 28) and says which setting bounds it.
func TestStartTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{Limits: bridge.Limits{Start: 30 * time.Second}}, legacyFacts(`{}`))
		k.back.gate = make(chan struct{})
		start := time.Now()
		_, err := k.link.Conn(t.Context())
		if err == nil || err.Status != 503 || !strings.Contains(err.Message, "startTimeout") || strings.Contains(err.Message, "\n") {
			t.Errorf("error %v", err)
		}
		if d := time.Since(start); d != 30*time.Second {
			t.Errorf("after %v", d)
		}
	})
}

// A server that ends right behind its handshake is not available; nobody is given the dead connection.
func TestDeathBehindTheHandshake(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{}`))
	k.back.stillborn = true
	for range 2 {
		if _, err := k.link.Conn(t.Context()); err == nil || err.Status != 503 || !errors.Is(err, errDied) || k.link.Live() != nil {
			t.Fatalf("error %v", err)
		}
		<-k.back.servers
	}
	k.back.set(func() { k.back.stillborn = false })
	if c, _ := k.open(t); c.Err() != nil || k.link.Live() != c {
		t.Error("not live")
	}
}

// After the server's end its calls fail at once, sessions learn of it, and whoever is answered finds a new server (design
// decision 7).
func TestReopen(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{}`))
	s := &session{}
	k.link.Attach(s)
	c, srv := k.open(t)
	ex, out := call("1", "")
	dispatch(t, c, srv, ex)
	srv.die(errDied)
	has(t, out.answer(t), "1", bridge.ReasonBackTerminated)
	again, _ := k.open(t)
	if again == c || again.Err() != nil {
		t.Fatal("the dead connection was handed out")
	}
	if s.mu.Lock(); s.closed != 1 {
		t.Errorf("the session was told %d times", s.closed)
	}
	s.mu.Unlock()
	if k.ev.count(bridge.EventOpened) != 2 || k.ev.count(bridge.EventClosed) != 1 {
		t.Errorf("events %v", k.ev.list)
	}
}

// The log level and the subscriptions are brought back, and sessions are told that things may have changed: only what
// the server declares and they hold (STD-05, SUB-16).
func TestRestore(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{"logging":{},"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true,"listChanged":true}}`))
	holder, other := &session{}, &session{}
	k.link.Attach(holder)
	k.link.Attach(other)
	c, srv := k.open(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.link.SetSessionLevel(context.Background(), c, holder, mcp.ParseLevel("warning"))
		if _, err := k.link.Subscribe(context.Background(), c, holder, []byte(`"file:///a"`)); err != nil {
			t.Error(err)
		}
	}()
	srv.expect(t, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"warning"}}`)
	srv.say(result("1", `{}`))
	srv.expect(t, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"file:///a"}}`)
	srv.say(result("2", `{}`))
	<-done
	if len(holder.take())+len(other.take()) != 0 {
		t.Error("changes were announced before anything was lost")
	}
	srv.die(errDied)
	<-c.Done()

	opened := make(chan *bridge.Conn)
	go func() { c, _ := k.link.Conn(context.Background()); opened <- c }()
	srv = <-k.back.servers
	srv.expect(t, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"warning"}}`)
	select {
	case <-opened:
		t.Fatal("open before the state was restored")
	default:
	}
	srv.say(result("1", `{}`))
	srv.expect(t, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"file:///a"}}`)
	srv.say(`{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"gone"}}`)
	if c := <-opened; c == nil || c.Err() != nil {
		t.Fatal("not open")
	}
	note := func(m string) string { return `{"jsonrpc":"2.0","method":"notifications/` + m + `"}` }
	lists := []string{note("tools/list_changed"), note("resources/list_changed")}
	same(t, "holder", holder.take(), append(lists, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}`))
	same(t, "other", other.take(), lists)
}

// The client of an exclusive link sends its own initialized: each connection that was opened without it gets it, once, and
// one opened after it needs none (translation 2.3).
func TestInitialized(t *testing.T) {
	const line = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	k := newLinkRig(t, bridge.LinkConfig{Exclusive: true}, legacyFacts(`{}`))
	ctx := t.Context()
	first, srv := k.open(t)
	srv.die(errDied)
	<-first.Done()
	second, srv2 := k.open(t)
	k.link.Initialized(ctx, first) // whoever holds the dead connection speaks for the client
	srv2.quiet(t)
	k.link.Initialized(ctx, second)
	srv2.expect(t, line)
	k.link.Initialized(ctx, second)
	srv2.quiet(t)
	srv2.die(errDied)
	<-second.Done()
	third, srv3 := k.open(t)
	k.link.Initialized(ctx, third)
	srv3.quiet(t)
	var held []bool
	for _, o := range k.back.opened {
		held = append(held, o.HoldInitialized)
	}
	if !slices.Equal(held, []bool{true, true, false}) {
		t.Errorf("held %v", held)
	}

	shared := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{}`))
	c, srv := shared.open(t)
	shared.link.Initialized(ctx, c)
	srv.quiet(t)
	if shared.back.opened[0].HoldInitialized {
		t.Error("a shared link leaves initialized to a client")
	}
}

// Close waits for the reading of the server and what it set off, and opens nothing any more (rule 5).
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{}`))
		hold := make(chan struct{})
		s := &session{onClosed: func() { <-hold }}
		k.link.Attach(s)
		c, srv := k.open(t)
		ex, out := call("1", "")
		dispatch(t, c, srv, ex)
		closed := make(chan error, 1)
		go func() { closed <- k.link.Close(context.Background()) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("closed while the end was still being told")
		default:
		}
		close(hold)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		has(t, out.only(t), "1", bridge.ReasonStopping)
		if _, err := k.link.Conn(t.Context()); err == nil || err.Status != 503 {
			t.Errorf("opened again: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // an opening under way is given up
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{}`))
		k.back.gate = make(chan struct{})
		errs := make(chan *bridge.Error, 1)
		go func() { _, err := k.link.Conn(context.Background()); errs <- err }()
		synctest.Wait()
		if err := k.link.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-errs; err == nil || err.Status != 503 {
			t.Errorf("the caller got %v", err)
		}
	})
}
