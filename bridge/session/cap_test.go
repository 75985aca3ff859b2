package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/session"
)

// Stores that share a cap have n sessions together, n+1 are refused, and every way a session ends frees its place.
func TestSharedCap(t *testing.T) {
	n := session.NewCap(3)
	one, two := session.NewStore(session.Config{Sessions: n}), session.NewStore(session.Config{Sessions: n})
	add(t, one, bridge.Local)
	gone := add(t, two, bridge.Local)
	add(t, two, bridge.Local)
	full := func(want bool) {
		t.Helper()
		for _, st := range []*session.Store{one, two} {
			if err := st.Reserve(); (err != nil) != want {
				t.Errorf("full: %v, want %v", err, want)
			}
		}
	}
	full(true)
	if err := one.Add(one.New(bridge.Local, nil, false), session.Hello{}); err == nil || err.Status != 429 {
		t.Errorf("one too many: %v", err)
	}
	two.Delete(gone.ID(), bridge.Local)
	full(false)
	add(t, one, bridge.Local)
	full(true)
	n.Resize(4)
	full(false)
	n.Resize(2) // three are open, and stay
	full(true)
	two.Close()
	if err := one.Reserve(); err == nil {
		t.Error("two are open, of two")
	}
	n.Resize(3)
	add(t, one, bridge.Local)
	if err := one.Reserve(); err == nil {
		t.Error("three are open, of three")
	}
	one.Close()
	three := session.NewStore(session.Config{Sessions: n})
	for range 3 {
		add(t, three, bridge.Local)
	}
	three.Close()
}

// A store that is new to the cap gets its place from the session that has been idle longest anywhere: who fills one server with
// abandoned sessions locks nobody out of the others.
func TestCapShelvesInOtherStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := session.NewCap(3)
		store := func(endpoint string) *session.Store {
			cfg := sealing(t, newKept())
			cfg.Sessions, cfg.Shelve, cfg.Endpoint = n, time.Minute, endpoint
			return session.NewStore(cfg)
		}
		one, two := store("one"), store("two")
		oldest := shake(t, one, "alice")
		time.Sleep(time.Second)
		shake(t, one, "alice")
		shake(t, one, "alice")
		time.Sleep(time.Minute - time.Second - time.Nanosecond)
		if err := two.Reserve(); err == nil {
			t.Error("a session that was used just now gives its place up")
		}
		time.Sleep(time.Nanosecond)
		fresh := shake(t, two, "bob")
		if one.Len() != 2 || two.Len() != 1 || one.Find(oldest.ID(), "alice") != nil {
			t.Errorf("%d and %d sessions", one.Len(), two.Len())
		}
		time.Sleep(time.Second)
		if got, opened := reopen(t, one, oldest.ID(), "alice"); got == nil || !opened || one.Len() != 2 {
			t.Errorf("it comes back as %v, with %d sessions", got, one.Len())
		}
		if two.Find(fresh.ID(), "bob") != fresh {
			t.Error("a session in use was shelved")
		}
		one.Close()
		two.Close()
	})
}
