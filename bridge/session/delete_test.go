package session_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/session"
)

// A deleted session is gone: at once, after a restart, when it was deleted while it was not live, and nobody else's delete counts.
func TestDeleted(t *testing.T) {
	for name, away := range map[string]bool{"live": false, "away": true} {
		k := newKept()
		first := session.NewStore(sealing(t, k))
		s := shake(t, first, "alice")
		if away {
			first.Close()
			first = session.NewStore(sealing(t, k))
		}
		if first.Delete(s.ID(), "bob") || !first.Delete(s.ID(), "alice") || first.Delete(s.ID(), "alice") {
			t.Errorf("%s: Delete says other than what is there", name)
		}
		if k.tombstones() != 1 {
			t.Errorf("%s: %d tombstones", name, k.tombstones())
		}
		for range 2 {
			if got, opened := reopen(t, first, s.ID(), "alice"); got != nil || opened {
				t.Errorf("%s: opened after it was deleted", name)
			}
			first.Close()
			first = session.NewStore(sealing(t, k))
		}
	}
}

// Without Facts the store itself remembers.
func TestDeletedWithoutFacts(t *testing.T) {
	st := session.NewStore(sealing(t, nil))
	s := shake(t, st, "alice")
	st.Delete(s.ID(), "alice")
	if got, opened := reopen(t, st, s.ID(), "alice"); got != nil || opened {
		t.Error("opened after it was deleted")
	}
}

// A session deleted while it is being opened is taken down again, and reported.
func TestDeletedDuringReopen(t *testing.T) {
	var e ended
	s := shake(t, session.NewStore(sealing(t, nil)), "alice")
	cfg := sealing(t, nil)
	cfg.Ended = e.add
	st := session.NewStore(cfg)
	var inside *session.Session
	got, err := st.Reopen(t.Context(), s.ID(), "alice", func(_ context.Context, s *session.Session) *bridge.Error {
		inside = s
		if !st.Delete(s.ID(), "alice") {
			t.Error("not deleted")
		}
		return nil
	})
	if got != nil || err != nil || st.Len() != 0 || e.of(inside) != 1 {
		t.Errorf("%v, %v, %d in the store, ended %d times", got, err, st.Len(), e.of(inside))
	}
	if got, opened := reopen(t, st, s.ID(), "alice"); got != nil || opened {
		t.Error("opened again")
	}
}

// slowKept takes its time to bury.
type slowKept struct {
	*kept
	begun, free chan struct{}
}

func (k *slowKept) Bury(uid [16]byte, until time.Time) error {
	k.begun <- struct{}{}
	<-k.free
	return k.kept.Bury(uid, until)
}

// While a session is being buried nobody opens it again or deletes it a second time, however it ends.
func TestBuryIsSlow(t *testing.T) {
	for name, end := range map[string]func(st *session.Store, id string){
		"deleted": func(st *session.Store, id string) { st.Delete(id, "alice") },
		"idle":    func(st *session.Store, id string) { st.Find(id, "alice") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &slowKept{newKept(), make(chan struct{}), make(chan struct{})}
				cfg := sealing(t, nil)
				cfg.Facts, cfg.Idle = k, time.Minute
				st := session.NewStore(cfg)
				id := shake(t, st, "alice").ID()
				if name == "idle" {
					time.Sleep(time.Hour)
				}
				var wg sync.WaitGroup
				wg.Go(func() { end(st, id) })
				<-k.begun
				if got, opened := reopen(t, st, id, "alice"); got != nil || opened {
					t.Error("opened again")
				}
				if st.Delete(id, "alice") {
					t.Error("deleted again")
				}
				close(k.free)
				wg.Wait()
				if got, opened := reopen(t, st, id, "alice"); got != nil || opened {
					t.Error("opened again afterwards")
				}
			})
		})
	}
}
