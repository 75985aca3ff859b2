package bridge_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// full runs f with fake time and a connection whose server does not read. unblock makes room.
func full(t *testing.T, l bridge.Limits, f func(t *testing.T, r *rig, unblock func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, l, legacyFacts(`{}`))
		f(t, r, r.block())
	})
}

// waiting is a call that waits for room, and how Dispatch ended.
type waiting struct {
	*sink
	done chan struct{}
	err  *bridge.Error
	took time.Duration
}

func (r *rig) launch(ex *bridge.Exchange, s *sink) *waiting { return launch(r.conn, ex, s) }

func launch(c *bridge.Conn, ex *bridge.Exchange, s *sink) *waiting {
	w := &waiting{sink: s, done: make(chan struct{})}
	start := time.Now()
	go func() {
		_, w.err = c.Dispatch(context.Background(), ex)
		w.took = time.Since(start)
		close(w.done)
	}()
	synctest.Wait()
	return w
}

func (w *waiting) waits(t *testing.T) {
	t.Helper()
	select {
	case <-w.done:
		t.Fatalf("Dispatch ended after %v with %v", w.took, w.err)
	default:
	}
	w.open(t)
}

// refused checks that the call was refused after that time, to be tried again, and that nobody else has answered it.
func (w *waiting) refused(t *testing.T, reason bridge.Reason, after time.Duration) {
	t.Helper()
	select {
	case <-w.done:
	default:
		t.Fatal("the call still waits")
	}
	if w.err == nil || w.err.Reason != reason || w.err.HTTPStatus() != 503 || w.err.Code != mcp.CodeInternal || w.err.Retry < 1 {
		t.Errorf("refused with %+v, want %s", w.err, reason)
	}
	if w.took != after {
		t.Errorf("refused after %v, want %v", w.took, after)
	}
	w.open(t)
}

// A call waits for room as long as the limit says, and is sent if there is room until then; else it is refused, and never sent
// (rule 4).
func TestSendWait(t *testing.T) {
	for name, l := range map[string]bridge.Limits{"default": {}, "set": {SendWait: 3 * time.Second}} {
		limit := 10 * time.Second
		if l.SendWait > 0 {
			limit = l.SendWait
		}
		t.Run(name, func(t *testing.T) {
			full(t, l, func(t *testing.T, r *rig, unblock func()) {
				w := r.launch(call("1", ""))
				pass(limit - 1)
				w.waits(t)
				unblock()
				synctest.Wait()
				if <-w.done; w.err != nil {
					t.Errorf("refused with %v", w.err)
				}
				r.say(result(idOf(r.next(t)), `{}`))
				w.only(t)
			})
			full(t, l, func(t *testing.T, r *rig, unblock func()) {
				w := r.launch(call("1", ""))
				pass(limit)
				w.refused(t, bridge.ReasonBackBusy, limit)
				if n := openAt(r.conn); n != 0 {
					t.Errorf("%d requests open", n)
				}
				unblock()
				pass(time.Hour)
				r.quiet(t)
			})
		})
	}
}

// The wait is counted from when the server took nothing any more: who comes later waits for less, and not at all when
// the time is over, until there is room again.
func TestSendWaitIsCommon(t *testing.T) {
	const second = time.Second
	full(t, bridge.Limits{}, func(t *testing.T, r *rig, unblock func()) {
		first := r.launch(call("1", ""))
		pass(7 * second)
		second1 := r.launch(call("2", ""))
		pass(3 * second)
		first.refused(t, bridge.ReasonBackBusy, 10*second)
		second1.refused(t, bridge.ReasonBackBusy, 3*second)
		pass(time.Hour)
		r.launch(call("3", "")).refused(t, bridge.ReasonBackBusy, 0)
		if _, err := r.conn.RoundTrip(t.Context(), "x", nil); !busy(err) {
			t.Errorf("a request of the bridge's own failed with %v", err)
		}
		unblock()
		_, id := r.dispatch(t, first4())
		r.say(result(id, `{}`))
		r.block()
		again := r.launch(call("5", ""))
		pass(10*second - 1)
		again.waits(t)
		pass(1)
		again.refused(t, bridge.ReasonBackBusy, 10*second)
	})
}

