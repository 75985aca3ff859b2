package parked

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/seal"
)

// Config describes the parked calls of one server. The zero value of a limit means its default.
type Config struct {
	Server string
	// Box seals request states. Replicas that share its keys know each other's.
	Box *seal.Box
	// TTL is how long a round waits for its retry. Default 10 minutes.
	TTL time.Duration
	// Life bounds a call that is asked something from its start. Default 60 minutes.
	Life time.Duration
	// Window is how long further questions are waited for, so that the user is asked once; negative: not at all. Default 30
	// milliseconds.
	Window time.Duration
	// Keep is how long the outcome of a call is kept after it was delivered, for a client that lost it. Default 60 seconds.
	Keep time.Duration
	// PerPrincipal and PerLink bound the calls that are parked at a time; one more fails. Default 32 and 64. Outcomes that are kept do
	// not count.
	PerPrincipal, PerLink int
	// Rounds is how often the client of one call can be asked; the next time fails the call. Default 16.
	Rounds int
	// Questions is how many questions of a call may be open; one more is refused to the server. Default 32.
	Questions int
	// QuestionBytes is how much the open questions of a call may hold together; more is refused to the server, save a single one.
	// Default 4 MiB.
	QuestionBytes int
	// Readers is how many requests of a client may wait for one call: duplicates of a retry. Default 16.
	Readers int
	// Outcomes and OutcomeBytes bound the outcomes that are kept: the oldest are forgotten. Default 1000, and 64 MiB.
	Outcomes, OutcomeBytes int
	// VisitWait is how long a retry waits for the server's word that the URLs it named have been visited (-32042). Default 10
	// seconds.
	VisitWait time.Duration
	// NoRestart has interrupted reads fail like calls of tools, instead of being run again (translation 5.9).
	NoRestart bool
	// Roots is the raw result of roots/list for clients that have none, nil for none.
	Roots []byte
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func (c Config) withDefaults() Config {
	c.TTL = or(c.TTL, 10*time.Minute)
	c.Life = or(c.Life, time.Hour)
	c.Window = or(c.Window, 30*time.Millisecond)
	c.Keep = or(c.Keep, time.Minute)
	c.PerPrincipal = or(c.PerPrincipal, 32)
	c.PerLink = or(c.PerLink, 64)
	c.Rounds = or(c.Rounds, 16)
	c.Questions = or(c.Questions, 32)
	c.QuestionBytes = or(c.QuestionBytes, 4<<20)
	c.Readers = or(c.Readers, 16)
	c.Outcomes = or(c.Outcomes, 1000)
	c.OutcomeBytes = or(c.OutcomeBytes, 64<<20)
	c.VisitWait = or(c.VisitWait, 10*time.Second)
	return c
}

// Table holds the calls of one server that were asked something, and what is left of them for a while. Lock order: a call's, then
// the table's.
type Table struct {
	cfg   Config
	bound []byte // authenticated with every state
	wg    sync.WaitGroup
	visit visits
	moves atomic.Uint64

	mu       sync.Mutex
	calls    map[pid]*call
	alive    int // of calls, those that are not over
	owners   map[bridge.Principal]int
	links    map[*bridge.Link]int
	kept     []*call // outcomes, oldest first
	bytes    int     // of them
	draining bool
	closed   bool
}

// New returns an empty table. Close ends it.
func New(cfg Config) *Table {
	return &Table{cfg: cfg.withDefaults(), bound: []byte(prefix + cfg.Server), calls: map[pid]*call{}, owners: map[bridge.Principal]int{},
		links: map[*bridge.Link]int{}}
}

// Open is the number of calls that were asked something and are not over.
func (t *Table) Open() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.alive
}

// Len is the number of calls the table knows, those included of which only the outcome is kept.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.calls)
}

// Drain ends the calls whose client is being asked, and lets no other be: nobody can go on with them where no retry is served.
// Calls with a request attached go on.
func (t *Table) Drain() {
	t.mu.Lock()
	t.draining = true
	t.mu.Unlock()
	for _, r := range t.all() {
		r.endWaiting(lost("the bridge stopped serving it"))
	}
}

// Close ends all calls and forgets all outcomes.
func (t *Table) Close() {
	t.Drain()
	for _, r := range t.all() {
		r.kill(stopping(t.cfg.Server), []byte(`"the bridge stops"`), nil)
		r.discard()
	}
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.wg.Wait()
}

func (t *Table) all() []*call {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*call, 0, len(t.calls))
	for _, r := range t.calls {
		list = append(list, r)
	}
	return list
}

// after runs f later unless the table is closed by then, which waits for it.
func (t *Table) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() {
		t.mu.Lock()
		if t.closed {
			t.mu.Unlock()
			return
		}
		t.wg.Add(1)
		t.mu.Unlock()
		defer t.wg.Done()
		f()
	})
}

// enter takes a call into the table, within the limits.
func (t *Table) enter(r *call) *bridge.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	who := r.inner.Principal
	switch {
	case t.draining:
		return stopping(t.cfg.Server)
	case t.owners[who] >= t.cfg.PerPrincipal:
		return tooManyParked(t.cfg.Server, "you have", t.cfg.PerPrincipal, "ask.perPrincipal")
	case t.links[r.link] >= t.cfg.PerLink:
		return tooManyParked(t.cfg.Server, "one process has", t.cfg.PerLink, "ask.perLink")
	}
	_, _ = rand.Read(r.pid[:])
	t.calls[r.pid] = r
	t.alive++
	t.owners[who]++
	t.links[r.link]++
	return nil
}

// leave counts a call that is over no more; what is left of it holds size bytes. It returns those that are forgotten for it.
func (t *Table) leave(r *call, size int) (old []*call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.alive--
	if t.owners[r.inner.Principal]--; t.owners[r.inner.Principal] == 0 {
		delete(t.owners, r.inner.Principal)
	}
	if t.links[r.link]--; t.links[r.link] == 0 {
		delete(t.links, r.link)
	}
	r.size = size
	t.kept = append(t.kept, r)
	t.bytes += size
	for len(t.kept) > t.cfg.Outcomes || t.bytes > t.cfg.OutcomeBytes {
		old = append(old, t.kept[0])
		t.forgetLocked(t.kept[0])
	}
	return old
}

func (t *Table) forget(r *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forgetLocked(r)
}

func (t *Table) forgetLocked(r *call) {
	if t.calls[r.pid] != r {
		return
	}
	delete(t.calls, r.pid)
	for i, k := range t.kept {
		if k == r {
			t.kept[i] = nil
			t.kept = append(t.kept[:i], t.kept[i+1:]...)
			t.bytes -= r.size
			return
		}
	}
}

func (t *Table) find(id pid) *call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[id]
}

// restarts reports whether a request may be run again when its call is gone (translation 5.9).
func (t *Table) restarts(method string) bool {
	return !t.cfg.NoRestart && (method == mcp.ResourcesRead || method == mcp.PromptsGet)
}
