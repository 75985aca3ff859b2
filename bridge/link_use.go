package bridge

import (
	"context"
	"errors"
	"time"
)

// Use tells what a link's server is needed for.
type Use struct {
	Live      bool      // a connection is open, or one is being opened
	Calls     int       // open requests, of clients and of the bridge's own, and questions of the server
	Listening bool      // a client has a stream open for what the server sends of its own accord
	Sessions  int       // legacy sessions attached
	Since     time.Time // when the link was last handed out or found busy
}

// Busy reports whether something would be cut off if the server ended now.
func (u Use) Busy() bool { return u.Calls > 0 || u.Listening }

// Use returns what the link is used for now. Time counts as unused from the last time it was found busy, so whoever wants to know
// for how long it lay still asks regularly.
func (l *Link) Use() Use {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.useLocked()
}

func (l *Link) useLocked() Use {
	u := Use{Live: l.conn != nil || l.opening != nil, Sessions: len(l.sessions), Listening: l.listeningLocked(), Calls: len(l.reversals)}
	if l.opening != nil {
		u.Calls++
	}
	if l.conn != nil {
		u.Calls += l.conn.pending()
	}
	if u.Busy() {
		l.lastUse = time.Now()
	}
	u.Since = l.lastUse
	return u
}

func (l *Link) listeningLocked() bool {
	for _, s := range l.sessions {
		if s.Listening() {
			return true
		}
	}
	return false
}

// pending is the number of requests and questions that are open, the bridge's own listen apart.
func (c *Conn) pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.questions)
	for _, k := range c.calls {
		if k.ex != nil || !k.endless {
			n++
		}
	}
	return n
}

// Rest ends the server of a link that has not been used for a while; the next message starts it anew, and sessions do not
// notice beyond what their server kept in memory. It does nothing, and returns false, if the link is in use.
func (l *Link) Rest(ctx context.Context, unused time.Duration) (rested bool, err error) {
	l.mu.Lock()
	u := l.useLocked()
	if u.Busy() || l.closed || time.Since(u.Since) < unused {
		l.mu.Unlock()
		return false, nil
	}
	l.conn = nil // from here on a message opens another
	l.mu.Unlock()
	return true, l.cfg.Back.Halt(ctx)
}

// Halt ends the server; the next message starts it anew, or a client that listens does. Open requests get an error that says
// so.
func (l *Link) Halt(ctx context.Context) error {
	l.mu.Lock()
	if l.conn != nil {
		l.conn.retire()
	}
	l.mu.Unlock()
	return l.cfg.Back.Halt(ctx)
}

// needed reports whether the server is to run although no message asks for it (design section 8: restart of a dead child).
func (l *Link) needed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.neededLocked()
}

func (l *Link) neededLocked() bool {
	return !l.closed && (l.cfg.Keep || l.heldLocked() || l.listeningLocked())
}

// heldLocked reports whether somebody is subscribed to a resource.
func (l *Link) heldLocked() bool {
	for _, who := range l.state.subs {
		if len(who) > 0 {
			return true
		}
	}
	return false
}

// Waits of revive between tries that fail at once.
const (
	reviveMin = time.Second
	reviveMax = 30 * time.Second
)

// revive opens the link again as long as somebody listens. How often the server is started is the back's affair.
func (l *Link) revive() {
	defer func() {
		l.mu.Lock()
		l.reviving = false
		l.mu.Unlock()
	}()
	wait := reviveMin
	for l.needed() {
		_, err := l.Conn(l.ctx)
		if err == nil {
			return
		}
		t := time.NewTimer(max(wait, retryAfter(err)))
		select {
		case <-t.C:
		case <-l.ctx.Done():
			t.Stop()
			return
		}
		wait = min(2*wait, reviveMax)
	}
}

// reviveLocked starts revive unless it runs already.
func (l *Link) reviveLocked() {
	if !l.reviving && l.neededLocked() {
		l.reviving = true
		l.wg.Go(l.revive)
	}
}

// Wake has the server opened, and opened again when it dies, while a client listens.
func (l *Link) Wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		l.reviveLocked()
	}
}

// retryAfter is when an error says that a further try makes sense, zero if it says nothing.
func retryAfter(err error) time.Duration {
	var r interface{ RetryAfter() time.Duration }
	if errors.As(err, &r) {
		return r.RetryAfter()
	}
	return 0
}
