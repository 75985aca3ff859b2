package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

const minute = time.Minute

// bubble runs f with fake time and a connection whose requests have a minute each and three in all.
func bubble(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, newRig(t, bridge.Limits{Timeout: minute, HardTimeout: 3 * minute}, legacyFacts(`{}`)))
	})
}

// pass lets fake time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// A request without answer ends at its timeout, not before, and is cancelled at the server (CAN-08). The server stays.
func TestTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		early, s1 := call("1", "")
		_, id1 := r.dispatch(t, early)
		pass(30 * time.Second)
		later, s2 := call("2", "")
		_, id2 := r.dispatch(t, later)
		pass(30*time.Second - 1)
		s1.open(t)
		pass(1)
		has(t, s1.only(t), "1", bridge.ReasonTimeout)
		r.expect(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id1+`,"reason":"timeout"}}`)
		pass(30*time.Second - 1)
		s2.open(t)
		r.say(result(id1, `{}`)) // late
		s1.only(t)
		r.say(result(id2, `{}`))
		if got := s2.only(t); got != result("2", `{}`) {
			t.Errorf("answer %s", got)
		}
		pass(time.Hour)
		if r.conn.Err() != nil || r.ev.count(bridge.EventTimeout) != 1 {
			t.Errorf("connection %v, %d timeouts", r.conn.Err(), r.ev.count(bridge.EventTimeout))
		}
		third, s3 := call("3", "") // the timer starts anew
		r.dispatch(t, third)
		pass(minute - 1)
		s3.open(t)
		pass(1)
		s3.only(t)
	})
}

// Progress that the client asked for gives a request its time anew (CAN-09), up to the hard limit and not beyond.
func TestProgressExtends(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ex, s := call("1", `"p"`)
		_, id := r.dispatch(t, ex)
		start := time.Now()
		for i := 1; time.Since(start) < 3*minute-time.Second; i++ {
			pass(min(50*time.Second, 3*minute-time.Second-time.Since(start)))
			r.say(progress(id, fmt.Sprint(i)))
		}
		s.open(t)
		pass(time.Second - 1)
		s.open(t)
		pass(1)
		has(t, s.only(t), "1", bridge.ReasonTimeout)
	})
}

// Progress that does not grow is none, and does not extend (PRG-03, CAN-09).
func TestStaleProgressDoesNotExtend(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ex, s := call("1", `"p"`)
		_, id := r.dispatch(t, ex)
		r.say(progress(id, "5"))
		pass(minute - 1)
		r.say(progress(id, "5"))
		pass(1)
		s.only(t)
	})
}

// The time a human takes does not count (CAN-12); after the answer the request has its time anew. A hard limit stays.
func TestHumanTime(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ex, s := call("1", "")
		r.dispatch(t, ex)
		r.conn.Question([]byte("7"), ex, nil)
		pass(2 * minute)
		s.open(t)
		if !r.conn.Answer([]byte("7"), framing.Whole([]byte(`{"jsonrpc":"2.0","id":7,"result":{}}`))) {
			t.Fatal("the question was not open")
		}
		r.expect(t, `{"jsonrpc":"2.0","id":7,"result":{}}`)
		pass(minute - 1)
		s.open(t)
		pass(1)
		has(t, s.only(t), "1", bridge.ReasonTimeout)
	})
	bubble(t, func(t *testing.T, r *rig) {
		ex, s := call("1", "")
		r.dispatch(t, ex)
		r.conn.Question([]byte("7"), ex, nil)
		pass(3*minute - 1)
		s.open(t)
		pass(1)
		has(t, s.only(t), "1", bridge.ReasonTimeout)
	})
}

// A question that was refused, or that the server took back, does not keep its request from timing out (CAN-12).
func TestNoHumanAnyMore(t *testing.T) {
	q := request(`{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{}}`)
	for name, end := range map[string]func(k *linkRig, c *bridge.Conn, srv *server){
		"refused": func(_ *linkRig, c *bridge.Conn, _ *server) { c.Refuse(q, mcp.CodeInternal, "no") },
		"withdrawn": func(_ *linkRig, _ *bridge.Conn, srv *server) {
			srv.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newLinkRig(t, bridge.LinkConfig{Exclusive: true, Limits: bridge.Limits{Timeout: minute}}, legacyFacts(`{}`))
				who := &session{}
				k.link.Attach(who)
				c, srv := k.open(t)
				ex, s := call("1", "")
				ex.Session = who
				dispatch(t, c, srv, ex)
				srv.say(string(q.Raw))
				same(t, "asked", who.questions(), []string{"7"})
				pass(2 * minute)
				s.open(t)
				end(k, c, srv)
				if c.Answer([]byte("7"), framing.Whole([]byte(`{}`))) {
					t.Error("the question is still open")
				}
				pass(minute)
				has(t, s.only(t), "1", bridge.ReasonTimeout)
			})
		})
	}
}

