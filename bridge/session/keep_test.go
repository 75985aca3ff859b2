package session_test

import (
	"sync"
	"testing"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/seal"
	"mcpbridge/bridge/session"
)

// params is a handshake as a client sends it.
const params = `{"protocolVersion":"2025-06-18", "capabilities":{"sampling":{}},"clientInfo":{"name":"c","n":12345678901234567890}}`

// caps are a server's capabilities.
const caps = `{"tools":{"listChanged":true}}`

// kept is Facts that count what is done to them; it outlives stores as a file does.
type kept struct {
	mu     sync.Mutex
	facts  map[[16]byte]session.Fact
	saves  []saved
	buried int
}

type saved struct {
	uid  [16]byte
	fact session.Fact
	at   time.Time
}

func newKept() *kept { return &kept{facts: map[[16]byte]session.Fact{}} }

func (k *kept) Load(uid [16]byte) (session.Fact, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, ok := k.facts[uid]
	return f, ok
}

func (k *kept) Save(uid [16]byte, f session.Fact) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.saves = append(k.saves, saved{uid, f, time.Now()})
	if !k.facts[uid].Buried {
		k.facts[uid] = f
	}
}

func (k *kept) Bury(uid [16]byte, until time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.buried++
	k.facts[uid] = session.Fact{Buried: true, End: until}
	return nil
}

// taken returns what was saved since it was last asked.
func (k *kept) taken() []saved {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.saves
	k.saves = nil
	return s
}

func (k *kept) tombstones() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.buried
}

func ring(t testing.TB, keys ...byte) *seal.Ring {
	t.Helper()
	var list [][32]byte
	for _, k := range keys {
		list = append(list, [32]byte{k})
	}
	r, err := seal.NewRing(list...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sealing is the configuration of a store whose sessions survive it.
func sealing(t testing.TB, k *kept) session.Config {
	cfg := session.Config{Endpoint: "files", Sealer: ring(t, 1).Box("session id")}
	if k != nil {
		cfg.Facts = k
	}
	return cfg
}

// shake adds a session with a whole handshake.
func shake(t testing.TB, st *session.Store, p bridge.Principal) *session.Session {
	t.Helper()
	s := st.New(p, nil, true)
	h := session.Hello{Version: mcp.V20250618, Params: []byte(params), Server: session.Digest([]byte(caps))}
	if err := st.Add(s, h); err != nil {
		t.Fatalf("cannot add session: %v", err)
	}
	return s
}

// opener counts how often a session is opened again.
type opener struct {
	mu sync.Mutex
	n  int
}

func (o *opener) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}
