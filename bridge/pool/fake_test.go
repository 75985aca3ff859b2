package pool_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpbridge/bridge"
	"mcpbridge/framing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop makes backs without real servers and counts what runs.
type shop struct {
	start  time.Duration // from the start of a process to its readiness
	stop   time.Duration // how long a process takes to end when asked to
	linger time.Duration // how long a process outlives its connection when it crashes
	hushes bool          // a process that is asked to end closes its output first
	fail   error         // of Close
	above  *shop         // counts too

	mu      sync.Mutex
	refuses error // what an opening says, its process being gone
	warmErr error // what Warm says
	running int
	most    int
	started int
}

func (s *shop) back() bridge.Back { return &server{shop: s} }

// cold makes backs that cannot be started ahead of use, nor say when they are gone.
func (s *shop) cold() bridge.Back { return struct{ bridge.Back }{&server{shop: s}} }

func (s *shop) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *shop) add(n int) {
	s.mu.Lock()
	s.running += n
	s.most = max(s.most, s.running)
	s.started += max(n, 0)
	s.mu.Unlock()
	if s.above != nil {
		s.above.add(n)
	}
}

func (s *shop) counts() (running, most, started int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running, s.most, s.started
}

// server is a back with at most one process.
type server struct {
	shop *shop

	mu     sync.Mutex
	proc   *process
	closed bool
}

// process is a process, and the upstream of its connection.
type process struct {
	shop  *shop
	ready time.Time
	mute  chan struct{} // closed when its connection ends
	gone  chan struct{} // closed when it is no more
	quiet sync.Once
	once  sync.Once
}

var (
	errClosed = errors.New("back is closed")
	errGone   = errors.New("gone")
)

// run returns the process, a new one if there is none.
func (v *server) run() (*process, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, errClosed
	}
	if v.proc == nil || ended(v.proc.gone) {
		v.proc = &process{shop: v.shop, ready: time.Now().Add(v.shop.start), mute: make(chan struct{}), gone: make(chan struct{})}
		v.shop.add(1)
	}
	return v.proc, nil
}

func ended(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (v *server) Open(ctx context.Context, o bridge.OpenOptions) (*bridge.Conn, error) {
	if p := v.current(); p != nil && ended(p.mute) {
		<-p.gone // a connection never shares its process with another
	}
	p, err := v.run()
	if err != nil {
		return nil, err
	}
	v.shop.mu.Lock()
	refuses := v.shop.refuses
	v.shop.mu.Unlock()
	if refuses != nil {
		p.die()
		return nil, refuses
	}
	select {
	case <-time.After(time.Until(p.ready)):
	case <-p.gone:
		return nil, errGone
	case <-ctx.Done():
		p.die()
		return nil, context.Cause(ctx)
	}
	c := bridge.NewConn(p, o.Conn)
	c.Establish(bridge.Facts{Era: o.Want})
	return c, nil
}

func (v *server) current() *process {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.proc
}

func (v *server) Halt(context.Context) error {
	if p := v.current(); p != nil {
		p.end()
	}
	return nil
}

func (v *server) Close(context.Context) error {
	v.mu.Lock()
	v.closed = true
	v.mu.Unlock()
	if p := v.current(); p != nil {
		p.end()
	}
	return v.shop.fail
}

// Warm keeps a process started until ctx ends.
func (v *server) Warm(ctx context.Context) error {
	v.shop.mu.Lock()
	err := v.shop.warmErr
	v.shop.mu.Unlock()
	if err == nil {
		_, err = v.run()
	}
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// Gone waits until no process is there.
func (v *server) Gone(ctx context.Context) error {
	p := v.current()
	if p == nil {
		return nil
	}
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *process) silence() { p.quiet.Do(func() { close(p.mute) }) }

func (p *process) die() {
	p.silence()
	p.once.Do(func() {
		p.shop.add(-1)
		close(p.gone)
	})
}

// end ends the process as one asks a server to.
func (p *process) end() {
	if ended(p.gone) {
		return
	}
	if p.shop.hushes {
		p.silence()
	}
	time.Sleep(p.shop.stop)
	p.die()
}

// crash ends the connection, and the process when it has lingered.
func (p *process) crash() {
	p.silence()
	time.AfterFunc(p.shop.linger, p.die)
}

func (p *process) Send(context.Context, framing.Frame, bool) error { return nil }
func (p *process) Serve(bridge.Receiver) error                     { <-p.mute; return errGone }
func (p *process) Close(context.Context) error                     { p.end(); return nil }

// sink takes an answer and forgets it.
type sink struct{}

func (sink) Notify(framing.Frame, string) {}
func (sink) Ask(framing.Frame)            {}
func (sink) Finish(bridge.Answer)         {}

// session is a legacy session that may listen.
type session struct {
	bridge.Session
	mu     sync.Mutex
	listen bool
}

func (s *session) Listening() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listen
}

func (s *session) ConnClosed(*bridge.Conn) {}

func (s *session) set(listen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listen = listen
}

// asks is a back that tells how it was opened.
type asks struct {
	back bridge.Back
	held chan bool
}

func (a asks) Open(ctx context.Context, o bridge.OpenOptions) (*bridge.Conn, error) {
	a.held <- o.HoldInitialized && string(o.Params) == `{"x":1}`
	return a.back.Open(ctx, o)
}

func (a asks) Halt(ctx context.Context) error  { return a.back.Halt(ctx) }
func (a asks) Close(ctx context.Context) error { return a.back.Close(ctx) }