// A listen has no deadline.
func TestListenDoesNotTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, bridge.Limits{Timeout: minute}, modernFacts(`{}`))
		ex, s := exchange(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{}}}`)
		ex.Era = mcp.Modern
		r.dispatch(t, ex)
		pass(24 * time.Hour)
		s.open(t)
	})
}

// When a hanging server does not read either, all its clients are told in time: none waits for another's cancellation
// (rule 3).
func TestTimeoutOfAHangingServer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var sinks []*sink
		for range 100 {
			ex, s := call("1", "")
			r.dispatch(t, ex)
			sinks = append(sinks, s)
		}
		r.block()
		pass(minute)
		for _, s := range sinks {
			has(t, s.only(t), "1", bridge.ReasonTimeout)
		}
	})
}

// A server that does not read does not hold up the reading of what it says, whoever waits for it to read.
func TestReadingFromABusyServer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		waiting, s := call("1", "")
		_, id := r.dispatch(t, waiting)
		r.block()
		r.launch(call("2", "")).waits(t)
		start := time.Now()
		r.say(`{"jsonrpc":"2.0","id":8,"method":"ping"}`)
		r.say(result(id, `{}`))
		s.only(t)
		if d := time.Since(start); d != 0 {
			t.Errorf("reading was held up for %v", d)
		}
	})
}

// The timeout of a request ends its wait for room too, if it is the shorter (CAN-08).
func TestTimeoutWhileWaitingForRoom(t *testing.T) {
	full(t, bridge.Limits{Timeout: 4 * time.Second}, func(t *testing.T, r *rig, unblock func()) {
		w := r.launch(call("1", ""))
		pass(4*time.Second - 1)
		w.waits(t)
		pass(1)
		<-w.done
		has(t, w.only(t), "1", bridge.ReasonTimeout)
		if w.err != nil {
			t.Errorf("refused with %v as well", w.err)
		}
		unblock()
		pass(time.Hour)
		r.quiet(t)
	})
}

// A client's context that ends while the request waits for room: nothing is sent, the error is the answer.
func TestDispatchGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		unblock := r.block()
		ctx, stop := context.WithCancel(t.Context())
		ex, s := call("1", "")
		errs := make(chan *bridge.Error, 1)
		go func() { _, err := r.conn.Dispatch(ctx, ex); errs <- err }()
		synctest.Wait()
		stop()
		if err := <-errs; err == nil || err.Status != 503 {
			t.Errorf("error %v", err)
		}
		s.open(t)
		if n := openAt(r.conn); n != 0 {
			t.Errorf("%d requests open", n)
		}
		unblock()
		pass(time.Hour)
		r.quiet(t)
		s.open(t)
	})
}

// Death while requests wait for room: each gets exactly one answer (rule 3).
func TestDeathWhileSending(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.block()
		type outcome struct {
			s   *sink
			err *bridge.Error
		}
		out := make(chan outcome, 20)
		for range 20 {
			go func() {
				ex, s := call("1", "")
				_, err := r.conn.Dispatch(context.Background(), ex)
				out <- outcome{s, err}
			}()
		}
		synctest.Wait()
		r.die(errDied)
		<-r.conn.Done()
		synctest.Wait()
		for range 20 {
			o := <-out
			o.s.mu.Lock()
			n := len(o.s.answers)
			o.s.mu.Unlock()
			if (o.err == nil) != (n == 1) || n > 1 {
				t.Errorf("error %v and %d answers: want exactly one", o.err, n)
			}
		}
	})
}

// The end of a connection waits for an expiry under way (rule 5).
func TestEndWaitsForExpiry(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ex, s := call("1", "")
		hold := make(chan struct{})
		ex.Sink = &slowSink{sink: s, hold: hold}
		r.dispatch(t, ex)
		pass(minute) // the expiry hangs in the sink
		r.die(errDied)
		synctest.Wait()
		select {
		case <-r.conn.Done():
			t.Error("ended before the expiry")
		default:
		}
		close(hold)
		<-r.conn.Done()
		s.only(t)
	})
}

type slowSink struct {
	*sink
	hold chan struct{}
}

func (s *slowSink) Finish(a bridge.Answer) { <-s.hold; s.sink.Finish(a) }

// A handshake that is out of time is not cancelled (CAN-02): whoever waits for it learns that it was a timeout.
func TestHandshakeIsNotCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := probingRig(t, bridge.Limits{Timeout: minute, HardTimeout: minute})
		r.conn.Greeting()
		ch := roundTrip(t.Context(), r.conn, mcp.Initialize)
		r.next(t)
		pass(minute)
		var e *bridge.Error
		if got := <-ch; !errors.As(got.err, &e) || e.Reason != bridge.ReasonTimeout {
			t.Errorf("got %v", got.err)
		}
		r.quiet(t)
	})
}
