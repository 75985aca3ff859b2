package bridge_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

type subscribed struct {
	refused *framing.Message
	err     *bridge.Error
}

func (k *linkRig) subscribing(c *bridge.Conn, s *session, uri string) <-chan subscribed {
	ch := make(chan subscribed, 1)
	go func() {
		m, err := k.link.Subscribe(context.Background(), c, s, []byte(uri))
		ch <- subscribed{m, err}
	}()
	return ch
}

// subscribe makes a session the first holder of a URI.
func (k *linkRig) subscribe(t *testing.T, c *bridge.Conn, srv *server, s *session, uri string) {
	t.Helper()
	ch := k.subscribing(c, s, uri)
	m := srv.next(t)
	if got, want := string(m.Raw), `{"jsonrpc":"2.0","id":`+idOf(m)+`,"method":"resources/subscribe","params":{"uri":`+uri+`}}`; got != want {
		t.Fatalf("the bridge sent %s, want %s", got, want)
	}
	srv.say(result(idOf(m), `{}`))
	if got := <-ch; got.err != nil || got.refused != nil {
		t.Fatalf("subscribe: %v", got)
	}
}

const sharedResources = `{"resources":{"subscribe":true},"logging":{}}`

// The first holder's request and the last one's release reach the server, and its answer to the first decides
// (translation 8.4).
func TestSubscriptionsAreCounted(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(sharedResources))
	a, b := &session{}, &session{}
	k.link.Attach(a)
	k.link.Attach(b)
	c, srv := k.open(t)
	ch := k.subscribing(c, a, `"u"`)
	srv.next(t)
	srv.say(`{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"no"}}`)
	if got := <-ch; got.refused == nil || got.err != nil {
		t.Fatalf("refused: %v", got)
	}
	k.subscribe(t, c, srv, a, `"u"`)
	for range 2 {
		if got := <-k.subscribing(c, b, `"u"`); got.err != nil || got.refused != nil {
			t.Fatalf("second holder: %v", got)
		}
	}
	k.link.Unsubscribe(t.Context(), c, a, []byte(`"u"`))
	k.link.Unsubscribe(t.Context(), c, a, []byte(`"u"`))
	k.link.Unsubscribe(t.Context(), c, a, []byte(`"never"`))
	srv.quiet(t)
	k.link.Detach(b) // the last holder leaves
	m := srv.next(t)
	if !m.MethodIs(mcp.ResourcesUnsubscribe) {
		t.Errorf("the bridge sent %s", m.Raw)
	}
	srv.say(result(idOf(m), `{}`))
}

// Of concurrent first holders one asks the server; the others get its word.
func TestConcurrentSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(sharedResources))
		c, srv := k.open(t)
		var all []<-chan subscribed
		for range 10 {
			s := &session{}
			k.link.Attach(s)
			all = append(all, k.subscribing(c, s, `"u"`))
		}
		synctest.Wait()
		m := srv.next(t)
		srv.quiet(t)
		srv.say(result(idOf(m), `{}`))
		for _, ch := range all {
			if got := <-ch; got.err != nil || got.refused != nil {
				t.Errorf("subscribe: %v", got)
			}
		}
		srv.quiet(t)
	})
}

// A release that crosses a new subscription cannot undo it: what the server was told last is what holds.
func TestUnsubscribeCrossesSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(sharedResources))
		a, b := &session{}, &session{}
		k.link.Attach(a)
		k.link.Attach(b)
		c, srv := k.open(t)
		k.subscribe(t, c, srv, a, `"u"`)
		go k.link.Unsubscribe(context.Background(), c, a, []byte(`"u"`))
		off := srv.next(t)
		ch := k.subscribing(c, b, `"u"`)
		synctest.Wait()
		srv.quiet(t)
		srv.say(result(idOf(off), `{}`))
		on := srv.next(t)
		if !off.MethodIs(mcp.ResourcesUnsubscribe) || !on.MethodIs(mcp.ResourcesSubscribe) {
			t.Fatalf("the bridge sent %s, then %s", off.Raw, on.Raw)
		}
		srv.say(result(idOf(on), `{}`))
		<-ch
		srv.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u"}}`)
		if len(b.take()) != 1 || len(a.take()) != 0 {
			t.Error("the update went elsewhere")
		}
	})
}

// A session that leaves while it subscribes or sets its level holds nothing afterwards.
func TestSubscribeOfALeavingSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(sharedResources))
		s := &session{}
		k.link.Attach(s)
		c, srv := k.open(t)
		ch := k.subscribing(c, s, `"u"`)
		m := srv.next(t)
		k.link.Detach(s)
		srv.say(result(idOf(m), `{}`))
		if m = srv.next(t); !m.MethodIs(mcp.ResourcesUnsubscribe) {
			t.Fatalf("the bridge sent %s", m.Raw)
		}
		srv.say(result(idOf(m), `{}`))
		<-ch
		srv.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u"}}`)
		if n := s.take(); len(n) != 0 {
			t.Errorf("it got %q", n)
		}
	})
}

// Limits.Subscriptions URIs are held; one more is refused and the server not asked (rule 4).
func TestSubscriptionLimit(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{Limits: bridge.Limits{Subscriptions: 2}}, legacyFacts(sharedResources))
	s := &session{}
	k.link.Attach(s)
	c, srv := k.open(t)
	k.subscribe(t, c, srv, s, `"1"`)
	k.subscribe(t, c, srv, s, `"2"`)
	if got := <-k.subscribing(c, s, `"3"`); got.err == nil || got.err.Reason != bridge.ReasonOverload {
		t.Errorf("the third: %v", got)
	}
	if got := <-k.subscribing(c, s, `"2"`); got.err != nil {
		t.Errorf("one that is held: %v", got)
	}
	srv.quiet(t)
}

