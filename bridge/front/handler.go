// Package front is where clients come in: over modern and legacy Streamable HTTP on one path (Handler), over the HTTP+SSE transport
// before it (Events), and as a host that launches the bridge and speaks on its stdin and stdout (Host). It checks, classifies and
// writes; what a message means between eras is not its business, nor how a server is reached.
//
// A POST passes stages, each a function of at most a screen: guard, read, scan and classify, adapt, lease, relay. Only the
// reading stage touches the body; nothing travels in a context except cancellation.
package front

import (
	"context"
	"net/http"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Session is a legacy session as this front uses it.
type Session interface {
	bridge.Session
	ID() string
	Version() mcp.Version
	Link() *bridge.Link
	Exclusive() bool
	ClientInfo() []byte
	Capabilities() []byte
	Level() mcp.Level
	SetLevel(mcp.Level)
	// NoteSubscription remembers what the client subscribed to or released; uri is a raw JSON string.
	NoteSubscription(uri []byte, on bool)

	Enter()
	Leave()
	Answer(m *framing.Message)

	PostLimits() bridge.StreamLimits
	Keep(*bridge.Stream)
	Detach(*bridge.Stream)
	Resume(eventID string) (st *bridge.Stream, reader int, ok bool)
	Stand() *bridge.Stream
	Reopen(*bridge.Stream)
	Own(*bridge.Stream) bool
	Sit(*bridge.Stream)
}

// Endpoint is one configured server as this front uses it.
type Endpoint interface {
	Name() string
	// Modern returns the link for one modern request of a principal with these raw client capabilities. release is called when the
	// request is over.
	Modern(p bridge.Principal, capabilities []byte) (link *bridge.Link, release func(), err *bridge.Error)
	// Running returns the links on which modern requests of a principal may be running. It makes none.
	Running(p bridge.Principal) []*bridge.Link
	// OpenSession carries out a legacy client's handshake. params is the raw params object of its initialize request. The
	// result is the raw InitializeResult.
	OpenSession(ctx context.Context, p bridge.Principal, o era.Opening, params []byte) (s Session, result []byte, err *bridge.Error)
	// FindSession returns the session of that id and principal, opened again if it is an earlier run's. Without an error and
	// without a session there is none.
	FindSession(ctx context.Context, id string, p bridge.Principal) (Session, *bridge.Error)
	// EndSession ends a session and what belongs to it alone, and reports whether there was one. It opens none for that.
	EndSession(id string, p bridge.Principal) bool
}

// Config says how a handler serves.
type Config struct {
	Guard    *Guard
	Endpoint Endpoint
	// Parked serves calls in which a legacy server asks a modern client; nil if there are none.
	Parked Parked
	// Principal says who is calling, before any body is read.
	Principal func(*http.Request) (bridge.Principal, *bridge.Error)
	// Silence is how long a call may be silent before its answer becomes a stream with keep-alives (design decision 8).
	// Default 10 seconds.
	Silence time.Duration
	// KeepAlive is the time between comments on a stream without messages (HTTP-M-14, case 37). Default 15 seconds.
	KeepAlive time.Duration
	// WriteTimeout is how long one write to a client that does not read may take; then the client counts as gone (case 86).
	// Default 30 seconds.
	WriteTimeout time.Duration
	// BodyTimeout is how long each megabyte of a request body may take to arrive; then the body counts as cut (SEC-07).
	// Default 30 seconds.
	BodyTimeout time.Duration
	// Bodies bounds what all requests hold together; nil bounds nothing.
	Bodies *BodyBudget
	// Stopping is closed when the bridge stops: open streams end, new requests are refused.
	Stopping <-chan struct{}
	// Done takes one record of each request, after it has been answered; may be nil.
	Done func(Record)
}

// Record is what there is to say about one HTTP request, filled in on its way.
type Record struct {
	Server    string
	Verb      string
	Method    string // JSON-RPC method, "" if none was read
	Era       mcp.Era
	Principal bridge.Principal
	Session   bool
	Status    int
	Stream    bool // answered with an event stream
	Err       *bridge.Error
	Took      time.Duration
}

// Handler serves one endpoint. It implements http.Handler.
type Handler struct {
	cfg   Config
	pulse *pulse
}

// NewHandler returns a handler.
func NewHandler(cfg Config) *Handler {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&cfg.Silence, 10*time.Second)
	def(&cfg.KeepAlive, 15*time.Second)
	def(&cfg.WriteTimeout, 30*time.Second)
	def(&cfg.BodyTimeout, 30*time.Second)
	return &Handler{cfg, newPulse(min(cfg.Silence, cfg.KeepAlive) / 4)}
}

