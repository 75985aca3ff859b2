package bridge

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Handler is who a connection belongs to: it takes what the server sends of its own accord. Methods are called from the
// connection's reading goroutine and may not block.
type Handler interface {
	ServerRequest(c *Conn, m *framing.Message)
	ServerNotification(c *Conn, m *framing.Message)
	Closed(c *Conn, err error)
	// InputRequired takes an answer by which a modern server asks the client of a call for input, and with it the call. It
	// reports false, and takes nothing, if the client cannot be asked.
	InputRequired(t Ticket, m *framing.Message) bool
}

// Facts are what a handshake or discovery established about a server.
type Facts struct {
	Era       mcp.Era
	Version   mcp.Version
	Hello     era.Hello     // legacy: the server's initialize result
	HelloRaw  []byte        // legacy: that result object, as received
	Discovery era.Discovery // modern: the server's discovery
	// Completions tells that a 2024-11-05 server answers completion/complete, which it had no way to declare (FEA-11).
	Completions bool
}

// Capabilities returns the server's capabilities object as it declared it, raw.
func (f *Facts) Capabilities() []byte {
	if f.Era == mcp.Modern {
		return f.Discovery.Capabilities
	}
	return f.Hello.Capabilities
}

// crowd is the number of open requests above which requests are likely to come in bursts.
const crowd = 4

type phase uint8

const (
	probing  phase = iota // nothing the server sends but answers is looked at (VER-25)
	greeting              // initialize is under way: pings are answered
	open                  // established
)

// Conn is one incarnation of a server: an upstream, the facts of its handshake, and the call table. Ids towards the
// server count up from 1 and are never used again (FRM-10, CON-15); progress tokens are those ids (PRG-01).
//
// One lock guards one state: the call table, the questions the server has asked, what waits for room, and the phase. The notices
// have their own.
type Conn struct {
	name   string
	up     Upstream
	h      Handler
	limits Limits
	events EventFunc
	tools  era.ToolRewriter
	drops  era.ToolRewriter
	remote RemoteHandler
	origin int64 // the request on whose stream the message came that is being delivered, 0 if unknown; of the reading goroutine alone
	facts  Facts // written once before phase open

	mu        sync.Mutex
	phase     phase
	calls     map[int64]*call
	questions map[string]*question // the server's open requests to clients by raw id
	lastID    int64
	waiters   map[*waiter]struct{} // messages that wait for room
	waiting   int                  // their bytes
	fullSince time.Time            // since when there is none, while full is set
	startup   startup
	stray     bool // a request of the handshake was given up: its answer may still come
	timer     *time.Timer
	armed     time.Time // when the timer fires next, zero if it does not
	err       error

	expiring chan struct{} // full while calls are being expired
	retired  atomic.Bool   // the server is stopped on purpose
	full     atomic.Bool   // there was no room for a message, and none was taken since
	notices  notices
	done     chan struct{} // closed when reading has ended and all calls were failed
}

// call is one request open at the server.
type call struct {
	id       int64
	ex       *Exchange // nil for a request of the bridge's own
	reply    chan *framing.Message
	failed   *Error  // why reply was closed
	waiter   *waiter // while it waits for room
	stage    atomic.Int32
	token    []byte  // the client's progress token, raw
	progress float64 // the last value delivered, if moved
	moved    bool
	started  time.Time
	deadline time.Time
	paused   time.Time       // since when it waits for a human, if asks > 0
	asks     int             // questions of the server waiting for a human: no deadline meanwhile (CAN-12)
	endless  bool            // a listen: no deadline at all
	crowd    bool            // many others were open when it was made
	reversal *reversal       // of a call that asked its client before, else nil
	listen   *upstreamListen // of a listen of the bridge's own for its sessions, else nil
	set      []framing.Op    // members of params that the client did not send
}

// ConnConfig says how to run a connection.
type ConnConfig struct {
	Name    string
	Handler Handler
	Limits  Limits
	Events  EventFunc
	Tools   era.ToolRewriter // edits of tools/list entries, may be nil
	// Remote is set for servers that are reached over HTTP. Drops then takes the place of Tools if the server is modern (XMH-11).
	Remote RemoteHandler
	Drops  era.ToolRewriter
}

