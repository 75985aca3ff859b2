package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"mcpbridge/bridge/mcp"
)

type server struct {
	opts    Options
	tools   []tool
	out     io.Writer
	stop    context.CancelCauseFunc
	running sync.WaitGroup // goroutines of calls

	mu sync.Mutex // guards what follows and every write to out
	state
}

// state is everything the server remembers.
type state struct {
	closed  bool
	session *session            // the legacy session, nil before initialize
	open    map[string]*request // requests that wait for their answer, by id
	listens map[string]*listen  // those of them that are subscriptions
	asks    map[string]chan message
	asked   int // questions put to the legacy client so far
	ticks   int // what demo://clock shows
}

// session is what initialize agreed upon (LEG-02, LEG-07).
type session struct {
	version    mcp.Version
	caps       jsontext.Value
	level      mcp.Level
	ready      chan struct{} // closed by notifications/initialized
	isReady    bool
	subscribed map[string]bool // only resources that exist, so it is bounded by their number
}

func newServer(opts Options, out io.Writer, stop context.CancelCauseFunc) *server {
	return &server{opts: opts, tools: tools(), out: out, stop: stop, state: state{
		open:    map[string]*request{},
		listens: map[string]*listen{},
		asks:    map[string]chan message{},
	}}
}

// writeError is why the server had to stop: nobody can be told anything any more.
type writeError struct{ cause error }

func (e *writeError) Error() string { return fmt.Sprintf("cannot write message: %v", e.cause) }
func (e *writeError) Unwrap() error { return e.cause }

// writeFailure tells a stop of our own making from one of the caller's.
func (s *server) writeFailure(ctx context.Context) error {
	if failure := (*writeError)(nil); errors.As(context.Cause(ctx), &failure) {
		return failure
	}
	return nil
}

// write puts one message out. s.mu is held.
func (s *server) write(v any) {
	if s.closed {
		return
	}
	line, err := encode(v)
	if err == nil {
		_, err = s.out.Write(line)
	}
	if err != nil {
		s.closed = true
		s.stop(&writeError{err})
	}
}

// refuse answers a message that never became a request. Without an id the answer carries none (FRM-12).
func (s *server) refuse(id jsontext.Value, failure *rpcError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(response(id, nil, failure))
}

// answer settles a request that never waited.
func (s *server) answer(r *request, result object, failure *rpcError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(r, response(r.id, r.dress(s, result), failure))
}

// put sends an answer by the way its request came in, alone or as member of a batch. s.mu is held.
func (s *server) put(r *request, answer object) {
	if r.batch == nil {
		s.write(answer)
		return
	}
	r.batch.answers = append(r.batch.answers, answer)
	s.release(r.batch)
}

// isOpen reports whether a request with the id of r still waits.
func (s *server) isOpen(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[r.key] != nil
}

// begin registers a request that will wait. It can be cancelled from now on.
func (s *server) begin(ctx context.Context, r *request) (context.Context, *rpcError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= MaxCalls {
		return nil, errorf(mcp.CodeInternal, "too many requests in flight, the limit is %d", MaxCalls)
	}
	ctx, r.cancel = context.WithCancel(ctx)
	s.open[r.key] = r
	return ctx, nil
}

// settle answers a request that waited, unless it was cancelled meanwhile.
func (s *server) settle(r *request, result object, failure *rpcError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.cancel()
	if s.open[r.key] != r {
		return
	}
	delete(s.open, r.key)
	s.put(r, response(r.id, r.dress(s, result), failure))
}

// during sends a message that belongs to a waiting request, unless that is over (PRG-02, PRG-04, STD-08).
func (s *server) during(r *request, v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[r.key] == r {
		s.write(v)
	}
}

// cancelled forgets a request. Nothing is written for it any more; ids nobody waits for are ignored (CAN-03, CAN-04).
func (s *server) cancelled(id jsontext.Value) {
	if !validID(id) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := idKey(id)
	r := s.open[key]
	if r == nil {
		return
	}
	delete(s.open, key)
	delete(s.listens, key)
	r.cancel()
	if r.batch != nil {
		s.release(r.batch)
	}
}

// shut closes the output. A graceful end tells the subscribers first.
func (s *server) shut(graceful bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if graceful {
		s.endListens()
	}
	s.closed = true
	for _, r := range s.open {
		r.cancel()
	}
}
