package bridge

import (
	"context"
	"strconv"
	"sync"
	"time"

	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// listenWait is how long a listen waits for a legacy server to confirm its resource subscriptions (translation 8.2).
const listenWait = 5 * time.Second

// listenWorkers is how many subscriptions of one listen are asked for at a time.
const listenWorkers = 8

// Listener is a subscriptions/listen of a modern client at a legacy server. To its link it is one of those the server's notifications
// go to: it takes the changes it asked for, each with its subscription id, and nothing before its acknowledgement (SUB-03, SUB-05).
// The zero value is not usable; see Link.Listen.
type Listener struct {
	id   []byte // raw id of the request
	sink Sink

	mu      sync.Mutex
	flags   era.Changes // honoured
	uris    bool        // resources are subscribed to
	acked   bool
	waiting []listened // came before the acknowledgement; of one key only the newest
	ended   bool
}

type listened struct {
	frame framing.Frame
	key   string
}

// Listen serves a subscriptions/listen before a legacy server until Leave (translation 8.2): what the server can tell of is honoured, the
// resources are subscribed to, then comes the acknowledgement, then what happens. Above Limits.Listeners of a link, or
// Limits.Subscriptions URIs, it is refused with reason "overload"; a filter of the wrong shape with -32602.
func (l *Link) Listen(ctx context.Context, c *Conn, ex *Exchange) (*Listener, *Error) {
	filter, perr := era.ReadListen(ex.Message)
	if perr != nil {
		return nil, &Error{Status: 400, Code: mcp.CodeInvalidParams, Reason: ReasonMalformed, Message: perr.Error()}
	}
	caps := c.Facts().Capabilities()
	honoured := filter.Honoured(caps, !l.cfg.Single)
	s := &Listener{id: ex.Message.Bytes(ex.Message.ID), sink: ex.Sink, flags: honoured.Changes}
	if err := l.attachListener(s, len(honoured.URIs)); err != nil {
		return nil, err
	}
	honoured.URIs = l.subscribeAll(ctx, c, s, honoured.URIs)
	s.acknowledge(honoured)
	return s, nil
}

// attachListener adds a listener within the limits.
func (l *Link) attachListener(s *Listener, uris int) *Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, o := range l.sessions {
		if _, ok := o.(*Listener); ok {
			n++
		}
	}
	switch {
	case l.closed:
		return l.stopped()
	case n >= l.cfg.Limits.Listeners:
		return overload("server " + l.cfg.Name + " already has " + strconv.Itoa(n) + " listening clients; try again later")
	case uris > l.cfg.Limits.Subscriptions:
		return overload("a listen on server " + l.cfg.Name + " may name " + strconv.Itoa(l.cfg.Limits.Subscriptions) + " resources, this one has " + strconv.Itoa(uris))
	}
	l.sessions = append(l.sessions, s)
	return nil
}

func overload(msg string) *Error {
	return &Error{Status: 429, Code: mcp.CodeInternal, Reason: ReasonOverload, Message: msg, Retry: 1}
}

// subscribeAll subscribes a listener to resources and returns those the server has confirmed in time. One it confirms later is
// given back.
func (l *Link) subscribeAll(ctx context.Context, c *Conn, s *Listener, uris [][]byte) (held [][]byte) {
	ctx, stop := context.WithTimeout(ctx, listenWait)
	defer stop()
	ok := make([]bool, len(uris))
	next := make(chan int, len(uris))
	for i := range uris {
		next <- i
	}
	close(next)
	var wg sync.WaitGroup
	for range min(listenWorkers, len(uris)) {
		wg.Go(func() {
			for i := range next {
				refused, err := l.Subscribe(ctx, c, s, uris[i])
				ok[i] = refused == nil && err == nil
				if err != nil {
					uri := string(uris[i])
					l.background(func(ctx context.Context) { l.unhold(ctx, c, uri) })
				}
			}
		})
	}
	wg.Wait()
	for i, uri := range uris {
		if ok[i] {
			held = append(held, uri)
		}
	}
	return held
}

// acknowledge tells what is honoured, then what has happened since (SUB-03, SUB-04).
func (s *Listener) acknowledge(honoured era.Listen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.sink.Notify(framing.Whole(honoured.Acknowledgement(s.id)), "")
	for _, n := range s.waiting {
		s.sink.Notify(n.frame, n.key)
	}
	s.acked, s.waiting, s.uris = true, nil, len(honoured.URIs) > 0
}

// Notify implements Session: a change that was asked for is passed on.
func (s *Listener) Notify(f framing.Frame, key string) {
	m, err := framing.Scan(f.Bytes())
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || !m.MethodIs(mcp.ResourcesUpdated) && !s.flags.Has(m.MethodName()) {
		return
	}
	n := listened{framing.Rewrite(m.Raw, era.SubscriptionEdits(m, s.id)), key}
	if s.acked {
		s.sink.Notify(n.frame, n.key)
		return
	}
	for i := range s.waiting {
		if s.waiting[i].key == key {
			s.waiting[i] = n
			return
		}
	}
	s.waiting = append(s.waiting, n)
}

// narrowed ends a listen that promises more than the server has after a restart: its client listens anew and is told less
// (translation 8.2).
func (s *Listener) narrowed(caps []byte) {
	s.mu.Lock()
	lost := s.acked && (s.flags.Beyond(caps) || s.uris && !era.HasCapability(caps, "resources", "subscribe"))
	s.mu.Unlock()
	if lost {
		s.end(Answer{Frame: ListenEnd(s.id), Status: 200})
	}
}

// end ends the listen with a result, or without: then the client knows that it may have missed something.
func (s *Listener) end(a Answer) {
	s.mu.Lock()
	mine := !s.ended
	s.ended = true
	s.mu.Unlock()
	if mine {
		s.sink.Finish(a)
	}
}

// End ends the listen with a result: the bridge is about to stop (SUB-09).
func (s *Listener) End() { s.end(Answer{Frame: ListenEnd(s.id), Status: 200}) }

// ListenEnd is the graceful end of a listen whose request has this raw id (SUB-09).
func ListenEnd(id []byte) framing.Frame {
	return ResultFrame(id, []byte(`{"resultType":"complete","_meta":{"`+mcp.MetaSubscriptionID+`":`+string(id)+`}}`))
}

// Declares implements Session: nobody can be asked on a listen.
func (s *Listener) Declares(string) bool { return false }

// Ask implements Session. It is never called, since a listener declares nothing.
func (s *Listener) Ask(c Questioner, m *framing.Message, _ Sink) {
	c.Refuse(m, mcp.CodeMethodNotFound, "a listening client cannot be asked")
}

// Withdraw implements Session.
func (s *Listener) Withdraw(Questioner, *framing.Message, []byte) {}

// Listening implements Session: the server is to run, and to be started again when it dies.
func (s *Listener) Listening() bool { return true }

// ConnClosed implements Session: nothing closes when the server ends (translation 8.2).
func (s *Listener) ConnClosed(*Conn) {}

// listeners returns the listens of modern clients.
func (l *Link) listeners() (list []*Listener) {
	for _, s := range l.attached() {
		if o, ok := s.(*Listener); ok {
			list = append(list, o)
		}
	}
	return list
}
