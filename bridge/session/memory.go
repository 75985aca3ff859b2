package session

import (
	"slices"
	"sync"
	"time"

	"mcpbridge/bridge/mcp"
)

// MaxMemory is of how many sessions a store without Facts remembers what it would keep there. Beyond, those are forgotten first
// whose life ends first: a deleted session could be opened again then, one that was shelved loses its level and subscriptions.
const MaxMemory = 10_000

// unknown is the fact of a session nothing is known of but its handshake.
func unknown(issued time.Time) Fact { return Fact{Level: mcp.NoLevel, Used: issued} }

// memory is Facts that end with the process.
type memory struct {
	max int

	mu    sync.Mutex
	facts map[[16]byte]Fact
}

func newMemory(n int) *memory { return &memory{max: n, facts: map[[16]byte]Fact{}} }

func (m *memory) Load(uid [16]byte) (Fact, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.facts[uid]
	return f, ok
}

func (m *memory) Save(uid [16]byte, f Fact) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.facts[uid]; old.Buried || old.Used.After(f.Used) {
		return
	}
	m.putLocked(uid, f)
}

func (m *memory) Bury(uid [16]byte, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.putLocked(uid, Fact{Buried: true, End: until})
	return nil
}

func (m *memory) putLocked(uid [16]byte, f Fact) {
	if _, known := m.facts[uid]; !known && len(m.facts) >= m.max {
		m.trimLocked()
	}
	m.facts[uid] = f
}

// trimLocked makes room for a tenth of what may be kept.
func (m *memory) trimLocked() {
	type end struct {
		uid [16]byte
		at  time.Time
	}
	ends := make([]end, 0, len(m.facts))
	for uid, f := range m.facts {
		ends = append(ends, end{uid, f.End})
	}
	slices.SortFunc(ends, func(a, b end) int {
		if a.at.IsZero() != b.at.IsZero() { // what never ends goes last
			if a.at.IsZero() {
				return 1
			}
			return -1
		}
		return a.at.Compare(b.at)
	})
	for _, e := range ends[:max(len(ends)/10, 1)] {
		delete(m.facts, e.uid)
	}
}
