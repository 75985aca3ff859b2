package back

import (
	"context"
	"errors"
	"net/http"
	"time"

	"mcpbridge/bridge/mcp"
)

const (
	resumePause = time.Second            // before a stream is taken up again, if the server does not say how long
	resumeLeast = 100 * time.Millisecond // whatever it says
	resumeMost  = 30 * time.Second
	resumeTries = 5 // in a row that fail
)

// resume takes up a stream that ended before the answer, whatever verb opened it (HTTP-L-09). The core bounds how long it goes on.
func (u *streamable) resume(p *parcel, s session, id []byte, at cursor) reply {
	for tries := 0; tries < resumeTries; tries++ {
		if !sleep(p.ctx, at.pause(tries)) {
			return reply{err: context.Cause(p.ctx)}
		}
		resp, err := u.stream(p.ctx, s, at)
		switch {
		case err != nil && passing(err):
			continue
		case err != nil:
			return reply{err: errCut} // it was cut, and the rest cannot be had
		}
		got := u.remote.events(p.ctx, resp, id, u.each(p))
		if got.final != nil || !errors.Is(got.err, errCut) {
			return got
		}
		at, tries = at.then(got.cursor), -1
	}
	return reply{err: errCut}
}

// pause is how long to wait before a stream is taken up.
func (c cursor) pause(tries int) time.Duration {
	pause := resumePause
	if c.retry >= 0 {
		pause = c.retry
	}
	return min(max(pause, time.Duration(tries)*resumePause, resumeLeast), resumeMost)
}

// then is the cursor after a further piece of the stream.
func (c cursor) then(next cursor) cursor {
	if next.id == "" {
		next.id = c.id
	}
	if next.retry < 0 {
		next.retry = c.retry
	}
	return next
}

// stream opens an event stream by GET, from a cursor on if that has an id.
func (u *streamable) stream(ctx context.Context, s session, at cursor) (*http.Response, error) {
	o := s.dress(u.remote.order(http.MethodGet, u.remote.at, typeEvents))
	if at.id != "" {
		o.header.Set(mcp.HeaderLastEventID, at.id)
	}
	resp, err := u.remote.do(ctx, o)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusOK && mediaType(resp) == typeEvents:
		return resp, nil
	}
	discard(resp)
	if resp.StatusCode < 300 {
		return nil, &protocolError{"it answered a GET with content type \"" + mediaType(resp) + "\""}
	}
	return nil, reject(resp)
}