// exchange is one HTTP request on its way through the stages.
type exchange struct {
	*Handler
	w      http.ResponseWriter
	r      *http.Request
	who    bridge.Principal
	accept Accept
	hold   Hold // what the body takes of the budget, until the request is over
	rec    Record

	host  *Host             // of a message that came over stdio, where there is neither a request nor a response of HTTP
	after func(rest func()) // over stdio: takes what is left to do once a request of a session has been sent; may be nil
	left  bool              // after has been given something
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{Handler: h, w: w, r: r, hold: Hold{budget: h.cfg.Bodies}}
	defer x.hold.release()
	start := time.Now()
	x.renew()
	if err := x.serve(); err != nil {
		x.refuse(err)
	}
	if h.cfg.Done != nil {
		x.rec.Server, x.rec.Verb, x.rec.Principal, x.rec.Took = h.cfg.Endpoint.Name(), r.Method, x.who, time.Since(start)
		h.cfg.Done(x.rec)
	}
}

// serve is stage 1 and the choice of the verb.
func (x *exchange) serve() *bridge.Error {
	done, err := x.enter()
	if err != nil || done {
		return err
	}
	switch x.r.Method {
	case http.MethodPost:
		return x.post()
	case http.MethodGet:
		return x.get()
	case http.MethodDelete:
		return x.delete()
	}
	return &bridge.Error{Status: 405, Code: mcp.CodeInvalidRequest, Allow: "POST, GET, DELETE, OPTIONS", Message: "use POST to send a message"}
}

// enter is stage 1: whether and for whom the request is served at all. done tells that it has been answered.
func (x *exchange) enter() (done bool, err *bridge.Error) {
	if err := x.cfg.Guard.Check(x.r); err != nil {
		return false, err
	}
	if x.cfg.Guard.Preflight(x.w, x.r) {
		x.rec.Status = http.StatusNoContent
		return true, nil
	}
	x.cfg.Guard.AddCORS(x.w, x.r)
	if x.who, err = x.cfg.Principal(x.r); err != nil {
		return false, err
	}
	if x.stopping() {
		return false, &bridge.Error{Status: 503, Code: mcp.CodeInternal, Reason: bridge.ReasonStopping, Message: "the bridge is stopping", Retry: 1}
	}
	return false, nil
}

// session looks up the session header. The view is what classification needs of it.
func (x *exchange) session() (Session, SessionView, *bridge.Error) {
	ids := x.r.Header[mcp.HeaderSessionID]
	if len(ids) == 0 {
		return nil, SessionView{}, nil
	}
	v := SessionView{Present: true}
	if len(ids) > 1 {
		return nil, v, nil
	}
	s, err := x.cfg.Endpoint.FindSession(x.r.Context(), ids[0], x.who)
	if s == nil {
		return nil, v, err
	}
	v.Known, v.Version = true, s.Version()
	return s, v, nil
}

// post is stages 2 to 5: read, scan, classify, and the choice of the wire protocol.
func (x *exchange) post() *bridge.Error {
	if err := CheckContentType(x.r.Header); err != nil {
		return err
	}
	var err *bridge.Error
	if x.accept, err = CheckAccept(x.r.Header); err != nil {
		return err
	}
	body, err := x.body()
	if err != nil {
		return err
	}
	s, view, err := x.session()
	if err != nil {
		return err
	}
	c, err := Classify(x.r.Header, body, view)
	if err != nil {
		return err
	}
	x.rec.Method, x.rec.Era, x.rec.Session = c.Method, c.Era, s != nil
	if c.Era == mcp.Modern {
		return x.modern(c)
	}
	return x.legacy(c, s)
}

// body is stage 2. A sender that dawdles is cut off.
func (x *exchange) body() ([]byte, *bridge.Error) {
	c := http.NewResponseController(x.w)
	_ = c.SetReadDeadline(time.Now().Add(x.cfg.BodyTimeout))
	if x.r.ContentLength < 0 || x.r.ContentLength > paceStep {
		x.r.Body = &paced{ReadCloser: x.r.Body, extend: c.SetReadDeadline, wait: x.cfg.BodyTimeout, left: paceStep}
	}
	body, err := ReadBody(x.r, x.cfg.Guard.BodyLimit, &x.hold)
	if err == nil {
		_ = c.SetReadDeadline(time.Time{}) // from here on a read only watches for the client to leave
	}
	return body, err
}

// refuse is the one writer of errors.
func (x *exchange) refuse(err *bridge.Error) {
	x.rec.Err, x.rec.Status = err, err.HTTPStatus()
	h := x.w.Header()
	h["Content-Type"] = contentJSON
	if err.Allow != "" {
		h.Set("Allow", err.Allow)
	}
	if err.Retry > 0 {
		h.Set("Retry-After", itoa(err.Retry))
	}
	x.w.WriteHeader(err.HTTPStatus())
	_, _ = x.w.Write(err.Body(x.rec.Era == mcp.Legacy))
}

// accepted is the answer to a message that gets none: 202 without body (HTTP-M-06, HTTP-L-03).
func (x *exchange) accepted() *bridge.Error {
	if x.host != nil {
		return nil
	}
	x.rec.Status = http.StatusAccepted
	x.w.WriteHeader(http.StatusAccepted)
	return nil
}

// local answers a request with a result the bridge has at hand.
func (x *exchange) local(m *framing.Message, result []byte) *bridge.Error {
	x.writeJSON(bridge.Answer{Frame: bridge.ResultFrame(m.Bytes(m.ID), result), Status: 200})
	return nil
}