// A server that does not answer a subscription has as long as for any request (CAN-08); its end is told.
func TestSubscribeUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{Limits: bridge.Limits{Timeout: minute}}, legacyFacts(sharedResources))
		s := &session{}
		k.link.Attach(s)
		c, srv := k.open(t)
		start := time.Now()
		if got := <-k.subscribing(c, s, `"u"`); got.err == nil || got.err.Reason != bridge.ReasonTimeout || time.Since(start) != minute {
			t.Errorf("after %v: %v", time.Since(start), got)
		}
		ch := k.subscribing(c, s, `"u"`)
		synctest.Wait()
		srv.die(errDied)
		if got := <-ch; got.err == nil || got.err.Reason != bridge.ReasonBackTerminated {
			t.Errorf("server's end: %v", got)
		}
	})
}

// The server gets the lowest level anybody wants, once, and a second to confirm it (translation 9.1, 9.3).
func TestLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(sharedResources))
		c, srv := k.open(t)
		ensure := func(level string) {
			start := time.Now()
			k.link.EnsureLevel(t.Context(), c, mcp.ParseLevel(level))
			if d := time.Since(start); d > time.Second {
				t.Errorf("waited %v", d)
			}
		}
		ensure("none")
		ensure("error") // the server keeps silent
		srv.expect(t, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`)
		srv.expect(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		ensure("error")
		ensure("emergency")
		srv.quiet(t)
		ensure("debug")
		srv.expect(t, `{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}`)
	})
	for _, f := range []bridge.Facts{legacyFacts(`{}`), modernFacts(`{"logging":{}}`)} {
		k := newLinkRig(t, bridge.LinkConfig{}, f)
		c, srv := k.open(t)
		k.link.EnsureLevel(t.Context(), c, mcp.ParseLevel("debug"))
		srv.quiet(t)
	}
}

// What an exclusive client set is restored, up to the limit, and no more once it was released.
func TestExclusiveState(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{Exclusive: true, Limits: bridge.Limits{Subscriptions: 2}}, legacyFacts(sharedResources))
	s := &session{}
	k.link.Attach(s)
	c, srv := k.open(t)
	k.link.NoteLevel(mcp.ParseLevel("notice"))
	for i := range 3 {
		k.link.NoteSubscription(s, fmt.Appendf(nil, `"%d"`, i), true)
	}
	k.link.NoteSubscription(s, []byte(`"0"`), false)
	srv.die(errDied)
	<-c.Done()
	opened := make(chan struct{})
	go func() { defer close(opened); _, _ = k.link.Conn(context.Background()) }()
	srv = <-k.back.servers
	srv.expect(t, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"notice"}}`)
	srv.say(result("1", `{}`))
	srv.expect(t, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"1"}}`)
	srv.say(result("2", `{}`))
	<-opened
	srv.quiet(t)
}

// However sessions come, go, subscribe and release: in the end the server has been told what they hold.
func TestSubscriptionsAgree(t *testing.T) {
	for round := range 100 {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(sharedResources))
		c, srv := k.open(t)
		told := make(chan bool)
		end := make(chan struct{})
		go func() { // a server that answers everything
			on := false
			for {
				select {
				case b := <-srv.got:
					m := request(string(b))
					on = m.MethodIs(mcp.ResourcesSubscribe)
					srv.say(result(idOf(m), `{}`))
				case <-end:
					told <- on
					return
				}
			}
		}()
		var wg sync.WaitGroup
		sessions := make([]*session, 4)
		holds := make([]bool, 4)
		for i := range sessions {
			s, rnd := &session{}, rand.New(rand.NewPCG(uint64(round), uint64(i)))
			sessions[i] = s
			k.link.Attach(s)
			wg.Go(func() {
				for range 10 {
					if holds[i] = rnd.IntN(2) == 0; holds[i] {
						_, _ = k.link.Subscribe(context.Background(), c, s, []byte(`"u"`))
					} else {
						k.link.Unsubscribe(context.Background(), c, s, []byte(`"u"`))
					}
				}
			})
		}
		wg.Wait()
		close(end)
		on := <-told
		srv.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u"}}`)
		for i, s := range sessions {
			if got := len(s.take()) == 1; got != holds[i] || holds[i] && !on {
				t.Fatalf("round %d, session %d: holds %v, delivered %v, server told %v", round, i, holds[i], got, on)
			}
		}
		if on && !slices.Contains(holds, true) {
			t.Fatalf("round %d: the server still sends what nobody holds", round)
		}
	}
}

// A release that comes too late, because somebody holds the URI again, is not sent, and neither is a second subscription.
func TestLateReleaseIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(sharedResources))
		a, b := &session{}, &session{}
		k.link.Attach(a)
		k.link.Attach(b)
		c, srv := k.open(t)
		k.subscribe(t, c, srv, a, `"u"`)
		k.start(t, c, srv, caller{s: a})
		unblock := srv.dawdle()
		k.link.Detach(a) // has to tell that its call is cancelled first
		ch := k.subscribing(c, b, `"u"`)
		synctest.Wait()
		unblock()
		synctest.Wait()
		if m := srv.next(t); !m.MethodIs(mcp.Cancelled) {
			t.Errorf("the bridge sent %s", m.Raw)
		}
		if got := <-ch; got.err != nil || got.refused != nil {
			t.Errorf("subscribe: %v", got)
		}
		pass(3 * time.Second)
		srv.quiet(t)
	})
}
