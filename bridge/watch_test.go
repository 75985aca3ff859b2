package bridge_test

import (
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

// watching is a link with a legacy session before a modern server.
type watching struct {
	*linkRig
	t    *testing.T
	who  *session
	conn *bridge.Conn
	srv  *server
}

func watch(t *testing.T, caps string, f func(t *testing.T, w *watching)) {
	t.Helper()
	watchAt(t, caps, true, f)
}

func watchAt(t *testing.T, caps string, remote bool, f func(t *testing.T, w *watching)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &watching{t: t, linkRig: newLinkRig(t, bridge.LinkConfig{Remote: remote, Limits: bridge.Limits{Subscriptions: 3}}, modernFacts(caps)), who: &session{}}
		w.link.Attach(w.who)
		w.conn, w.srv = w.open(t)
		f(t, w)
	})
}

// listened is the next message, which must be a listen with this filter, acknowledged with another; "" acknowledges nothing.
func (w *watching) listened(filter, ack string) (id string) {
	w.t.Helper()
	pass(time.Second)
	m := w.srv.next(w.t)
	if !m.MethodIs(mcp.Listen) || string(m.Bytes(m.Param("notifications"))) != filter {
		w.t.Fatalf("the bridge sent %s, want a listen for %s", m.Raw, filter)
	}
	if ack != "" {
		w.srv.say(ackOf(ack, idOf(m)))
		synctest.Wait()
	}
	return idOf(m)
}

// closed checks that the bridge ends a listen.
func (w *watching) closed(id string) {
	w.t.Helper()
	if m := w.srv.next(w.t); !m.MethodIs(mcp.Cancelled) || string(m.Bytes(m.Param("requestId"))) != id {
		w.t.Fatalf("the bridge sent %s, want the end of listen %s", m.Raw, id)
	}
}

func (w *watching) subscribed(ch <-chan subscribed) *bridge.Error {
	w.t.Helper()
	synctest.Wait()
	select {
	case got := <-ch:
		if got.refused != nil {
			w.t.Fatalf("refused by the server: %s", got.refused.Raw)
		}
		return got.err
	default:
		w.t.Fatal("the client waits for the answer to its subscription")
		return nil
	}
}

const (
	lists = `{"toolsListChanged":true,"resourcesListChanged":true}`
	withA = `{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a"]}`
	withB = `{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a","b"]}`
)

// The exchange of translation 8.3: a session that opens its stream is told of changes of lists; a resource is subscribed to by a
// further listen, which is there before the old one is closed, and what comes has no subscription id any more.
func TestWatch(t *testing.T) {
	watch(t, changing, func(t *testing.T, w *watching) {
		pass(time.Minute)
		w.srv.quiet(t) // nobody listens
		w.link.Changes()
		first := w.listened(lists, lists)
		w.srv.say(tagged(toolsNew, first))
		same(t, "notes", w.who.take(), []string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`})
		ch := w.subscribing(w.conn, w.who, `"a"`)
		second := w.listened(withA, withA)
		w.closed(first)
		if err := w.subscribed(ch); err != nil {
			t.Errorf("subscribe: %v", err)
		}
		w.srv.say(tagged(updatedNote(`"a"`), second))
		w.srv.say(tagged(updatedNote(`"z"`), second))
		same(t, "notes", w.who.take(), []string{updatedNote(`"a"`)})
		w.link.Unsubscribe(t.Context(), w.conn, w.who, []byte(`"a"`))
		w.srv.say(tagged(updatedNote(`"a"`), second))
		same(t, "notes", w.who.take(), nil)
		pass(time.Minute)
		w.srv.quiet(t) // what is not wanted any more is left out of the next listen
		w.link.Detach(w.who)
		w.link.Attach(w.who)
		ch = w.subscribing(w.conn, w.who, `"b"`)
		w.listened(`{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["b"]}`, lists)
		w.closed(second)
		if err := w.subscribed(ch); err == nil || err.Code != mcp.CodeInvalidParams || string(err.Data) != `"uri":"b"` {
			t.Errorf("a resource the server does not honour: %+v", err)
		}
	})
}

// A server over stdio has one listen at a time: the old one is closed first, and what may have been missed is told.
func TestWatchStdio(t *testing.T) {
	watchAt(t, changing, false, func(t *testing.T, w *watching) {
		w.link.Changes()
		first := w.listened(lists, lists)
		ch := w.subscribing(w.conn, w.who, `"a"`)
		pass(time.Second)
		w.closed(first)
		w.listened(withA, withA)
		if err := w.subscribed(ch); err != nil {
			t.Errorf("subscribe: %v", err)
		}
		same(t, "notes", w.who.take(), []string{toolsNew, `{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`, updatedNote(`"a"`)})
	})
}

// Subscriptions that come together make one listen, and several sessions share it (translation 8.3).
func TestWatchGathers(t *testing.T) {
	watch(t, changing, func(t *testing.T, w *watching) {
		other := &session{}
		w.link.Attach(other)
		one, two := w.subscribing(w.conn, w.who, `"b"`), w.subscribing(w.conn, other, `"a"`)
		id := w.listened(withB, withB)
		if one, two := w.subscribed(one), w.subscribed(two); one != nil || two != nil {
			t.Errorf("subscribe: %v, %v", one, two)
		}
		if err := w.subscribed(w.subscribing(w.conn, other, `"b"`)); err != nil {
			t.Errorf("a resource that is held: %v", err)
		}
		w.srv.quiet(t)
		w.srv.say(tagged(updatedNote(`"a"`), id))
		w.srv.say(tagged(updatedNote(`"b"`), id))
		same(t, "one", w.who.take(), []string{updatedNote(`"b"`)})
		same(t, "two", other.take(), []string{updatedNote(`"a"`), updatedNote(`"b"`)})
		ch := w.subscribing(w.conn, w.who, `"c"`) // the third is the last
		pass(time.Second)
		m := w.srv.next(t)
		w.srv.say(ackOf(string(m.Bytes(m.Param("notifications"))), idOf(m)))
		if err := w.subscribed(ch); err != nil {
			t.Errorf("the third resource: %v", err)
		}
		if err := w.subscribed(w.subscribing(w.conn, w.who, `"d"`)); err == nil || err.Reason != bridge.ReasonOverload {
			t.Errorf("the fourth resource: %+v", err)
		}
	})
}

// A listen that is lost, or whose server ended, is opened again, and everything that may have changed is said to have (SUB-11, SUB-16). After
// one that the server ended in good order there is a pause.
func TestWatchLost(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(w *watching, id string)
		after time.Duration
	}{
		"error": {func(w *watching, id string) {
			w.srv.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"x"}}`)
		}, time.Second},
		"cancelled": {func(w *watching, id string) {
			w.srv.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		}, time.Second},
		"result": {func(w *watching, id string) { w.srv.say(result(id, `{"resultType":"complete"}`)) }, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			watch(t, changing, func(t *testing.T, w *watching) {
				ch := w.subscribing(w.conn, w.who, `"a"`)
				id := w.listened(withA, withA)
				if err := w.subscribed(ch); err != nil {
					t.Fatal(err)
				}
				c.end(w, id)
				pass(c.after - 1)
				w.srv.quiet(t)
				w.listened(withA, withA)
				same(t, "notes", w.who.take(), []string{toolsNew, `{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`, updatedNote(`"a"`)})
			})
		})
	}
	watch(t, changing, func(t *testing.T, w *watching) {
		w.who.listening = true
		w.link.Changes()
		w.listened(lists, lists)
		w.srv.die(errDied)
		synctest.Wait()
		w.srv = <-w.back.servers
		w.listened(lists, lists)
		same(t, "notes", w.who.take(), []string{toolsNew, `{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`})
	})
}

