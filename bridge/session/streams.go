package session

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpbridge/bridge"
)

// PostLimits are the limits of a stream that answers a POST of this session.
func (s *Session) PostLimits() bridge.StreamLimits {
	return bridge.StreamLimits{Replay: s.limits.Replay}
}

// Keep makes a stream one that the client can resume, from the moment its first event id is sent. The stream has a reader.
func (s *Session) Keep(st *bridge.Stream) {
	var b [8]byte
	_, _ = rand.Read(b[:])
	st.ID = hex.EncodeToString(b[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = append(s.streams, &kept{stream: st, reader: true})
	s.trimLocked(time.Now())
}

// trimLocked forgets streams nobody has read for a while, and the oldest unread ones beyond the limit; one whose call still
// runs goes last.
func (s *Session) trimLocked(now time.Time) {
	s.streams = slices.DeleteFunc(s.streams, func(k *kept) bool {
		return !k.reader && (k.own || k.stream.Over()) && now.Sub(k.detached) > s.limits.Retain
	})
	for _, over := range [...]bool{true, false} {
		for len(s.streams) > s.limits.Streams {
			i := slices.IndexFunc(s.streams, func(k *kept) bool { return !k.reader && (k.own || k.stream.Over()) == over })
			if i < 0 {
				break
			}
			s.streams = slices.Delete(s.streams, i, i+1)
		}
	}
}

// Detach tells that the reader of a kept stream is gone. A stream that was read to its end is forgotten at once if all was
// delivered as far as the bridge can tell; it stays for a while in case the client missed the end.
func (s *Session) Detach(st *bridge.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.streams {
		if k.stream == st {
			k.reader, k.detached = false, time.Now()
		}
	}
}

// EventID is the id of a message of a stream: unique over the session, and a cursor in its stream (HTTP-L-14).
func EventID(stream string, seq int64) string { return stream + "_" + strconv.FormatInt(seq, 10) }

// Resume finds the stream an event id belongs to and rewinds it behind that event. Ids of other sessions, of forgotten
// streams, forged ones, and streams that still have a reader are not found (HTTP-L-15, case 53).
func (s *Session) Resume(eventID string) (*bridge.Stream, bool) {
	id, n, ok := strings.Cut(eventID, "_")
	seq, err := strconv.ParseInt(n, 10, 64)
	if !ok || err != nil || seq < 0 {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.streams {
		if k.stream.ID == id && !k.reader {
			k.reader = true
			k.stream.Rewind(seq)
			return k.stream, true
		}
	}
	return nil, false
}

// Stand opens a stream of the session's own and gives it what has been waiting.
func (s *Session) Stand() *bridge.Stream {
	st := bridge.NewStream(0, s.PostLimits())
	s.Keep(st)
	s.mu.Lock()
	for _, k := range s.streams {
		k.own = k.own || k.stream == st
	}
	s.mu.Unlock()
	s.Reopen(st)
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
	s.standing = append(s.standing, st)
	for _, n := range s.backlog {
		n.put(st)
	}
	s.backlog = nil
}

// Sit takes a stream of the session's own out of service; what it has not sent goes to the next one, or waits. What it
// has sent is kept for a client that resumes it.
func (s *Session) Sit(st *bridge.Stream) {
	s.Detach(st)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.standing = slices.DeleteFunc(s.standing, func(o *bridge.Stream) bool { return o == st })
	for _, o := range st.Unsend() {
		n := note{frame: o.Frame, key: o.Key, ask: o.Kind == bridge.OutAsk}
		if i := len(s.standing); i > 0 {
			n.put(s.standing[i-1])
		} else {
			s.keepLocked(n)
		}
	}
}
