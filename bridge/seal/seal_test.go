package seal_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"mcpbridge/bridge/seal"
)

func key(b byte) (k [32]byte) {
	for i := range k {
		k[i] = b
	}
	return k
}

func ring(t *testing.T, keys ...[32]byte) *seal.Ring {
	t.Helper()
	r, err := seal.NewRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What was sealed opens with the same key, label and bound text, and with nothing else (SEC-02).
func TestOpen(t *testing.T) {
	box := ring(t, key(1)).Box("a")
	plain, bound := []byte("a session"), []byte("alice")
	sealed := box.Seal(plain, bound)
	if len(sealed) != len(plain)+seal.Overhead {
		t.Errorf("%d bytes, want %d", len(sealed), len(plain)+seal.Overhead)
	}
	for name, tc := range map[string]struct {
		box    *seal.Box
		sealed []byte
		bound  string
		opens  bool
	}{
		"itself":                  {box, sealed, "alice", true},
		"same key, made anew":     {ring(t, key(1)).Box("a"), sealed, "alice", true},
		"other key":               {ring(t, key(2)).Box("a"), sealed, "alice", false},
		"other label":             {ring(t, key(1)).Box("b"), sealed, "alice", false},
		"other bound text":        {box, sealed, "bob", false},
		"no bound text":           {box, sealed, "", false},
		"longer":                  {box, append(bytes.Clone(sealed), 0), "alice", false},
		"nothing":                 {box, nil, "alice", false},
		"the plain text":          {box, plain, "alice", false},
		"another key's id before": {box, append(ring(t, key(2)).Box("a").Seal(plain, bound)[:4], sealed[4:]...), "alice", false},
	} {
		got, ok := tc.box.Open(tc.sealed, []byte(tc.bound))
		if ok != tc.opens || ok && string(got) != string(plain) || !ok && got != nil {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
}

// No part of a sealed text can be changed or left out.
func TestTampered(t *testing.T) {
	box := ring(t, key(1), key(2)).Box("a")
	sealed := box.Seal([]byte("0123456789"), nil)
	for i := range sealed {
		if _, ok := box.Open(sealed[:i], nil); ok {
			t.Errorf("opens when cut to %d bytes", i)
		}
		for bit := range 8 {
			forged := bytes.Clone(sealed)
			forged[i] ^= 1 << bit
			if _, ok := box.Open(forged, nil); ok {
				t.Errorf("opens with bit %d of byte %d turned", bit, i)
			}
		}
	}
}

// An empty text is a text.
func TestEmpty(t *testing.T) {
	box := ring(t, key(1)).Box("a")
	if got, ok := box.Open(box.Seal(nil, nil), nil); !ok || len(got) != 0 {
		t.Errorf("%q, %v", got, ok)
	}
}

// The first key seals, all open; what was sealed with a key that is gone is gone.
func TestRotation(t *testing.T) {
	old, next := key(1), key(2)
	before := ring(t, old).Box("a").Seal([]byte("old"), nil)
	both := ring(t, next, old)
	during := both.Box("a").Seal([]byte("new"), nil)
	after := ring(t, next).Box("a")
	if got, ok := both.Box("a").Open(before, nil); !ok || string(got) != "old" {
		t.Errorf("while both are there: %q, %v", got, ok)
	}
	if _, ok := after.Open(before, nil); ok {
		t.Error("opens after its key is gone")
	}
	if got, ok := after.Open(during, nil); !ok || string(got) != "new" {
		t.Errorf("not sealed with the first key: %q, %v", got, ok)
	}
}

// Equal texts do not look equal.
func TestNonces(t *testing.T) {
	box := ring(t, key(1)).Box("a")
	seen := map[string]bool{}
	for range 1000 {
		s := string(box.Seal([]byte("same"), nil)[4:])
		if seen[s] {
			t.Fatal("sealed twice alike")
		}
		seen[s] = true
	}
}

func TestNewRing(t *testing.T) {
	many := make([][32]byte, seal.MaxKeys+1)
	for i := range many {
		many[i] = key(byte(i))
	}
	for name, tc := range map[string]struct {
		keys [][32]byte
		says string // "" is fine
	}{
		"none":         {nil, "no key"},
		"one":          {many[:1], ""},
		"n":            {many[:seal.MaxKeys], ""},
		"n+1":          {many, "at most 16"},
		"one twice":    {[][32]byte{key(1), key(2), key(1)}, "keys 1 and 3"},
		"all zero too": {[][32]byte{{}, key(1)}, ""},
	} {
		_, err := seal.NewRing(tc.keys...)
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	r := ring(t, key(1), key(2))
	box := r.Box("a")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				if got, ok := r.Box("a").Open(box.Seal([]byte{byte(i)}, []byte{byte(i)}), []byte{byte(i)}); !ok || got[0] != byte(i) {
					t.Error("another's text")
				}
			}
		})
	}
	wg.Wait()
}

// A session id is opened with every request of a session that is not live here; this is what it costs.
func BenchmarkOpen(b *testing.B) {
	r, _ := seal.NewRing(key(1))
	box := r.Box("a")
	sealed := box.Seal(make([]byte, 400), nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := box.Open(sealed, nil); !ok {
			b.Fatal("does not open")
		}
	}
}
