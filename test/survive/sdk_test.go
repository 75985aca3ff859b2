package survive

import (
	"testing"
	"time"

	"mcpbridge/test/internal/rig"
)

// Acceptance 2: the official client goes on with its next call after the bridge was killed and started again, without
// initialising again. Its stream comes back by itself and brings what the server announces; its log level and subscription
// are there again.
func TestSDKClientOutlivesBridge(t *testing.T) {
	for _, how := range endings {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			h := settle(t, "", entry{name: "a"})
			tenant := h.Start(t)
			p, hello := startPeer(t, h.URL("a"))
			p.streaming(t)
			p.order(t, `{"do":"level","level":"warning"}`)
			p.order(t, `{"do":"subscribe","uri":%q}`, uri)
			first := p.next(t)
			p.announced(t, "notifications/resources/updated", `{"uri":"`+uri+`"}`)

			<-time.After(how.wait)
			p.forget()
			how.end(t, tenant)
			h.Start(t)
			p.streaming(t)
			now := p.next(t)
			if now.Initialized != 1 || now.Session != hello.Session || now.Session == "" {
				t.Errorf("the client has initialised %d times; its session was %q and is %q", now.Initialized, hello.Session, now.Session)
			}
			if now.Done.N != 1 || now.Done.Pid == first.Done.Pid {
				t.Errorf("process %d answered with %d, want a new one and 1", now.Done.Pid, now.Done.N)
			}
			h.sdkEstablished(t, now.Done.Pid)
			p.announced(t, "notifications/resources/updated", `{"uri":"`+uri+`"}`)
			p.announced(t, "notifications/tools/list_changed", "{}")
			if n := p.next(t); n.Done.N != 2 || n.Done.Pid != now.Done.Pid || h.starts(t) != 2 {
				t.Errorf("the session does not stay at its process: %+v, %d starts", n.Done, h.starts(t))
			}
		})
	}
}

func (h *home) sdkEstablished(t testing.TB, pid int) {
	t.Helper()
	for _, want := range [][]string{
		{`"method":"initialize"`, `"name":"survive"`, `"roots":{}`},
		{`"method":"notifications/initialized"`},
		{`"method":"logging/setLevel"`, `"level":"warning"`},
		{`"method":"resources/subscribe"`, uri},
	} {
		if n := len(h.find(t, pid, want...)); n != 1 {
			t.Errorf("process %d was sent %d messages with %q, want 1", pid, n, want)
		}
	}
}

// replicas are two bridges with state directories of their own that share a key.
func replicas(t testing.TB) (homes [2]*home, tenants [2]*rig.Tenant) {
	t.Helper()
	const key = `"keys": ["00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"],`
	for i := range homes {
		homes[i] = settle(t, key, entry{name: "a"})
		tenants[i] = homes[i].Start(t)
	}
	return homes, tenants
}

// Acceptance 2: the same with two bridges that share a key behind a balancer, which gives each connection, or each request, to
// the other replica. Then one replica is killed, and, once it is back, the other.
func TestSDKClientBeforeReplicas(t *testing.T) {
	for name, front := range map[string]struct {
		balance func(testing.TB, ...string) *balancer
		flags   []string
	}{
		"by connection": {balanceConnections, []string{"close"}},
		"by request":    {balanceRequests, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			homes, tenants := replicas(t)
			b := front.balance(t, homes[0].Addr, homes[1].Addr)
			p, hello := startPeer(t, "http://"+b.addr+"/servers/a/mcp", front.flags...)
			p.streaming(t)
			p.order(t, `{"do":"level","level":"warning"}`)
			const calls = 10
			pids := map[int]int{}
			for range calls {
				u := p.next(t)
				pids[u.Done.Pid]++
				if u.Done.N != pids[u.Done.Pid] || u.Initialized != 1 || u.Session != hello.Session {
					t.Errorf("got %+v at count %d of its process", u, pids[u.Done.Pid])
				}
			}
			if len(pids) != 2 {
				t.Errorf("the calls went to processes %v, want one of each replica", pids)
			}
			b.wantBoth(t, calls/2)
			// The stream is at one of the replicas; the processes of both tell.
			p.forget()
			p.announce(t, "notifications/tools/list_changed", "{}")
			p.announce(t, "notifications/tools/list_changed", "{}")
			p.noted(t, "notifications/tools/list_changed")

			for round, tenant := range tenants { // after the first round the stream is at the second replica for sure
				p.forget()
				tenant.Kill(t)
				if round == 1 {
					p.streaming(t)
				}
				for range calls {
					if u := p.next(t); u.Initialized != 1 || u.Session != hello.Session {
						t.Errorf("after the end of replica %d: %+v", round, u)
					}
				}
				p.announced(t, "notifications/tools/list_changed", "{}")
				homes[round].Start(t)
			}
		})
	}
}
