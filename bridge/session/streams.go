package session

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/framing"
)

// PostLimits are the limits of a stream that answers a POST of this session.
func (s *Session) PostLimits() bridge.StreamLimits {
	return bridge.StreamLimits{Replay: s.store.cfg.Session.Replay}
}

// Keep makes a stream one that the client can resume, from the moment its first event id is sent. The stream has a reader.
func (s *Session) Keep(st *bridge.Stream) {
	st.ID = newStreamID()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.keepStreamLocked(&kept{stream: st, readers: 1})
	}
}

// newStreamID returns 64 random bits: event ids are unique over all streams (HTTP-L-14), and cannot be guessed.
func newStreamID() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func (s *Session) keepStreamLocked(k *kept) {
	s.streams = append(s.streams, k)
	s.trimLocked(time.Now())
}

func (s *Session) trim(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trimLocked(now)
}

// trimLocked forgets streams nobody has read for a while, and the oldest unread ones beyond the limit; one whose call still
// runs goes last.
func (s *Session) trimLocked(now time.Time) {
	for i := 0; i < len(s.streams); {
		if k := s.streams[i]; k.over() && now.Sub(k.detached) > s.store.cfg.Session.Retain {
			s.forgetLocked(i)
		} else {
			i++
		}
	}
	for _, running := range [...]bool{false, true} {
		for len(s.streams) > s.store.cfg.Session.Streams {
			i := slices.IndexFunc(s.streams, func(k *kept) bool { return k.over() || running && k.readers == 0 })
			if i < 0 {
				break
			}
			s.forgetLocked(i)
		}
	}
}

// over reports whether a stream is only kept for a client that comes back.
func (k *kept) over() bool { return k.readers == 0 && (k.own || k.stream.Over()) }

// forgetLocked gives up a stream. It is closed, so that what still comes for it takes no memory.
func (s *Session) forgetLocked(i int) {
	s.streams[i].stream.Close()
	s.streams = slices.Delete(s.streams, i, i+1)
}

// Detach tells that a reader of a kept stream is gone. Without another the stream stays for a while, also when it was read to its end, in
// case the client missed that.
func (s *Session) Detach(st *bridge.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detachLocked(st)
}

func (s *Session) detachLocked(st *bridge.Stream) {
	for _, k := range s.streams {
		if k.stream == st {
			k.readers, k.detached = max(k.readers-1, 0), time.Now()
		}
	}
	s.trimLocked(time.Now())
}

// Resume finds the stream an event id belongs to, takes it over from whoever reads it and rewinds it behind that event. An event
// id is the stream's ID, "_" and the message's Seq: unique over the session, and a cursor in its stream (HTTP-L-14). So it goes:
// a client comes back because its connection is dead, often before the bridge can know. reader is what the new reader
// reads as. Ids of other sessions, of forgotten streams and forged ones are not found (HTTP-L-15, case 53).
func (s *Session) Resume(eventID string) (st *bridge.Stream, reader int, ok bool) {
	id, n, ok := strings.Cut(eventID, "_")
	seq, err := strconv.ParseInt(n, 10, 64)
	if !ok || err != nil || seq < 0 {
		return nil, 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.streams {
		if k.stream.ID == id {
			k.readers++
			return k.stream, k.stream.Takeover(seq), true
		}
	}
	return nil, 0, false
}

// Stand opens a stream of the session's own and gives it what has been waiting. That of a session that has ended is over.
func (s *Session) Stand() *bridge.Stream {
	st := bridge.NewStream(0, s.PostLimits())
	st.ID = newStreamID()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.keepStreamLocked(&kept{stream: st, own: true, readers: 1})
	}
	s.reopenLocked(st)
	return st
}

// Own reports whether a stream is one of the session's own, opened by Stand.
func (s *Session) Own(st *bridge.Stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.streams, func(k *kept) bool { return k.stream == st && k.own })
}

// Reopen puts a stream of the session's own into service as the newest.
func (s *Session) Reopen(st *bridge.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reopenLocked(st)
}

func (s *Session) reopenLocked(st *bridge.Stream) {
	if s.ended {
		st.Close()
		return
	}
	s.standing = append(slices.DeleteFunc(s.standing, func(o *bridge.Stream) bool { return o == st }), st)
	s.flushLocked(st)
}

// Sit takes a stream of the session's own out of service; what it has not sent goes to the next one, or waits. What it
// has sent is kept for a client that resumes it, which can happen from here on and not before.
func (s *Session) Sit(st *bridge.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.streams, func(k *kept) bool { return k.stream == st && k.readers > 1 }) {
		s.detachLocked(st) // another has taken it over
		return
	}
	s.standing = slices.DeleteFunc(s.standing, func(o *bridge.Stream) bool { return o == st })
	for _, o := range st.Unsend() {
		n := note{frame: o.Frame, key: o.Key}
		if o.Kind == bridge.OutAsk {
			if n.ask = s.askOfLocked(o.Frame); n.ask == nil {
				continue // withdrawn meanwhile
			}
		}
		s.deliverLocked(n)
	}
	s.detachLocked(st)
}

// askOfLocked finds the open question a frame puts.
func (s *Session) askOfLocked(f framing.Frame) *ask {
	m, err := framing.Scan(f.Bytes())
	if err != nil {
		return nil
	}
	key, _ := framing.String(m.Bytes(m.ID))
	return s.asks[key]
}

// finish ends a session and returns the streams that are to be closed: its own, and those nobody reads.
func (s *Session) finish() (open []*bridge.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, k := range s.streams {
		if k.own || k.readers == 0 {
			open = append(open, k.stream)
		}
	}
	s.backlog, s.waiting, s.streams, s.standing = nil, 0, nil, nil
	return open
}
