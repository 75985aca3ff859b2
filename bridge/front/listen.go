package front

import (
	"context"
	"sync"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

const (
	// relistens is how often in a row a listen that a modern server dropped is opened again (translation 8.5).
	relistens = 3
	// relistenPause is the wait before that.
	relistenPause = 250 * time.Millisecond
)

// relisten is a listen of a modern client at a modern server. It is the sink of the server's side, and outlives it: a listen that is lost
// is opened again behind the client's back, and what the client may have missed is told (SUB-11, SUB-16, translation 8.5). A
// graceful end is passed on.
type relisten struct {
	x    *exchange
	c    *Class
	link *bridge.Link
	st   *bridge.Stream
	lost chan struct{} // has an element when the server's side has ended

	mu     sync.Mutex
	ticket bridge.Ticket // guarded by mu; of the server's side
	acked  bool          // guarded by mu; the client has its acknowledgement
	again  bool          // guarded by mu; the next acknowledgement is not the first
	tries  int           // guarded by mu; since the last one
	over   bool          // guarded by mu; the client has its end, or has left
}

// listenModern serves a listen before a modern server, as long as the client stays.
func (x *exchange) listenModern(c *Class, link *bridge.Link, conn *bridge.Conn) *bridge.Error {
	u := &relisten{x: x, c: c, link: link, st: bridge.NewStream(1, bridge.StreamLimits{EndFull: true}), lost: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(x.r.Context())
	defer stop()
	if err := u.open(ctx, conn); err != nil {
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() { u.keep(ctx) })
	r := relay{exchange: x, st: u.st, gone: u.leave, stop: u.end}
	r.run(true)
	stop()
	wg.Wait()
	u.leave()
	return nil
}

// open sends the request to the server.
func (u *relisten) open(ctx context.Context, conn *bridge.Conn) *bridge.Error {
	ticket, err := conn.Dispatch(ctx, &bridge.Exchange{Message: u.c.Message, Era: mcp.Modern, Version: u.c.Version, Method: u.c.Method,
		Traits: u.c.Traits, Principal: u.x.who, Level: mcp.NoLevel, Headers: paramHeaders(u.x.r.Header), Sink: u})
	if err != nil {
		return err
	}
	u.mu.Lock()
	u.ticket = ticket
	over := u.over
	u.mu.Unlock()
	if over {
		ticket.Cancel(nil)
	}
	return nil
}

// keep opens the listen again when it is lost.
func (u *relisten) keep(ctx context.Context) {
	for {
		select {
		case <-u.lost:
		case <-ctx.Done():
			return
		}
		t := time.NewTimer(relistenPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		conn, err := u.link.Conn(ctx)
		if err == nil && conn.Facts().Era == mcp.Modern {
			err = u.open(ctx, conn)
		} else if err == nil { // it was replaced by one that has no listens
			u.finish(bridge.Answer{})
			return
		}
		if err != nil && !u.retry() {
			u.finish(bridge.Answer{})
			return
		}
		if err != nil {
			u.signal()
		}
	}
}

// retry counts a try. It reports false when there is none left.
func (u *relisten) retry() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over || u.tries >= relistens || u.x.stopping() {
		return false
	}
	u.tries++
	u.again = u.acked
	return true
}

func (u *relisten) signal() {
	select {
	case u.lost <- struct{}{}:
	default:
	}
}

// Notify implements bridge.Sink.
func (u *relisten) Notify(f framing.Frame, key string) {
	u.mu.Lock()
	first, again := !u.acked, u.again
	u.mu.Unlock()
	if !first && !again {
		u.st.Notify(f, key)
		return
	}
	m, err := framing.Scan(f.Bytes())
	if err != nil || !m.MethodIs(mcp.Acknowledged) {
		u.st.Notify(f, key)
		return
	}
	u.mu.Lock()
	u.acked, u.again, u.tries = true, false, 0
	u.mu.Unlock()
	if first {
		u.st.Notify(f, key)
		return
	}
	if honoured, err := era.ReadListen(m); err == nil {
		for _, n := range honoured.Notes(u.c.Message.Bytes(u.c.Message.ID)) {
			u.st.Notify(framing.Whole(n.Raw), n.Key)
		}
	}
}

// Ask implements bridge.Sink: nobody is asked on a listen.
func (u *relisten) Ask(framing.Frame) {}

// Finish implements bridge.Sink. An end without a result is none of the client's.
func (u *relisten) Finish(a bridge.Answer) {
	if a.Frame.Len() == 0 && u.retry() {
		u.signal()
		return
	}
	u.finish(a)
}

// Failed takes an error of the bridge in place of the server's answer, and reports whether it has been dealt with.
func (u *relisten) Failed(*bridge.Error) bool {
	u.mu.Lock()
	acked := u.acked
	u.mu.Unlock()
	if !acked || !u.retry() { // a listen that never was is the client's to repeat
		return false
	}
	u.signal()
	return true
}

func (u *relisten) finish(a bridge.Answer) {
	u.mu.Lock()
	mine := !u.over
	u.over = true
	u.mu.Unlock()
	if mine {
		u.st.Finish(a)
	}
}

// leave ends the server's side because the client has left.
func (u *relisten) leave() {
	u.mu.Lock()
	u.over = true
	ticket := u.ticket
	u.mu.Unlock()
	ticket.Cancel([]byte(`"the client closed the stream"`))
}

// end ends the listen with a result, because the bridge stops (SUB-09).
func (u *relisten) end() {
	u.mu.Lock()
	ticket := u.ticket
	u.mu.Unlock()
	ticket.Cancel([]byte(`"the bridge stops"`))
	u.finish(bridge.Answer{Frame: bridge.ListenEnd(u.c.Message.Bytes(u.c.Message.ID)), Status: 200})
}
