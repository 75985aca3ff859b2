package session

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"mcpbridge/bridge"
)

// lookEvery bounds the time between two looks at all sessions: a twentieth of Idle within these.
const (
	lookMin = time.Second
	lookMax = time.Minute
)

// buriers is how many sessions are buried at once: each may wait for the disk.
const buriers = 32

// Run ends sessions whose time is over and saves facts, until ctx ends.
func (st *Store) Run(ctx context.Context) {
	every := lookMax
	if st.cfg.Idle > 0 {
		every = min(max(st.cfg.Idle/20, lookMin), lookMax)
	}
	look := time.NewTicker(every)
	defer look.Stop()
	again := time.NewTimer(saveEvery)
	defer again.Stop()
	changed := st.changed
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			st.sweep(time.Now())
			st.save(uses)
			continue
		case <-changed:
			st.save(changes)
			changed = nil // further ones wait, so that many cost no more than one
		case <-again.C:
			if changed != nil {
				continue
			}
			changed = st.changed
			if !st.save(changes) {
				continue
			}
			changed = nil
		}
		again.Reset(saveEvery)
	}
}

// Flush saves what is not saved yet, for another store of the endpoint to find.
func (st *Store) Flush() { st.save(all) }

func (st *Store) save(w which) (later bool) {
	now := time.Now()
	for _, s := range st.live() {
		if s.save(w, now, true) {
			later = true
		}
	}
	return later
}

// sweep ends the sessions whose time is over, and has the others forget old streams.
func (st *Store) sweep(now time.Time) {
	var over []*Session
	for _, s := range st.live() {
		s.trim(now)
		s.idle(now) // one that is in use is in use until now, for whoever reads its fact
		if s.over(now) {
			over = append(over, s)
		}
	}
	st.mu.Lock()
	over = slices.DeleteFunc(over, func(s *Session) bool { // used or ended meanwhile
		return st.byID[s.id] != s || !s.over(now)
	})
	for _, s := range over {
		st.takeLocked(s)
	}
	st.mu.Unlock()
	var wg sync.WaitGroup
	for batch := range slices.Chunk(over, buriers) {
		for _, s := range batch {
			wg.Go(func() { st.bury(s) })
		}
		wg.Wait()
	}
}

// takeLocked takes a session out of the store that is not to come back.
func (st *Store) takeLocked(s *Session) {
	delete(st.byID, s.id)
	st.cfg.Sessions.release()
	st.dying[s.id] = struct{}{}
}

// bury ends a session that takeLocked has taken out. Until it is buried nobody opens it again.
func (st *Store) bury(s *Session) {
	st.finish(s)
	if s.sealed {
		_ = st.facts.Bury(s.uid, st.lifeEnd(s.issued)) // what could not be written holds for this run all the same
	}
	st.mu.Lock()
	delete(st.dying, s.id)
	st.mu.Unlock()
}

// lifeEnd is when a session of that age ends, the zero time for never.
func (st *Store) lifeEnd(issued time.Time) time.Time {
	if st.cfg.Life < 0 {
		return time.Time{}
	}
	return issued.Add(st.cfg.Life)
}

// tooOld reports whether the life of a session is over.
func (st *Store) tooOld(issued, now time.Time) bool {
	return st.cfg.Life >= 0 && now.Sub(issued) > st.cfg.Life
}

// Delete ends a session for good at its client's wish, and reports whether there was one (HTTP-L-23). It opens none for that.
func (st *Store) Delete(id string, p bridge.Principal) bool {
	r, known := st.unseal(id, p)
	st.mu.Lock()
	s := st.byID[id]
	_, dying := st.dying[id]
	switch {
	case s != nil && s.principal == p:
		st.takeLocked(s)
		st.mu.Unlock()
		st.bury(s)
		return true
	case !known || dying:
		st.mu.Unlock()
		return false
	}
	st.dying[id] = struct{}{}
	if f := st.flights[id]; f != nil {
		f.deleted = true
	}
	st.mu.Unlock()
	_, there := st.fact(&r, time.Now())
	if there {
		_ = st.facts.Bury(r.uid, st.lifeEnd(r.issued))
	}
	st.mu.Lock()
	delete(st.dying, id)
	st.mu.Unlock()
	return there
}

// touch makes a session count as used now.
func (s *Session) touch(now time.Time) {
	s.mu.Lock()
	s.used = now
	s.mu.Unlock()
}

// over reports whether the time of a session is over. Nothing is cut off by that.
func (s *Session) over(now time.Time) bool {
	cfg := &s.store.cfg
	if s.store.tooOld(s.issued, now) && s.quiet() {
		return true
	}
	return cfg.Idle >= 0 && s.unused(now) > cfg.Idle && s.idle(now) > cfg.Idle
}

// unused is the time since the session was last known to be used: idle is not longer.
func (s *Session) unused(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.used)
}

// idle reports for how long nothing has happened, zero while something does: an exchange, an open stream, an open question,
// a request at the server whose client is away (case 54). The clock starts anew when that is over.
func (s *Session) idle(now time.Time) time.Duration {
	busy := s.calling()
	s.mu.Lock()
	defer s.mu.Unlock()
	if busy || s.active > 0 || len(s.standing) > 0 || len(s.asks) > 0 || s.runningLocked() {
		s.used = now
	}
	return now.Sub(s.used)
}

// quiet reports whether no request is under way. A client that only listens does not count: it would never end.
func (s *Session) quiet() bool {
	if s.calling() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	readers := 0
	for _, k := range s.streams {
		if !k.own && !k.stream.Over() {
			return false
		}
		readers += k.readers
	}
	return len(s.asks) == 0 && s.active <= readers
}

// calling reports whether the server works on a request of the session.
func (s *Session) calling() bool {
	if s.link == nil {
		return false
	}
	c := s.link.Live()
	if c == nil {
		return false
	}
	_, n := c.Youngest(func(e *bridge.Exchange) bool { return e.Session == bridge.Session(s) })
	return n > 0
}

func (s *Session) runningLocked() bool {
	for _, k := range s.streams {
		if !k.own && k.readers == 0 && !k.stream.Over() {
			return true
		}
	}
	return false
}

// idlest is the session that may be shelved and has been idle longest, and for how long; nil if there is none.
func (st *Store) idlest(now time.Time) (*Session, time.Duration) {
	if st.cfg.Shelve < 0 {
		return nil, 0
	}
	type candidate struct {
		s      *Session
		unused time.Duration
	}
	var list []candidate
	for _, s := range st.live() {
		if !s.sealed {
			continue
		}
		if d := s.unused(now); d >= st.cfg.Shelve {
			list = append(list, candidate{s, d})
		}
	}
	slices.SortFunc(list, func(a, b candidate) int { return cmp.Compare(b.unused, a.unused) })
	for _, c := range list {
		if d := c.s.idle(now); d >= st.cfg.Shelve {
			return c.s, d
		}
	}
	return nil, 0
}