func first4() *bridge.Exchange { ex, _ := call("4", ""); return ex }

func busy(err error) bool {
	var e *bridge.Error
	return errors.As(err, &e) && e.Reason == bridge.ReasonBackBusy
}

// What waits for room is bounded in bytes, at n and n+1; beyond, a call is refused at once. What stops waiting makes room. A
// single message always may wait (rule 4).
func TestWaitingBytes(t *testing.T) {
	request := func(size int) (*bridge.Exchange, *sink) {
		const head, tail = `{"jsonrpc":"2.0","id":1,"method":"x","y":"`, `"}`
		return exchange(head + strings.Repeat("y", size-len(head)-len(tail)) + tail)
	}
	full(t, bridge.Limits{Waiting: 1000}, func(t *testing.T, r *rig, unblock func()) {
		ctx, leave := context.WithCancel(t.Context())
		ex, s := request(400)
		gone := make(chan struct{})
		go func() { _, _ = r.conn.Dispatch(ctx, ex); close(gone) }()
		synctest.Wait()
		a := r.launch(request(600))
		a.waits(t)
		r.launch(request(100)).refused(t, bridge.ReasonBackBusy, 0)
		leave()
		<-gone
		s.open(t)
		r.launch(request(401)).refused(t, bridge.ReasonBackBusy, 0)
		b := r.launch(request(400))
		b.waits(t)
		unblock()
		synctest.Wait()
		for range 2 {
			r.next(t)
		}
		r.quiet(t)
		r.block()
		r.launch(request(5000)).waits(t)
		r.launch(request(100)).refused(t, bridge.ReasonBackBusy, 0)
	})
}

