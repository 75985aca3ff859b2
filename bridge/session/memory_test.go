package session

import (
	"runtime"
	"testing"
	"time"

	"mcpbridge/bridge/mcp"
)

// n facts are remembered; with n+1 those whose sessions end first are forgotten, and never one without an end before one with.
func TestMemoryLimit(t *testing.T) {
	m := newMemory(20)
	start := time.Unix(1000, 0)
	_ = m.Bury([16]byte{1}, time.Time{})
	for i := byte(2); i <= 20; i++ {
		m.Save([16]byte{i}, Fact{End: start.Add(time.Duration(i))})
	}
	there := func(i byte) bool { _, ok := m.Load([16]byte{i}); return ok }
	for i := byte(1); i <= 20; i++ {
		if !there(i) {
			t.Fatalf("fact %d of n is gone", i)
		}
	}
	m.Save([16]byte{20}, Fact{Level: 1, Used: start})
	m.Save([16]byte{21}, Fact{End: start.Add(time.Hour)})
	for i := byte(1); i <= 21; i++ {
		if gone := i == 2 || i == 3; there(i) == gone {
			t.Errorf("after n+1 fact %d is there: %v", i, !gone)
		}
	}
}

func TestMemorySupersedes(t *testing.T) {
	m := newMemory(2)
	uid, now := [16]byte{1}, time.Unix(1000, 0)
	m.Save(uid, Fact{Level: 1, Used: now})
	m.Save(uid, Fact{Level: 2, Used: now})
	m.Save(uid, Fact{Level: 3, Used: now.Add(-1)})
	if f, _ := m.Load(uid); f.Level != 2 {
		t.Errorf("%+v", f)
	}
	_ = m.Bury(uid, now)
	m.Save(uid, Fact{Level: 4, Used: now.Add(time.Hour)})
	if f, _ := m.Load(uid); !f.Buried || !f.End.Equal(now) {
		t.Errorf("%+v", f)
	}
}

// noSealer stands for one that makes ids of a usual length.
type noSealer struct{}

func (noSealer) Seal(plain, _ []byte) []byte {
	return append(make([]byte, 32, 32+len(plain)), plain...)
}
func (noSealer) Open(b, _ []byte) ([]byte, bool) { return b[32:], true }

// An open session that lies still costs little: 200 of them may cost 3 MiB in all, links and HTTP included.
func TestIdleSessionIsSmall(t *testing.T) {
	st := NewStore(Config{Sessions: NewCap(5000), Sealer: noSealer{}})
	params := []byte(`{"protocolVersion":"2025-06-18","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{}},` +
		`"clientInfo":{"name":"some-client","title":"Some Client","version":"1.2.3"}}`)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const n, limit = 4000, 2048
	before := heap()
	for range n {
		s := st.New("local", nil, true)
		if err := st.Add(s, Hello{Version: mcp.V20250618, Params: params}); err != nil {
			t.Fatal(err)
		}
	}
	each := (heap() - before) / n
	runtime.KeepAlive(st)
	t.Logf("%d bytes each", each)
	if each > limit {
		t.Errorf("a session costs %d bytes, limit %d", each, limit)
	}
}
