package bridge

import (
	"slices"
	"sync"

	"mcpbridge/framing"
)

// OutKind tells what an outgoing message is.
type OutKind uint8

const (
	OutNote  OutKind = iota // a notification
	OutAsk                  // a request of the server
	OutFinal                // an answer
)

// Outgoing is one message on its way to a client. Seq counts the messages of a stream from 1.
type Outgoing struct {
	Frame  framing.Frame
	Kind   OutKind
	Status int
	Seq    int64
	Key    string // of a notification, see Sink
}

// StreamLimits bound a stream. Zero values mean the defaults.
type StreamLimits struct {
	// Unsent is how many bytes of notifications may wait for a slow reader. Above it the newest notification is
	// dropped (progress and changes are merged first); answers always stay. Questions have as much room again, of their
	// own. Default 4 MiB.
	Unsent int
	// Merge is the number of waiting messages from which notifications of one key replace each other. Default 32.
	Merge int
	// EndFull ends a stream that would have to drop a notification, for readers who must know that they have missed one.
	EndFull bool
	// Replay is how many bytes of sent messages are kept for a client that resumes; 0 keeps none.
	Replay int
}

// Stream is what a client still has to be sent for one exchange, or for several of one batch, or for a session's own
// messages: a bounded, ordered mailbox between the goroutine that reads the server and the one that writes to the client.
// It implements Sink.
type Stream struct {
	ID string // event id prefix; "" while nobody can resume it

	limits StreamLimits
	wake   chan struct{}
	mu     sync.Mutex
	out    []Outgoing
	first  [1]Outgoing
	next   int // index in out of the first message not taken yet
	seq    int64
	unsent int // bytes not taken
	kept   int // bytes taken and kept
	finals int // answers still to come; < 0: a stream without end
	closed bool
	reader int // who reads: 0 at first, counting up with each takeover
}

// NewStream returns a stream that ends after so many answers; 0 means a stream that ends only when closed.
func NewStream(finals int, l StreamLimits) *Stream {
	l.Unsent, l.Merge = or(l.Unsent, 4<<20), or(l.Merge, 32)
	if finals == 0 {
		finals = -1
	}
	s := &Stream{limits: l, wake: make(chan struct{}, 1), finals: finals}
	s.out = s.first[:0]
	return s
}

// Notify implements Sink.
func (s *Stream) Notify(f framing.Frame, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() {
		return
	}
	if key != "" && len(s.out)-s.next >= s.limits.Merge && s.mergeLocked(f, key) {
		return
	}
	if s.unsent+f.Len() > s.limits.Unsent && len(s.out) > s.next {
		if s.limits.EndFull {
			s.closed = true
			s.signal()
		}
		return
	}
	s.putLocked(Outgoing{Frame: f, Kind: OutNote, Key: key})
}

func (s *Stream) over() bool { return s.finals == 0 || s.closed }

func (s *Stream) mergeLocked(f framing.Frame, key string) bool {
	for i := len(s.out) - 1; i >= s.next; i-- {
		if s.out[i].Key != key {
			continue
		}
		if more := f.Len() - s.out[i].Frame.Len(); more <= 0 || s.unsent+more <= s.limits.Unsent {
			s.unsent += more
			s.out[i].Frame = f
		}
		return true
	}
	return false
}

// Ask implements Sink.
func (s *Stream) Ask(f framing.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() {
		return
	}
	if s.unsent+f.Len() > s.limits.Unsent {
		if asked := s.askedLocked(); asked > 0 && asked+f.Len() > s.limits.Unsent {
			return
		}
	}
	s.putLocked(Outgoing{Frame: f, Kind: OutAsk})
}

// askedLocked is how many bytes of questions wait.
func (s *Stream) askedLocked() (n int) {
	for i := s.next; i < len(s.out); i++ {
		if s.out[i].Kind == OutAsk {
			n += s.out[i].Frame.Len()
		}
	}
	return n
}

// Finish implements Sink.
func (s *Stream) Finish(a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() {
		return
	}
	if s.finals > 0 {
		s.finals--
	}
	s.putLocked(Outgoing{Frame: a.Frame, Kind: OutFinal, Status: a.Status})
}

func (s *Stream) putLocked(o Outgoing) {
	s.seq++
	o.Seq = s.seq
	s.out = append(s.out, o)
	s.unsent += o.Frame.Len()
	s.signal()
}

func (s *Stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Wake has an element when there may be something to take.
func (s *Stream) Wake() <-chan struct{} { return s.wake }

// Take returns what has not been taken yet. last reports that nothing will follow.
func (s *Stream) Take() (batch []Outgoing, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeLocked()
}

func (s *Stream) takeLocked() (batch []Outgoing, last bool) {
	s.unsent = 0
	if s.limits.Replay == 0 {
		batch = s.out[s.next:len(s.out):len(s.out)]
		s.out, s.next = nil, 0
	} else {
		batch = slices.Clone(s.out[s.next:]) // what is kept may be cut, and merged into after a rewind
		s.keepLocked(batch)
	}
	return batch, s.over()
}

// keepLocked keeps what was just taken for a replay, and forgets the oldest beyond the limit.
func (s *Stream) keepLocked(batch []Outgoing) {
	for i := range batch {
		s.kept += batch[i].Frame.Len()
	}
	s.next = len(s.out)
	n := 0
	for n < s.next && s.kept > s.limits.Replay {
		s.kept -= s.out[n].Frame.Len()
		n++
	}
	clear(s.out[:n]) // their memory goes now, their places with the next growth
	s.out = s.out[n:]
	s.next -= n
}

// TakeAs is Take for one of several readers; ok is false, and nothing is taken, when another has taken the stream over.
func (s *Stream) TakeAs(reader int) (batch []Outgoing, last, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader != reader {
		s.signal() // the element of Wake was meant for the other
		return nil, false, false
	}
	batch, last = s.takeLocked()
	return batch, last, true
}

// Reads reports whether that reader still has the stream.
func (s *Stream) Reads(reader int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reader == reader
}

// Takeover makes the caller the reader and everything after message seq available again, as far as it is kept. It
// returns what the caller reads as.
func (s *Stream) Takeover(seq int64) (reader int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.next > 0 && s.out[s.next-1].Seq > seq {
		s.next--
		s.kept -= s.out[s.next].Frame.Len()
		s.unsent += s.out[s.next].Frame.Len()
	}
	s.signal()
	s.reader++
	return s.reader
}

// Unsend takes back what has not been taken by a reader. The stream stays open.
func (s *Stream) Unsend() []Outgoing {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := slices.Clone(s.out[s.next:])
	clear(s.out[s.next:])
	s.out, s.unsent = s.out[:s.next], 0
	return rest
}

// Close ends the stream: later messages are dropped.
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.signal()
}

// Over reports whether the stream has ended.
func (s *Stream) Over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over()
}
