package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpbridge/test/internal/jscan"
)

// Header is a list of names and values.
type Header map[string]string

// Reply is one whole HTTP answer.
type Reply struct {
	Status   int
	Header   http.Header
	Body     []byte
	Messages [][]byte // the JSON-RPC messages in it, from JSON or an event stream
	Events   []Event  // of an event stream
}

// Last returns the final message.
func (r *Reply) Last(t testing.TB) []byte {
	t.Helper()
	if len(r.Messages) == 0 {
		t.Fatalf("status %d, no message in %q", r.Status, clip(r.Body))
	}
	return r.Messages[len(r.Messages)-1]
}

// Get returns a raw value of the final message, nil if it is not there.
func (r *Reply) Get(t testing.TB, path ...string) string {
	t.Helper()
	return string(jscan.Get(r.Last(t), path...))
}

// Event is one server-sent event.
type Event struct {
	ID   string
	Name string
	Data []byte
	Note bool // a comment, whose text is Data
	Bare bool // has no data field, or an empty one
}

// Stream is an open HTTP answer.
type Stream struct {
	Status int
	Header http.Header
	events chan Event
	err    error // valid once events is closed
	body   io.ReadCloser
	cancel context.CancelFunc
}

// request builds a request with the usual headers, of which h may replace any; an empty value leaves one out.
func (b *Bridge) request(ctx context.Context, verb string, h Header, body []byte) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, verb, b.URL, r)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range h {
		if v == "" {
			req.Header.Del(k)
		} else {
			req.Header.Set(k, v)
		}
	}
	return req, nil
}

// Do sends a request and reads the whole answer.
func (b *Bridge) Do(t testing.TB, verb string, h Header, body []byte) *Reply {
	t.Helper()
	r, err := b.Try(verb, h, body)
	if err != nil {
		t.Fatalf("cannot %s: %v", verb, err)
	}
	return r
}

// Try is Do for goroutines that may not end the test.
func (b *Bridge) Try(verb string, h Header, body []byte) (*Reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	req, err := b.request(ctx, verb, h, body)
	if err != nil {
		return nil, err
	}
	resp, err := b.Client.Do(req)
	if err != nil {
		return nil, err
	}
	return ReadReply(resp)
}

// ReadReply reads a response to its end.
func ReadReply(resp *http.Response) (*Reply, error) {
	defer resp.Body.Close()
	r := &Reply{Status: resp.StatusCode, Header: resp.Header}
	var err error
	if r.Body, err = io.ReadAll(resp.Body); err != nil {
		return r, err
	}
	if media(resp.Header) != "text/event-stream" {
		if len(r.Body) > 0 {
			r.Messages = [][]byte{r.Body}
		}
		return r, nil
	}
	in := bufio.NewReader(bytes.NewReader(r.Body))
	for {
		e, err := nextEvent(in)
		if errors.Is(err, io.EOF) {
			return r, nil
		} else if err != nil {
			return r, err
		}
		r.Events = append(r.Events, e)
		if !e.Note && !e.Bare {
			r.Messages = append(r.Messages, e.Data)
		}
	}
}

func media(h http.Header) string {
	m, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return m
}

// Open sends a request whose answer is read event by event. It is closed with the test at the latest.
func (b *Bridge) Open(t testing.TB, verb string, h Header, body []byte) *Stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := b.request(ctx, verb, h, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := b.Client.Do(req)
	if err != nil {
		cancel()
		t.Fatalf("cannot %s: %v", verb, err)
	}
	s := &Stream{Status: resp.StatusCode, Header: resp.Header, events: make(chan Event, 1024), body: resp.Body, cancel: cancel}
	go s.read()
	t.Cleanup(s.Drop)
	return s
}

func (s *Stream) read() {
	defer close(s.events)
	defer s.body.Close()
	in := bufio.NewReader(s.body)
	for {
		e, err := nextEvent(in)
		if err != nil {
			s.err = err
			return
		}
		s.events <- e
	}
}

// Drop closes the connection under the stream.
func (s *Stream) Drop() {
	s.cancel()
	for range s.events { // until the reader is gone
	}
}

// Next returns the next event, comments included; ok is false at the end.
func (s *Stream) Next(t testing.TB) (e Event, ok bool) {
	t.Helper()
	return s.next(t, time.After(Patience+time.Second)) // longer than the pause between two comments
}

func (s *Stream) next(t testing.TB, late <-chan time.Time) (e Event, ok bool) {
	t.Helper()
	select {
	case e, ok = <-s.events:
		return e, ok
	case <-late:
		t.Fatal("nothing comes on the stream")
		return e, false
	}
}

// Message returns the next event that carries a message; it fails the test at the end of the stream. Comments do not
// make it wait longer.
func (s *Stream) Message(t testing.TB) Event {
	t.Helper()
	late := time.After(Patience)
	for {
		e, ok := s.next(t, late)
		if !ok {
			t.Fatalf("the stream has ended: %v", s.err)
		}
		if !e.Note && !e.Bare {
			return e
		}
	}
}

// Rest returns the messages up to the end of the stream, which must come soon.
func (s *Stream) Rest(t testing.TB) [][]byte {
	t.Helper()
	late := time.After(Patience)
	var list [][]byte
	for {
		e, ok := s.next(t, late)
		if !ok {
			return list
		}
		if !e.Note && !e.Bare {
			list = append(list, e.Data)
		}
	}
}

// nextEvent reads one event or comment. It takes what the bridge may write: lines that end with LF.
func nextEvent(in *bufio.Reader) (Event, error) {
	var e Event
	var data []string
	begun := false
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return e, err
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && !begun:
			continue
		case line == "":
			e.Data = []byte(strings.Join(data, "\n"))
			e.Bare = len(e.Data) == 0
			return e, nil
		case name == "":
			if !begun {
				return Event{Note: true, Data: []byte(value)}, nil
			}
			continue
		case name == "id":
			e.ID = value
		case name == "event":
			e.Name = value
		case name == "data":
			data = append(data, value)
		}
		begun = true
	}
}
