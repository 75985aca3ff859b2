package back

import (
	"context"
	"errors"
	"net/http"
	"time"

	"mcpbridge/framing"
	"mcpbridge/framing/sse"
)

// listen keeps the GET stream of a session open, on which the server sends what belongs to no request (HTTP-L-10, HTTP-L-11). A
// server that offers none is left alone.
func (u *streamable) listen() {
	var at cursor
	at.retry = -1
	s, heard, tries := u.current(), false, 0
	for u.ctx.Err() == nil {
		if now := u.current(); now.over != s.over { // ids of a lost session mean nothing
			s, at, heard = now, cursor{retry: -1}, false
		}
		began := time.Now()
		next, err := u.attend(s, at)
		var refused *statusError
		switch {
		case err == nil:
			if time.Since(began) > resumePause { // not one that ends its streams at once
				tries = 0
			}
			at, heard = at.then(next), true
		case errors.As(err, &refused) && refused.status == http.StatusNotFound && heard && s.id != "":
			if u.renew(u.ctx, s) == nil {
				continue
			}
		case !passing(err) && !heard, errors.As(err, &refused) && !refused.outage():
			return
		}
		if !u.rest(s, at.pause(tries)) {
			return
		}
		tries++
	}
}

// rest waits before the next try; another session cuts that short.
func (u *streamable) rest(s session, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.over:
	case <-u.ctx.Done():
		return false
	}
	return true
}

// attend delivers what comes on one GET stream until it ends, or its session is replaced. The error is nil if it was opened.
func (u *streamable) attend(s session, at cursor) (cursor, error) {
	ctx, stop := context.WithCancel(u.ctx)
	defer stop()
	u.begin(func() {
		select {
		case <-s.over:
			stop()
		case <-ctx.Done():
		}
	})
	resp, err := u.stream(ctx, s, at)
	if err != nil {
		return at, err
	}
	defer resp.Body.Close()
	dec := sse.NewDecoder(resp.Body, u.remote.cfg.Limits.Line)
	for {
		ev, err := dec.Next()
		if err != nil {
			return cursorOf(dec), nil
		}
		if ev.Name == "message" {
			m, err := framing.Scan(ev.Data)
			u.deliver(ctx, delivery{m: m, raw: ev.Data, err: err})
		}
	}
}
