package front

import (
	"net/http"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

// get serves the stream of a session's own messages, or resumes a stream that was cut (HTTP-L-10, HTTP-L-15).
func (x *exchange) get() *bridge.Error {
	s, err := x.live()
	if err != nil {
		return err
	}
	if accept := ParseAccept(x.r.Header); !accept.SSE {
		return &bridge.Error{Status: 406, Code: mcp.CodeInvalidRequest, Reason: bridge.ReasonNotAcceptable, Message: "a GET is answered with text/event-stream only"}
	}
	x.accept = Accept{SSE: true}
	s.Enter()
	defer s.Leave()
	st, as, own := x.pick(s)
	s.Link().Wake() // who listens wants a server that runs
	s.Link().Changes()
	r := relay{exchange: x, st: st, s: s, as: as, gone: func() {}}
	r.out = x.begin(st)
	r.out.comment("open")
	if r.sent(r.out.flush()) {
		r.follow()
	}
	if own {
		s.Sit(st)
	} else {
		s.Detach(st)
	}
	return nil
}

// pick resumes the stream Last-Event-ID names, else opens one of the session's own.
func (x *exchange) pick(s Session) (st *bridge.Stream, as int, own bool) {
	if id := x.r.Header.Get(mcp.HeaderLastEventID); id != "" {
		if st, as, ok := s.Resume(id); ok {
			own = s.Own(st)
			if own {
				s.Reopen(st)
			}
			return st, as, own
		}
	}
	return s.Stand(), 0, true
}

// follow relays a stream until it ends, the client leaves, or the bridge stops.
func (r *relay) follow() {
	r.moved = time.Now()
	for {
		select {
		case <-r.st.Wake():
			batch, last, mine := r.st.TakeAs(r.as)
			if !mine || r.put(batch) != nil || last {
				return
			}
			r.moved = time.Now()
		case <-r.pulse.next():
			if !r.beat() {
				return
			}
		case <-r.r.Context().Done():
			return
		case <-r.cfg.Stopping:
			return
		}
	}
}

// delete ends a session at the client's wish (HTTP-L-23).
func (x *exchange) delete() *bridge.Error {
	if err := x.needsSession(); err != nil {
		return err
	}
	ids := x.r.Header[mcp.HeaderSessionID]
	view := SessionView{Present: len(ids) > 0, Known: len(ids) == 1}
	if err := checkSession(x.r.Header, view); err != nil {
		return err
	}
	if view.Known = x.cfg.Endpoint.EndSession(ids[0], x.who); !view.Known {
		return checkSession(x.r.Header, view)
	}
	x.rec.Session, x.rec.Status = true, http.StatusNoContent
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

// needsSession refuses a GET or DELETE of a revision that has none: 405 (HTTP-M-38).
func (x *exchange) needsSession() *bridge.Error {
	x.rec.Era = mcp.Legacy
	if claimsModern(x.r.Header) && len(x.r.Header[mcp.HeaderSessionID]) == 0 {
		return &bridge.Error{Status: 405, Code: mcp.CodeInvalidRequest, Allow: "POST", Message: "revision 2026-07-28 has no " + x.r.Method + "; send requests with POST"}
	}
	return nil
}

// live returns the session a GET is about: 404 for one that is not there (HTTP-L-21).
func (x *exchange) live() (Session, *bridge.Error) {
	if err := x.needsSession(); err != nil {
		return nil, err
	}
	s, view, err := x.session()
	if err != nil {
		return nil, err
	}
	if err := checkSession(x.r.Header, view); err != nil {
		return nil, err
	}
	x.rec.Session = true
	return s, nil
}