// A call that waits for room when its server is stopped on purpose is told so at once (rule 3).
func TestStoppedWhileWaiting(t *testing.T) {
	for name, stop := range map[string]func(l *bridge.Link){
		"closed": func(l *bridge.Link) { _ = l.Close(context.Background()) },
		"halted": func(l *bridge.Link) { _ = l.Halt(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{}`))
				c, srv := k.open(t)
				ex, s := call("1", "")
				dispatch(t, c, srv, ex)
				srv.block()
				k.back.set(func() { k.back.last = nil }) // it takes its time to end
				w := launch(c, first4(), newSink())
				pass(time.Second)
				done := make(chan struct{})
				go func() { stop(k.link); close(done) }()
				synctest.Wait()
				w.refused(t, bridge.ReasonStopping, time.Second)
				launch(c, first4(), newSink()).refused(t, bridge.ReasonStopping, 0)
				s.open(t)
				srv.die(errDied)
				<-done
				synctest.Wait()
				has(t, s.only(t), "1", bridge.ReasonStopping)
			})
		})
	}
}

// Messages that are no calls wait no longer, and that they are dropped is reported.
func TestSendWaitOfOthers(t *testing.T) {
	for name, send := range map[string]func(c *bridge.Conn){
		"answer": func(c *bridge.Conn) {
			c.Question([]byte("7"), nil, nil)
			c.Answer([]byte("7"), framing.Whole([]byte(`{"jsonrpc":"2.0","id":7,"result":{}}`)))
		},
		"forwarded": func(c *bridge.Conn) { _ = c.Forward(context.Background(), framing.Whole([]byte(`{}`))) },
	} {
		t.Run(name, func(t *testing.T) {
			full(t, bridge.Limits{}, func(t *testing.T, r *rig, unblock func()) {
				start := time.Now()
				send(r.conn)
				if d := time.Since(start); d != 10*time.Second {
					t.Errorf("waited for %v", d)
				}
				if n := r.ev.count(bridge.EventDropped); n != 1 {
					t.Errorf("%d events", n)
				}
				unblock()
				pass(time.Hour)
				r.quiet(t)
			})
		})
	}
}

// A cancellation does not wait for a server that does not read: it follows when the server reads, and only then (CAN-04,
// translation 10).
func TestCancelOfABusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
		ex, s := call("1", "")
		ticket, id := r.dispatch(t, ex)
		other, _ := call("2", "")
		_, id2 := r.dispatch(t, other)
		unblock := r.block()
		start := time.Now()
		if !ticket.Cancel([]byte(`"user"`)) || !r.conn.CancelWhere([]byte("2"), nil, all) {
			t.Error("not cancelled")
		}
		r.say(`{"jsonrpc":"2.0","id":8,"method":"ping"}`)
		if d := time.Since(start); d != 0 {
			t.Errorf("the cancellations took %v", d)
		}
		s.open(t)
		pass(time.Hour)
		r.quiet(t)
		unblock()
		synctest.Wait()
		r.expect(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`,"reason":"user"}}`)
		r.expect(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id2+`}}`)
		r.expect(t, `{"jsonrpc":"2.0","id":8,"result":{}}`)
		r.quiet(t)
		if n := r.ev.count(bridge.EventDropped); n != 0 {
			t.Errorf("%d events", n)
		}
	})
}

// Cancellations that wait are bounded in bytes, at n and n+1; what is dropped is reported (rule 4).
func TestNotices(t *testing.T) {
	one := len(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	for _, tt := range []struct{ limit, sent int }{{3 * one, 3}, {3*one - 1, 2}, {1, 1}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, bridge.Limits{Notices: tt.limit}, legacyFacts(`{}`))
			var tickets []bridge.Ticket
			for range 3 {
				ex, _ := call("1", "")
				ticket, _ := r.dispatch(t, ex)
				tickets = append(tickets, ticket)
			}
			unblock := r.block()
			for _, ticket := range tickets {
				ticket.Cancel(nil)
				synctest.Wait()
			}
			if n := r.ev.count(bridge.EventDropped); n != 3-tt.sent {
				t.Errorf("limit %d: %d events, want %d", tt.limit, n, 3-tt.sent)
			}
			unblock()
			synctest.Wait()
			for range tt.sent {
				r.next(t)
			}
			r.quiet(t)
			r.block() // what has been sent has made room
			for _, id := range []string{"a", "b", "c"} {
				r.say(`{"jsonrpc":"2.0","id":"` + id + `","method":"ping"}`)
			}
			synctest.Wait()
			if n := r.ev.count(bridge.EventDropped); tt.sent == 3 && n != 0 {
				t.Errorf("limit %d: %d events", tt.limit, n)
			}
		})
	}
}

// The end of a connection does not wait for what waits for room (rule 5).
func TestEndWithNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, bridge.Limits{}, legacyFacts(`{}`))
		ex, _ := call("1", "")
		ticket, _ := r.dispatch(t, ex)
		r.block()
		ticket.Cancel(nil)
		r.die(errDied)
		<-r.conn.Done()
		if n := r.ev.count(bridge.EventDropped); n != 0 {
			t.Errorf("%d events: nobody misses what a dead server is not told", n)
		}
	})
}

// queued is an upstream with the queue real servers have, before a server that takes nothing until it is told to.
type queued struct {
	*server
	w    *framing.Writer
	read chan struct{}
}

func (q *queued) Send(ctx context.Context, f framing.Frame, _ bool) error { return q.w.Write(ctx, f) }

func (q *queued) Write(p []byte) (int, error) {
	<-q.read
	q.got <- append([]byte(nil), p...)
	return len(p), nil
}

// A cancellation comes behind its request and behind what waited before it.
func TestCancelComesBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queued{server: newServer(), read: make(chan struct{})}
		q.w = framing.NewWriter(q, 10)
		c := bridge.NewConn(q, bridge.ConnConfig{Name: "srv", Handler: &handler{}})
		c.Establish(legacyFacts(`{}`))
		a, _ := call("1", "")
		ticket, err := c.Dispatch(t.Context(), a) // in the queue, which is full now
		if err != nil {
			t.Fatal(err)
		}
		w := launch(c, first4(), newSink())
		w.waits(t)
		ticket.Cancel(nil)
		synctest.Wait()
		close(q.read)
		synctest.Wait()
		var order []string
		for len(q.got) > 0 {
			for line := range strings.Lines(string(<-q.got)) {
				m := request(strings.TrimSpace(line))
				order = append(order, m.MethodName()+idOf(m)+string(m.Bytes(m.Param("requestId"))))
			}
		}
		same(t, "order", order, []string{"tools/call1", "tools/call2", "notifications/cancelled1"})
		_ = c.Close(context.Background())
		_ = q.w.Close()
	})
}
