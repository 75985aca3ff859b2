package bridge_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
)

// A link is unused since the last call ended, not since it began (translation 14.4).
func TestUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{Limits: bridge.Limits{Timeout: time.Hour}}, legacyFacts(`{}`))
		if u := k.link.Use(); u.Live || u.Busy() {
			t.Errorf("before the first message: %+v", u)
		}
		c, srv := k.open(t)
		ex, _ := call("1", "")
		_, id := dispatch(t, c, srv, ex)
		pass(20 * time.Minute)
		if u := k.link.Use(); !u.Busy() || u.Calls != 1 || !u.Live {
			t.Errorf("while a call runs: %+v", u)
		}
		srv.say(result(id, `{}`))
		if u := k.link.Use(); u.Busy() || time.Since(u.Since) != 0 {
			t.Errorf("behind the call: %+v", u)
		}
		s := &session{}
		k.link.Attach(s)
		pass(time.Minute)
		if u := k.link.Use(); u.Busy() || u.Sessions != 1 || time.Since(u.Since) != time.Minute {
			t.Errorf("with a session: %+v", u)
		}
		s.listening = true
		if u := k.link.Use(); !u.Busy() || !u.Listening || time.Since(u.Since) != 0 {
			t.Errorf("with a session that listens: %+v", u)
		}
	})
}

// Rest ends the server of a link nobody uses, for as long as asked, and the next message starts it anew.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{Exclusive: true, Limits: bridge.Limits{Timeout: time.Hour}}, legacyFacts(`{}`))
		s := &session{}
		k.link.Attach(s)
		c, srv := k.open(t)
		ex, _ := call("1", "")
		_, id := dispatch(t, c, srv, ex)
		pass(time.Hour - 1)
		rest := func(unused time.Duration, want bool) {
			t.Helper()
			if got, err := k.link.Rest(t.Context(), unused); got != want || err != nil {
				t.Errorf("rested: %v, %v; want %v", got, err, want)
			}
		}
		rest(0, false)
		srv.say(result(id, `{}`))
		k.link.Use()
		pass(time.Minute - 1)
		rest(time.Minute, false)
		pass(1)
		s.listening = true
		rest(time.Minute, false)
		s.listening = false
		pass(time.Minute)
		rest(time.Minute, true)
		<-c.Done()
		if u := k.link.Use(); u.Live || u.Sessions != 1 {
			t.Errorf("after the rest: %+v", u)
		}
		again, err := k.link.Conn(t.Context())
		if err != nil || again == c {
			t.Fatalf("the next message got %v, %v", again, err)
		}
	})
}

// A server somebody listens to is started again by itself after it died, and tried at growing intervals while it cannot be;
// one nobody listens to waits for the next message (design section 8).
func TestRevive(t *testing.T) {
	for name, tt := range map[string]struct {
		listens, keep, want bool
	}{"nobody": {false, false, false}, "a listener": {true, false, true}, "kept": {false, true, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newLinkRig(t, bridge.LinkConfig{Keep: tt.keep}, legacyFacts(`{}`))
				s := &session{listening: tt.listens}
				k.link.Attach(s)
				_, srv := k.open(t)
				k.back.set(func() { k.back.fail = errDied })
				srv.die(errDied)
				pass(10 * time.Second) // tries at 0, 1, 3 and 7 seconds
				want := 1
				if tt.want {
					want = 5
				}
				if n := k.back.opens(); n != want {
					t.Errorf("%d tries, want %d", n, want)
				}
				k.back.set(func() { k.back.fail = nil })
				pass(time.Minute)
				if live := k.link.Live() != nil; live != tt.want {
					t.Errorf("live: %v, want %v", live, tt.want)
				}
				if tt.want {
					srv = <-k.back.servers
				}
				s.mu.Lock()
				s.listening = false
				s.mu.Unlock()
				srv.die(errDied)
				pass(time.Minute)
				if live := k.link.Live() != nil; live != tt.keep {
					t.Errorf("with nobody listening: live %v, want %v", live, tt.keep)
				}
				if tt.keep {
					<-k.back.servers
				}
				if err := k.link.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