// A server without listens: a subscription gets its word, and it is not asked again (translation 8.3). One without subscriptions is not
// asked at all.
func TestWatchUnsupported(t *testing.T) {
	watch(t, changing, func(t *testing.T, w *watching) {
		ch := w.subscribing(w.conn, w.who, `"a"`)
		id := w.listened(withA, "")
		w.srv.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"no such method"}}`)
		if err := w.subscribed(ch); err == nil || err.Code != mcp.CodeMethodNotFound {
			t.Errorf("got %+v", err)
		}
		ch = w.subscribing(w.conn, w.who, `"a"`)
		pass(time.Minute)
		w.srv.quiet(t)
		if err := w.subscribed(ch); err == nil || err.Code != mcp.CodeMethodNotFound {
			t.Errorf("got %+v", err)
		}
	})
	watch(t, `{"tools":{},"resources":{}}`, func(t *testing.T, w *watching) {
		if err := w.subscribed(w.subscribing(w.conn, w.who, `"a"`)); err == nil || err.Code != mcp.CodeMethodNotFound {
			t.Errorf("got %+v", err)
		}
		w.srv.quiet(t)
	})
}

// A server that does not acknowledge a listen in time is asked again later; who waits for it is told.
func TestWatchSilentServer(t *testing.T) {
	watch(t, changing, func(t *testing.T, w *watching) {
		ch := w.subscribing(w.conn, w.who, `"a"`)
		id := w.listened(withA, "")
		pass(5 * time.Second)
		w.closed(id)
		if err := w.subscribed(ch); err == nil || err.Reason != bridge.ReasonTimeout {
			t.Errorf("got %+v", err)
		}
		w.listened(lists, lists)
	})
}

// When the last session has left, the listen ends.
func TestWatchEnds(t *testing.T) {
	watch(t, changing, func(t *testing.T, w *watching) {
		w.link.Changes()
		id := w.listened(lists, lists)
		w.link.Detach(w.who)
		pass(time.Second)
		w.closed(id)
		other := &session{}
		w.link.Attach(other)
		w.link.Changes()
		w.listened(lists, lists)
		w.srv.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`) // not for any listen: nobody's
		same(t, "notes", other.take(), nil)
	})
}

// Nothing is listened for before a legacy server, which tells unasked.
func TestWatchLegacy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(changing))
		_, srv := k.open(t)
		k.link.Attach(&session{})
		k.link.Changes()
		pass(time.Minute)
		srv.quiet(t)
	})
}
