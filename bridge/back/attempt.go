package back

import (
	"context"
	"errors"
	"slices"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
	"mcpbridge/procman"
)

// stopTimeout bounds the ladder for a server that could not be opened.
const stopTimeout = 15 * time.Second

// failure is an outcome of a try that decides what is tried next. Any other error ends the attempt.
type failure struct {
	text    string
	long    string // the same with more of the server's last words, "" if there are none (case 22)
	refused bool   // the server could be asked and does not speak the era
	ended   bool   // the server ended on the question
}

func (f *failure) Error() string { return f.text }

// attempt opens one connection, in one era after the other if need be.
type attempt struct {
	back *Stdio
	o    bridge.OpenOptions
	proc procman.Process
	conn *bridge.Conn

	eras    []mcp.Era   // to try, in order
	missing []mcp.Era   // refused so far
	silent  bool        // the probe of this process was not answered at all
	slow    bool        // the handshake took longer than a probe may
	offer   mcp.Version // the best legacy revision the server named, "" for none
}

// run tries the eras in order. A server that kept silent on the probe and then refused the handshake was only not awake
// yet when it was probed: it is asked once more (case 28).
func (a *attempt) run(ctx context.Context) (failed []error) {
	only := len(a.eras) == 1
	for i := 0; i < len(a.eras); i++ {
		err := a.try(ctx, a.eras[i], only)
		if err == nil {
			a.back.cfg.Verdict.learn(a.eras[i], a.lacks(), a.offer)
			return nil
		}
		failed = append(failed, err)
		var f *failure
		if !errors.As(err, &f) || !f.refused {
			return failed // no verdict: the server could not be asked
		}
		a.missing = append(a.missing, a.eras[i])
		if i == 1 && a.silent && a.eras[i] == mcp.Legacy {
			a.eras = append(a.eras, mcp.Modern)
		}
	}
	return failed
}

// lacks is what is known about the server once it has been opened. The silence of a server that was slow at the handshake
// too says nothing: it was starting.
func (a *attempt) lacks() []mcp.Era {
	if !a.silent || !a.slow {
		return a.missing
	}
	return slices.DeleteFunc(a.missing, func(e mcp.Era) bool { return e == mcp.Modern })
}

// try opens the connection in one era. A server that ended on a question after it had been asked another may have ended
// on the first: it gets one process that is asked nothing else (VER-24). only tells that no other era will be tried.
func (a *attempt) try(ctx context.Context, e mcp.Era, only bool) error {
	for {
		fresh, err := a.connect(ctx)
		if err != nil {
			return err
		}
		if e == mcp.Modern {
			err = a.discover(ctx, only)
		} else {
			err = a.initialize(ctx)
		}
		var f *failure
		if fresh || !errors.As(err, &f) || !f.ended {
			return err
		}
	}
}

// connect makes sure there is a live connection in the probing phase, and reports whether it is a new one. A server that
// ended on an earlier question is started again, and its end is no crash (VER-24).
func (a *attempt) connect(ctx context.Context) (fresh bool, err error) {
	if a.conn != nil && a.conn.Err() == nil {
		return false, nil
	}
	if a.proc != nil {
		a.back.sup.Forgive(a.proc)
	}
	p, err := a.back.process(ctx)
	if err != nil {
		return false, err
	}
	c, err := a.back.attach(p, a.o.Conn)
	if err != nil {
		return false, err
	}
	a.proc, a.conn, a.silent = p, c, false
	return true, nil
}

// call is a round trip that knows why it failed: of a server that cannot be written to, the end says more than the write
// error does.
func (a *attempt) call(ctx context.Context, method string, params []byte) (*framing.Message, error) {
	m, err := a.conn.RoundTrip(ctx, method, params)
	if err == nil || ctx.Err() != nil {
		return m, err
	}
	return nil, a.end(ctx)
}

// end waits until a connection that has failed is over, and tells why it is.
func (a *attempt) end(ctx context.Context) error {
	select {
	case <-a.conn.Done():
		return a.conn.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ended is the failure of a server that ended on a question.
func (a *attempt) ended(method string, refused bool) error {
	on, why := "it ended on "+method+": ", a.conn.Err()
	f := &failure{text: on + why.Error(), refused: refused, ended: true}
	var e *exitError
	if errors.As(why, &e) {
		f.long = on + e.long()
	}
	return f
}

// late is the error of a question whose time is up, or that nobody wants answered any more. What the server has said on
// stderr so far may tell what keeps it.
func (a *attempt) late(method string) error {
	text := "it did not answer " + method
	if said := lastWords(lines(a.proc.Tail())); said != "" {
		text += "; the end of its stderr:\n" + said
	}
	return errors.New(text)
}

// drop ends the process of a connection that led nowhere, without anybody waiting for it: the next Open does. A process
// that cannot be opened counts as one that has failed, unless nobody wants it opened any more.
func (a *attempt) drop(ctx context.Context, why error) {
	c := a.conn
	switch {
	case c == nil:
	case !errors.Is(ctx.Err(), context.Canceled):
		a.back.sup.Reject(a.proc, why)
	case c.Err() == nil:
		a.back.begin(func() {
			ctx, stop := context.WithTimeout(context.Background(), stopTimeout)
			defer stop()
			_ = c.Close(ctx) // what survives is reported by the supervisor
		})
	}
}