// NewConn starts reading from up. The connection is in the probing phase until Establish.
func NewConn(up Upstream, cfg ConnConfig) *Conn {
	c := &Conn{
		name: cfg.Name, up: up, h: cfg.Handler, limits: cfg.Limits.WithDefaults(), events: cfg.Events, tools: cfg.Tools,
		drops: cfg.Drops, remote: cfg.Remote,
		calls: map[int64]*call{}, questions: map[string]*question{}, waiters: map[*waiter]struct{}{}, done: make(chan struct{}), expiring: make(chan struct{}, 1),
	}
	go c.run()
	return c
}

func (c *Conn) run() {
	err := c.up.Serve(c)
	if err == nil {
		err = errors.New("server closed its output")
	}
	c.fail(err)
	c.notices.close()
	c.expiring <- struct{}{} // an expiry under way is waited for (rule 5)
	defer func() { <-c.expiring }()
	close(c.done)
}

// fail ends all open calls: each gets exactly one error (rule 3). The handler is told first: it withdraws the server's
// questions on the streams of the calls they belong to, and whoever tries again at once finds no dead connection.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	c.err = err
	calls := c.calls
	c.calls, c.questions, c.startup.held = map[int64]*call{}, map[string]*question{}, nil
	wasOpen := c.phase == open
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	if wasOpen {
		c.h.Closed(c, err)
	}
	for _, k := range calls {
		k.fail(c.ended(err))
	}
}

// ended is the error of a request that was open when the connection ended.
func (c *Conn) ended(err error) *Error {
	if !c.retired.Load() {
		return terminated(c.name, err)
	}
	return (&Error{Code: mcp.CodeInternal, Reason: ReasonStopping,
		Message: "server " + c.name + " was stopped before it answered"}).Because(err)
}

func (k *call) fail(err *Error) {
	if k.ex != nil {
		k.ex.Fail(err)
		return
	}
	k.failed = err
	close(k.reply)
}

func terminated(name string, err error) *Error {
	return (&Error{Code: mcp.CodeInternal, Reason: ReasonBackTerminated,
		Message: "server " + name + " ended before it answered: " + err.Error()}).Because(err)
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err tells why the connection ended; nil while it lives.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Facts returns what the handshake established. Valid after Establish.
func (c *Conn) Facts() *Facts { return &c.facts }

// Close ends the server behind the connection and waits for the reading goroutine.
func (c *Conn) Close(ctx context.Context) error {
	err := c.up.Close(ctx)
	select {
	case <-c.done:
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	}
	return err
}

// Greeting tells that a legacy handshake starts: from now on the server's pings are answered (LEG-04).
func (c *Conn) Greeting() {
	c.mu.Lock()
	c.phase = greeting
	c.mu.Unlock()
}

// Establish ends the handshake. What the server sends of its own accord reaches the handler from now on.
func (c *Conn) Establish(f Facts) {
	c.facts = f
	if f.Era == mcp.Modern && c.drops != nil {
		c.tools = c.drops
	}
	c.mu.Lock()
	c.phase, c.startup.ready = open, time.Now()
	c.mu.Unlock()
}

func (c *Conn) established() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase == open
}

// add registers a call under a fresh id.
func (c *Conn) add(k *call) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return terminated(c.name, c.err)
	}
	if len(c.calls) >= c.limits.Calls {
		return &Error{Status: 429, Code: mcp.CodeInternal, Reason: ReasonOverload, Retry: 1,
			Message: "server " + c.name + " already has " + strconv.Itoa(len(c.calls)) + " requests open; try again later"}
	}
	c.lastID++
	k.id = c.lastID
	c.calls[k.id] = k
	k.crowd = len(c.calls) > crowd
	if !k.endless {
		c.armLocked(k.deadline)
	}
	return nil
}

// drop removes a call that was not answered, and reports whether it was still open.
func (c *Conn) drop(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[k.id] != k {
		return false
	}
	c.removeLocked(k)
	c.stray = c.stray || c.phase != open
	return true
}

func (c *Conn) removeLocked(k *call) {
	delete(c.calls, k.id)
	c.forgetQuestionsLocked(k)
}
