package pool

import (
	"context"
	"sync"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

// Pool holds the links of one server. Lock order: mu, then the Budget's, then those of links; the Budget's is not held
// while a link is called.
type Pool struct {
	cfg  Config
	ctx  context.Context
	wg   sync.WaitGroup // ends of processes and what watches them; nothing is added once stopping is set and no tenant is left
	more chan struct{}  // full when it may be possible to start a spare

	seats seats // guarded by the Budget's lock

	mu     sync.Mutex
	shared map[Key]*tenant          // guarded by mu
	groups map[owner][]*tenant      // guarded by mu; those of shared by owner, oldest first
	own    map[*bridge.Link]*tenant // guarded by mu; of sessions
	single map[*bridge.Link]*tenant // guarded by mu; of requests
	closed bool                     // guarded by mu
}

// New returns an empty pool whose links live no longer than ctx. Close takes it off the Budget.
func New(ctx context.Context, cfg Config) *Pool {
	p := &Pool{cfg: cfg.withDefaults(), ctx: ctx, more: make(chan struct{}, 1), shared: map[Key]*tenant{}, groups: map[owner][]*tenant{},
		own: map[*bridge.Link]*tenant{}, single: map[*bridge.Link]*tenant{}}
	p.cfg.Budget.join(p)
	return p
}

// Shared returns the link of a key, a new one the first time. params is the initialize request of the bridge's own. An owner
// has at most maxProfiles links: a client of a further profile gets the link of the largest that asks it no more than it
// declared (translation 14.3).
func (p *Pool) Shared(k Key, params []byte) (*bridge.Link, *bridge.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.shared[k]
	if t == nil {
		var err *bridge.Error
		if t, err = p.shareLocked(k, params); err != nil {
			return nil, err
		}
	}
	t.given.Store(time.Now().UnixNano())
	return t.link, nil
}

// Any returns the oldest link of a key's owner, whatever its profile, and one of the key if there is none: for a server that is
// told with each request what its client can do.
func (p *Pool) Any(k Key, params []byte) (*bridge.Link, *bridge.Error) {
	p.mu.Lock()
	for _, t := range p.groups[k.owner()] {
		t.given.Store(time.Now().UnixNano())
		p.mu.Unlock()
		return t.link, nil
	}
	p.mu.Unlock()
	return p.Shared(k, params)
}

// Group returns the shared links of a key's owner. It makes none.
func (p *Pool) Group(k Key) (links []*bridge.Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.groups[k.owner()] {
		links = append(links, t.link)
	}
	return links
}

// Exclusive returns a link for one legacy session. params is the client's own initialize request; reopened tells that the
// client has finished its handshake with an earlier link. Release ends it.
func (p *Pool) Exclusive(params []byte, reopened bool) (*bridge.Link, *bridge.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.newLocked(KindSession, Key{Era: mcp.Legacy}, bridge.LinkConfig{Params: params, Exclusive: true, Reopened: reopened})
	if err != nil {
		return nil, err
	}
	p.own[t.link] = t
	return t.link, nil
}

// Single returns a link for one modern request (isolation "request"). Release ends it.
func (p *Pool) Single(k Key, params []byte) (*bridge.Link, *bridge.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.newLocked(KindRequest, k, bridge.LinkConfig{Params: params})
	if err != nil {
		return nil, err
	}
	p.single[t.link] = t
	return t.link, nil
}

// Singles returns the links of a principal's requests that are out now.
func (p *Pool) Singles(principal bridge.Principal) (links []*bridge.Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l, t := range p.single {
		if t.key.Principal == principal {
			links = append(links, l)
		}
	}
	return links
}

// newLocked makes a link of what is particular about it. It takes no seat yet.
func (p *Pool) newLocked(kind string, k Key, particular bridge.LinkConfig) (*tenant, *bridge.Error) {
	switch {
	case p.closed:
		return nil, p.stopping()
	case p.lenLocked() >= p.cfg.Links:
		return nil, p.crowded()
	}
	t := &tenant{place: place{pool: p}, kind: kind, key: k, since: time.Now(), over: make(chan struct{})}
	cfg := p.cfg.Link
	cfg.Want, cfg.Params, cfg.Exclusive, cfg.Reopened, cfg.Keep = k.Era, particular.Params, particular.Exclusive, particular.Reopened, particular.Keep
	cfg.Single, cfg.Profile = kind == KindRequest, k.Profile
	cfg.Back = t
	t.link = bridge.NewLink(p.ctx, cfg)
	p.retrySpares()
	return t, nil
}

// Release ends the link of a session or of a request; of any other it does nothing. It returns at once; Close waits for it.
func (p *Pool) Release(l *bridge.Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range [...]map[*bridge.Link]*tenant{p.own, p.single} {
		if t := list[l]; t != nil {
			delete(list, l)
			p.end(t, func(error) {}) // what survives is reported by whoever runs the server
		}
	}
}

// end ends a link that is handed out no more.
func (p *Pool) end(t *tenant, done func(error)) {
	t.leave()
	p.wg.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), p.cfg.Grace)
		defer stop()
		done(t.link.Close(ctx))
	})
}

// Len is the number of links in use, with a process or without; those on their way out do not count.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lenLocked()
}

func (p *Pool) lenLocked() int { return len(p.shared) + len(p.own) + len(p.single) }

// tenants returns all links in use.
func (p *Pool) tenants() []*tenant {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*tenant, 0, p.lenLocked())
	for _, t := range p.shared {
		list = append(list, t)
	}
	for _, t := range p.own {
		list = append(list, t)
	}
	for _, t := range p.single {
		list = append(list, t)
	}
	return list
}
