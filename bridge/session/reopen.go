package session

import (
	"context"
	"time"

	"mcpbridge/bridge"
)

// flight is the opening of a session that is known by its id only. Who waits for it reads s and err when done is closed; nil
// both means that there is no such session.
type flight struct {
	done    chan struct{}
	s       *Session
	err     *bridge.Error
	deleted bool // guarded by Store.mu; the client has deleted the session meanwhile
}

// Reopen returns the session a sealed id stands for: the live one, or one brought back by open. open is called at most once at
// a time for each id, and all who wait share its outcome; it has to give the session a link with Bind. It finds id, principal,
// handshake, level and subscriptions in place. The session is not in the store if open fails; the next call tries again. open
// goes on when callers leave; its context ends with Close only.
//
// Without an error and without a session there is none: the id is forged, of another endpoint or principal, deleted, too old or
// idle for too long (HTTP-L-21, HTTP-L-29). open is not called then, save when the session is deleted during the call. The cap
// holds as for Add.
func (st *Store) Reopen(ctx context.Context, id string, p bridge.Principal, open func(ctx context.Context, s *Session) *bridge.Error) (*Session, *bridge.Error) {
	if s := st.Find(id, p); s != nil {
		return s, nil
	}
	r, ok := st.unseal(id, p)
	if !ok {
		return nil, nil
	}
	s, f := st.join(ctx, id, p, &r, open)
	if f == nil {
		return s, nil
	}
	select {
	case <-f.done:
		return f.s, f.err
	case <-ctx.Done():
		return nil, bridge.Unavailable("gave up waiting for the session to be opened again").Because(context.Cause(ctx))
	}
}

// join returns the flight of an id, begun if need be; or the session if there is one by now; or neither if there is none any
// more.
func (st *Store) join(ctx context.Context, id string, p bridge.Principal, r *record, open func(context.Context, *Session) *bridge.Error) (*Session, *flight) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if s := st.byID[id]; s != nil { // the principal is part of the id
		s.touch(time.Now())
		return s, nil
	}
	if _, dying := st.dying[id]; dying {
		return nil, nil
	}
	f := st.flights[id]
	switch {
	case f != nil:
	case st.stop:
		f = &flight{done: make(chan struct{}), err: stopping()}
		close(f.done)
	default:
		f = &flight{done: make(chan struct{})}
		st.flights[id] = f
		st.wg.Go(func() {
			ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
			defer context.AfterFunc(st.life, stop)()
			defer stop()
			st.fly(ctx, f, st.revived(id, p, r), r, open)
		})
	}
	return nil, f
}

// revived is a session as its id describes it.
func (st *Store) revived(id string, p bridge.Principal, r *record) *Session {
	s := st.New(p, nil, false)
	s.uid, s.id, s.sealed, s.issued = r.uid, id, true, r.issued
	s.hello = helloOf(r.version, r.server, r.params)
	return s
}

// fly opens a session and tells all who wait.
func (st *Store) fly(ctx context.Context, f *flight, s *Session, r *record, open func(context.Context, *Session) *bridge.Error) {
	defer close(f.done)
	fact, there := st.fact(r, time.Now())
	if !there {
		st.land(f, s, false)
		return
	}
	s.restore(fact)
	if f.err = st.rise(); f.err != nil {
		st.land(f, s, false)
		return
	}
	f.err = open(ctx, s)
	if opened := f.err == nil; !st.land(f, s, true) && opened {
		st.finish(s)
	}
}

// land ends a flight and puts its session into the store, unless there is none or it must not be there.
func (st *Store) land(f *flight, s *Session, risen bool) (kept bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	delete(st.flights, s.id)
	defer func() {
		if risen && !kept {
			st.cfg.Sessions.release()
		}
	}()
	switch {
	case f.deleted:
		f.err = nil
	case !risen || f.err != nil:
	case st.stop:
		f.err = stopping()
	default:
		f.s = s
		st.byID[s.id] = s
		s.began(time.Now())
		return true
	}
	return false
}

// began makes a session that is open again count as used, and has that saved: what is kept says that it lies still.
func (s *Session) began(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used, s.changed = now, true
	s.note()
}

// rise takes a place for a session that is being opened again.
func (st *Store) rise() *bridge.Error {
	st.mu.Lock()
	stop := st.stop
	st.mu.Unlock()
	switch {
	case stop:
		return stopping()
	case !st.cfg.Sessions.room():
		return tooMany()
	}
	return nil
}

// fact returns what is known of a session that is not live; there is false if it is not to be opened any more.
func (st *Store) fact(r *record, now time.Time) (f Fact, there bool) {
	if st.tooOld(r.issued, now) {
		return Fact{}, false
	}
	f, known := st.facts.Load(r.uid)
	if !known {
		return unknown(r.issued), true
	}
	idle := now.Sub(f.Used)
	if f.Running {
		idle -= useSlack
	}
	if f.Buried || st.cfg.Idle >= 0 && idle > st.cfg.Idle {
		return Fact{}, false
	}
	return f, true
}
