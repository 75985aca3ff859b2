package session_test

import (
	"testing"

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
