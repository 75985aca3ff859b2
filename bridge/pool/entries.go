package pool

import (
	"cmp"
	"slices"
	"time"

	"mcpbridge/bridge"
)

// Entry is a link, or a spare, for whoever wants to know what runs.
type Entry struct {
	Link  *bridge.Link // nil of a spare
	Back  bridge.Back  // as Config.Back made it; nil until the link is opened the first time
	Kind  string       // one of the Kind constants
	Key   Key          // of shared links and of requests
	Since time.Time    // when the link was made, or the spare started
}

// Entries returns the links in use, with a process or without, and the spares, oldest first.
func (p *Pool) Entries() []Entry {
	tenants := p.tenants()
	b := p.cfg.Budget
	b.mu.Lock()
	list := make([]Entry, 0, len(tenants)+len(p.seats.spares))
	for _, t := range tenants {
		list = append(list, Entry{t.link, t.back, t.kind, t.key, t.since})
	}
	for _, s := range p.seats.spares {
		list = append(list, Entry{Back: s.back, Kind: KindSpare, Since: s.since})
	}
	b.mu.Unlock()
	slices.SortStableFunc(list, func(x, y Entry) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Kind, y.Kind))
	})
	return list
}

// Waiting is the number of openings that wait for a seat.
func (p *Pool) Waiting() int {
	p.cfg.Budget.mu.Lock()
	defer p.cfg.Budget.mu.Unlock()
	return p.seats.waiting
}
