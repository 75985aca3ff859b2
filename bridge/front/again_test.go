package front

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// idle is an upstream that does nothing but end.
type idle struct{ end chan struct{} }

func (u idle) Send(context.Context, framing.Frame, bool) error { return nil }

func (u idle) Serve(bridge.Receiver) error { <-u.end; return errors.New("ended") }

func (u idle) Close(context.Context) error { return nil }

// reborn is a back whose servers end when the test says so.
type reborn struct{ ends []chan struct{} }

func (b *reborn) Open(_ context.Context, o bridge.OpenOptions) (*bridge.Conn, error) {
	u := idle{make(chan struct{})}
	b.ends = append(b.ends, u.end)
	c := bridge.NewConn(u, o.Conn)
	c.Establish(bridge.Facts{Era: mcp.Legacy})
	return c, nil
}

func (b *reborn) Halt(context.Context) error { return nil }

func (b *reborn) Close(context.Context) error { return nil }

// A request that could not be sent goes to the server's next incarnation where there will be one; where there will be
// none it is answered without a wait (STD-04, rule 3).
func TestAgain(t *testing.T) {
	type bed struct {
		link    *bridge.Link
		end     func() // of the first server
		leave   func() // of the client
		stop    func() // of the bridge
		closing chan error
	}
	close1 := func(b *bed) { go func() { b.closing <- b.link.Close(context.Background()) }(); synctest.Wait() }
	for name, c := range map[string]struct {
		reason bridge.Reason
		before func(b *bed)
		during func(b *bed) // while it waits; nil: it may not wait
		next   bool
	}{
		"other reason":                   {bridge.ReasonBackBusy, func(b *bed) { b.end() }, nil, false},
		"ended":                          {bridge.ReasonBackTerminated, func(b *bed) { b.end() }, nil, true},
		"ending":                         {bridge.ReasonBackUnavailable, nil, func(b *bed) { b.end() }, true},
		"halted":                         {bridge.ReasonStopping, func(b *bed) { _ = b.link.Halt(context.Background()) }, func(b *bed) { b.end() }, true},
		"closed":                         {bridge.ReasonStopping, close1, nil, false},
		"closed while it ends":           {bridge.ReasonBackUnavailable, nil, func(b *bed) { close1(b); b.end() }, false},
		"the bridge has stopped":         {bridge.ReasonBackTerminated, func(b *bed) { b.end(); b.stop() }, nil, false},
		"the bridge stops while it ends": {bridge.ReasonStopping, nil, func(b *bed) { b.stop() }, false},
		"the client leaves":              {bridge.ReasonStopping, nil, func(b *bed) { b.leave() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				stopping, back := make(chan struct{}), &reborn{}
				b := &bed{link: bridge.NewLink(context.Background(), bridge.LinkConfig{Name: "srv", Back: back}), leave: leave,
					stop: func() { close(stopping) }, closing: make(chan error, 1)}
				conn, err := b.link.Conn(ctx)
				if err != nil {
					t.Fatal(err)
				}
				b.end = func() { close(back.ends[0]); <-conn.Done() }
				if c.before != nil {
					c.before(b)
				}
				x := &exchange{Handler: &Handler{cfg: Config{Stopping: stopping}}, r: httptest.NewRequestWithContext(ctx, "POST", "/", nil)}
				got := make(chan *bridge.Conn, 1)
				go func() { got <- x.again(b.link, conn, &bridge.Error{Reason: c.reason}) }()
				synctest.Wait()
				if waits := len(got) == 0; waits != (c.during != nil) {
					t.Fatalf("waits: %v", waits)
				}
				if c.during != nil {
					c.during(b)
				}
				if next := <-got; (next != nil) != c.next || next == conn {
					t.Errorf("goes to %p after %p", next, conn)
				}
				for _, end := range back.ends {
					select {
					case <-end:
					default:
						close(end)
					}
				}
				_ = b.link.Close(context.Background())
			})
		})
	}
}
