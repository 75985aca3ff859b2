package front

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// maxEventHosts is how many HTTP+SSE streams an endpoint has open; one more is refused with 503.
const maxEventHosts = 1000

// Events serves one endpoint over the HTTP+SSE transport of 2024-11-05: a GET is the stream of a session, on which everything comes
// back, and its first event names where the client's messages are posted (HTTP-S-*, translation 18, F3). The session ends with the
// stream.
type Events struct {
	*Handler

	mu   sync.Mutex
	open map[string]*eventHost // guarded by mu; by token
}

// eventHost is the client of one stream. Its messages are taken one at a time.
type eventHost struct {
	host *Host
	who  bridge.Principal
	feed sync.Mutex
}

// NewEvents returns a handler.
func NewEvents(cfg Config) *Events {
	return &Events{Handler: NewHandler(cfg), open: map[string]*eventHost{}}
}

// ServeHTTP implements http.Handler.
func (e *Events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{Handler: e.Handler, w: w, r: r, hold: Hold{budget: e.cfg.Bodies}}
	defer x.hold.release()
	x.rec.Era = mcp.Legacy
	start := time.Now()
	x.renew()
	if err := e.serve(x); err != nil {
		x.refuse(err)
	}
	if e.cfg.Done != nil {
		x.rec.Server, x.rec.Verb, x.rec.Principal, x.rec.Took = e.cfg.Endpoint.Name(), r.Method, x.who, time.Since(start)
		e.cfg.Done(x.rec)
	}
}

func (e *Events) serve(x *exchange) *bridge.Error {
	done, err := x.enter()
	if err != nil || done {
		return err
	}
	switch x.r.Method {
	case http.MethodGet:
		return e.stream(x)
	case http.MethodPost:
		return e.post(x)
	}
	return &bridge.Error{Status: 405, Code: mcp.CodeInvalidRequest, Allow: "GET, POST, OPTIONS", Message: "use GET to open a stream, and POST to send a message to where its first event says"}
}

// post takes one message of a client: 202, whatever it says; what there is to answer comes on the stream.
func (e *Events) post(x *exchange) *bridge.Error {
	if err := CheckContentType(x.r.Header); err != nil {
		return err
	}
	h := e.find(x.r.URL.Query().Get("token"), x.who)
	if h == nil {
		return &bridge.Error{Status: 404, Code: mcp.CodeInvalidRequest, Reason: bridge.ReasonSessionUnknown,
			Message: "there is no stream of this token: it has ended or never existed. Open another with GET."}
	}
	body, err := x.body()
	if err != nil {
		return err
	}
	if !framing.Valid(body) {
		return &bridge.Error{Status: 400, Code: mcp.CodeParse, Reason: bridge.ReasonMalformed, Message: "cannot read message: it is no JSON."}
	}
	h.feed.Lock()
	h.host.take(bytes.Clone(body)) // the hold on the body ends with this request
	h.feed.Unlock()
	return x.accepted()
}

func (e *Events) find(token string, who bridge.Principal) *eventHost {
	e.mu.Lock()
	defer e.mu.Unlock()
	for have, h := range e.open {
		if subtle.ConstantTimeCompare([]byte(have), []byte(token)) == 1 && h.who == who {
			return h
		}
	}
	return nil
}

// stream opens the stream of a client and serves it until it is gone or the bridge stops.
func (e *Events) stream(x *exchange) *bridge.Error {
	if !ParseAccept(x.r.Header).SSE {
		return &bridge.Error{Status: 406, Code: mcp.CodeInvalidRequest, Reason: bridge.ReasonNotAcceptable, Message: "a GET is answered with text/event-stream only"}
	}
	h := &eventHost{host: NewHost(e.cfg, x.who, int(x.cfg.Guard.BodyLimit)), who: x.who}
	token := rand.Text()
	e.mu.Lock()
	if len(e.open) >= maxEventHosts {
		e.mu.Unlock()
		return &bridge.Error{Status: 503, Code: mcp.CodeInternal, Reason: bridge.ReasonOverload, Retry: 1, Message: "too many streams are open"}
	}
	e.open[token] = h
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.open, token)
		e.mu.Unlock()
	}()
	out := &eventWriter{x: x, begun: true}
	x.begin(nil)
	x.rec.Session = true
	ctx, stop := context.WithCancel(x.r.Context())
	defer stop()
	h.host.start(ctx, out)
	if out.send("event: endpoint\ndata: "+x.r.URL.EscapedPath()+"?token="+token+"\n\n") != nil {
		stop()
	}
	var wg sync.WaitGroup
	wg.Go(func() { e.alive(ctx, stop, out) })
	_ = h.host.run(ctx, blocked{ctx})
	stop()
	wg.Wait()
	return nil
}

// alive keeps the stream alive until it ends, or the bridge stops.
func (e *Events) alive(ctx context.Context, stop context.CancelFunc, out *eventWriter) {
	tick := time.NewTicker(e.cfg.KeepAlive)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if out.send(": keep-alive\n\n") != nil {
				stop()
				return
			}
		case <-e.cfg.Stopping:
			stop()
			return
		case <-ctx.Done():
			return
		}
	}
}

// blocked is the input of a host whose messages come by POST: it ends with the stream.
type blocked struct{ ctx context.Context }

func (b blocked) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, io.EOF
}

// eventWriter writes each line it is given as an event.
type eventWriter struct {
	x     *exchange
	mu    sync.Mutex
	begun bool // at the begin of a line
}

// Write implements io.Writer.
func (w *eventWriter) Write(lines []byte) (int, error) {
	var b strings.Builder
	w.mu.Lock()
	defer w.mu.Unlock()
	for rest := lines; len(rest) > 0; {
		if w.begun {
			b.WriteString("event: message\ndata: ")
		}
		line, after, whole := bytes.Cut(rest, []byte{'\n'})
		b.Write(line)
		if w.begun = whole; whole {
			b.WriteString("\n\n")
		}
		rest = after
	}
	if err := w.sendLocked(b.String()); err != nil {
		return 0, err
	}
	return len(lines), nil
}

func (w *eventWriter) send(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun { // in the middle of a message, which is sign of life enough
		return nil
	}
	return w.sendLocked(text)
}

func (w *eventWriter) sendLocked(text string) error {
	for len(text) > 0 {
		w.x.renew()
		n := min(len(text), chunk)
		if _, err := io.WriteString(w.x.w, text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	return http.NewResponseController(w.x.w).Flush()
}
