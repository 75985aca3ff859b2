package session_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"mcpbridge/bridge"
	"mcpbridge/bridge/session"
)

// Sessions come, go, are found, opened again and deleted at once: the cap holds, each that was live is reported once, and none comes
// back from the dead.
func TestConcurrentUse(t *testing.T) {
	const sessions, limit = 24, 16
	var e ended
	k := newKept()
	cfg := sealing(t, k)
	cfg.Sessions, cfg.Shelve, cfg.Ended = session.NewCap(limit), 1, e.add
	first := session.NewStore(sealing(t, k))
	var ids []string
	for range sessions {
		ids = append(ids, shake(t, first, "alice").ID())
	}
	first.Close()

	st, stop := running(t, cfg)
	var mu sync.Mutex
	deleted, live := map[string]bool{}, map[*session.Session]bool{}
	one := func(r *rand.Rand, id string) {
		mu.Lock()
		dead := deleted[id]
		mu.Unlock()
		switch r.IntN(8) {
		case 0:
			if r.IntN(20) == 0 && st.Delete(id, "alice") {
				mu.Lock()
				deleted[id] = true
				mu.Unlock()
			}
		case 1:
			st.Flush()
		default:
			s, _ := st.Reopen(t.Context(), id, "alice", func(_ context.Context, s *session.Session) *bridge.Error {
				if r.IntN(4) == 0 {
					return bridge.Unavailable("no")
				}
				mu.Lock()
				live[s] = true
				mu.Unlock()
				return nil
			})
			if s != nil {
				if dead {
					t.Error("a deleted session came back")
				}
				s.SetLevel(1)
			}
		}
		if n := st.Len(); n > limit {
			t.Errorf("%d sessions, limit %d", n, limit)
		}
	}
	var wg sync.WaitGroup
	for seed := range uint64(8) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for range 500 {
				one(r, ids[r.IntN(len(ids))])
			}
		})
	}
	wg.Wait()
	st.Close()
	stop()
	for s := range live {
		if e.of(s) != 1 {
			t.Fatalf("a session was reported %d times", e.of(s))
		}
	}
	if len(e.n) != len(live) || len(live) == 0 {
		t.Errorf("%d sessions were reported, %d were opened", len(e.n), len(live))
	}
	if len(deleted) != k.tombstones() {
		t.Errorf("%d were deleted, there are %d tombstones", len(deleted), k.tombstones())
	}
}
