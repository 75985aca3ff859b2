package session_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/session"
)

// Each message goes on one stream, the newest; when that leaves, the next message reaches the other, and what it had not
// sent too (HTTP-L-12, case 50).
func TestSeveralStreams(t *testing.T) {
	_, s := open(t, session.Config{})
	c, _ := connect(t)
	old, young := s.Stand(), s.Stand()
	s.Notify(text("1"), "")
	same(t, "the older stream", take(old))
	same(t, "the newer stream", take(young), "1")
	s.Notify(text("2"), "")
	ask(t, s, c, "7", nil)
	s.Sit(young)
	same(t, "the older stream", take(old), "2", question("mb-1"))
	s.Notify(text("3"), "")
	same(t, "the older stream", take(old), "3")
	s.Sit(old)
	s.Notify(text("4"), "")
	same(t, "a new stream", take(s.Stand()), "4")
	same(t, "the older stream", take(old))
}

// A question taken back while its stream did not take it is not put on the next one.
func TestUnsentQuestionIsWithdrawn(t *testing.T) {
	_, s := open(t, session.Config{})
	c, _ := connect(t)
	st := s.Stand()
	ask(t, s, c, "7", nil)
	s.Answer(scan(t, `{"jsonrpc":"2.0","id":"mb-1","result":{}}`))
	s.Sit(st)
	same(t, "the next stream", take(s.Stand()))
}

// A thousand changes and no stream: one of each kind waits, the newest, in the order the kinds came (HTTP-L-32).
func TestBacklogMerges(t *testing.T) {
	_, s := open(t, session.Config{})
	for i := range 1000 {
		s.Notify(text(fmt.Sprint("tools ", i)), "tools")
		s.Notify(text(fmt.Sprint("a ", i)), "updated a")
	}
	s.Notify(text("b"), "updated b")
	st := s.Stand()
	same(t, "the stream", take(st), "tools 999", "a 999", "b")
	s.Sit(st)
	same(t, "the next stream", take(s.Stand()))
}

// n notifications wait; of n+1 the oldest is dropped. Questions do not count and are never dropped.
func TestBacklogLimit(t *testing.T) {
	_, s := open(t, session.Config{Session: session.Limits{Backlog: 3}})
	c, _ := connect(t)
	for i := range 5 {
		ask(t, s, c, fmt.Sprint(i), nil)
	}
	for i := range 4 {
		s.Notify(text(fmt.Sprint(i)), "")
		if i == 2 {
			st := s.Stand()
			same(t, "with n", take(st)[5:], "0", "1", "2")
			s.Sit(st)
			for j := range 3 {
				s.Notify(text(fmt.Sprint(j)), "")
			}
		}
	}
	same(t, "with n+1", take(s.Stand()), "1", "2", "3")
}

func TestQuestionsStayInBacklog(t *testing.T) {
	_, s := open(t, session.Config{Session: session.Limits{Backlog: 1, Questions: 3}})
	c, _ := connect(t)
	for i := range 3 {
		ask(t, s, c, fmt.Sprint(i), nil)
		s.Notify(text(fmt.Sprint(i)), "")
	}
	same(t, "the stream", take(s.Stand()), question("mb-1"), question("mb-2"), question("mb-3"), "2")
}

// The bytes that wait are bounded too; one notification alone always stays, and a merged one counts with its new size.
func TestBacklogBytes(t *testing.T) {
	for _, tc := range []struct {
		name string
		put  []string // "key text"
		want []string
	}{
		{"at the limit", []string{" aaaa", " bbbb"}, []string{"aaaa", "bbbb"}},
		{"above it", []string{" aaaa", " bbbb", " c"}, []string{"bbbb", "c"}},
		{"one alone", []string{" aaaa", " bbbbbbbbbbbb"}, []string{"bbbbbbbbbbbb"}},
		{"merged and larger", []string{" aaaa", "k b", "k bbbbb"}, []string{"bbbbb"}},
		{"merged and smaller", []string{"k aaaaaaa", "k a", " bbbbbbb"}, []string{"a", "bbbbbbb"}},
		{"the merged one stays", []string{"k a", " bbbb", "k aaaaaaaaa"}, []string{"aaaaaaaaa"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, s := open(t, session.Config{Session: session.Limits{BacklogBytes: 8}})
			for _, p := range tc.put {
				key, body, _ := strings.Cut(p, " ")
				s.Notify(text(body), key)
			}
			same(t, "the stream", take(s.Stand()), tc.want...)
		})
	}
}

// fill gives a call's stream three messages, of which the client has taken two.
func fill(s *session.Session) *bridge.Stream {
	st := bridge.NewStream(1, s.PostLimits())
	s.Keep(st)
	st.Notify(text("1"), "")
	st.Notify(text("2"), "")
	take(st)
	st.Finish(bridge.Answer{Frame: text("answer")})
	return st
}

// A client that comes back gets what it has not seen of that stream, the answer included, whatever verb opened it
// (HTTP-L-15, HTTP-L-16, case 53).
func TestResume(t *testing.T) {
	for seq, want := range map[int64][]string{0: {"1", "2", "answer"}, 1: {"2", "answer"}, 2: {"answer"}, 3: nil, 99: {"answer"}} {
		_, s := open(t, session.Config{})
		other := s.Stand()
		s.Notify(text("not of this stream"), "")
		st := fill(s)
		s.Detach(st)
		if seq == 3 {
			take(st)
		}
		back, _, ok := s.Resume(eventID(st.ID, seq))
		if !ok || back != st || s.Own(back) {
			t.Fatalf("after %d: resumed %v", seq, ok)
		}
		same(t, fmt.Sprint("after ", seq), take(back), want...)
		same(t, "the other stream", take(other), "not of this stream")
	}
}

// What is no event id of this session replays nothing: foreign, forged, malformed (case 53, HTTP-L-14).
func TestResumeRefuses(t *testing.T) {
	store, s := open(t, session.Config{})
	st := fill(s)
	id := eventID(st.ID, 1)
	other := add(t, store, bridge.Local)
	s.Keep(bridge.NewStream(1, s.PostLimits()))
	if _, _, ok := other.Resume(id); ok {
		t.Error("resumed by another session")
	}
	for _, bad := range []string{"", "_", "_1", st.ID, st.ID + "_", st.ID + "_x", st.ID + "_-1", st.ID + "_1_1", st.ID + "_9223372036854775808",
		strings.Repeat("0", 16) + "_1", st.ID[1:] + "_1", "x" + id} {
		if _, _, ok := s.Resume(bad); ok {
			t.Errorf("resumed by %q", bad)
		}
	}
	if _, _, ok := s.Resume(id); !ok {
		t.Error("not resumed by its own id")
	}
}

// A client that comes back before the bridge knows that its connection is dead takes the stream over: the old reader gets
// nothing more, and its leaving changes nothing (HTTP-L-16).
func TestResumeTakesOver(t *testing.T) {
	for name, own := range map[string]bool{"of a POST": false, "of the session": true} {
		_, s := open(t, session.Config{})
		st := s.Stand()
		if !own {
			st = bridge.NewStream(1, s.PostLimits())
			s.Keep(st)
		}
		st.Notify(text("1"), "")
		if _, _, ok := st.TakeAs(0); !ok {
			t.Fatalf("%s: the first reader gets nothing", name)
		}
		back, as, ok := s.Resume(eventID(st.ID, 0))
		if !ok || back != st || st.Reads(0) || !st.Reads(as) {
			t.Fatalf("%s: not taken over", name)
		}
		if own {
			s.Reopen(back)
		}
		st.Notify(text("2"), "")
		if batch, _, ok := st.TakeAs(0); ok || len(batch) > 0 {
			t.Errorf("%s: the old reader got %d messages", name, len(batch))
		}
		if own {
			s.Sit(st)
		} else {
			s.Detach(st)
		}
		batch, _, ok := st.TakeAs(as)
		if !ok || len(batch) != 2 {
			t.Errorf("%s: the new reader got %d messages", name, len(batch))
		}
		if own {
			s.Notify(text("3"), "")
			same(t, name, take(st), "3")
		}
	}
}

// Event ids differ between all streams of a session, those of GET and of POST (HTTP-L-14).
func TestEventIDsAreUnique(t *testing.T) {
	_, s := open(t, session.Config{})
	seen := map[string]bool{}
	for range 100 {
		post := bridge.NewStream(1, s.PostLimits())
		s.Keep(post)
		for _, st := range []*bridge.Stream{post, s.Stand()} {
			if id := st.ID; len(id) < 16 || strings.Contains(id, "_") || seen[id] {
				t.Fatalf("stream id %q", id)
			}
			seen[st.ID] = true
		}
	}
}

// A stream of the session's own is resumed as such: what it had sent is replayed, and new messages go on it again.
func TestResumeOwn(t *testing.T) {
	_, s := open(t, session.Config{})
	st := s.Stand()
	s.Notify(text("1"), "")
	s.Notify(text("2"), "")
	take(st)
	s.Notify(text("3"), "")
	s.Sit(st)
	back, _, ok := s.Resume(eventID(st.ID, 1))
	if !ok || !s.Own(back) {
		t.Fatal("not resumed as the session's own")
	}
	s.Reopen(back)
	same(t, "the stream", take(back), "2", "3")
	s.Notify(text("4"), "")
	same(t, "the stream", take(back), "4")
}

// The replay is bounded: what exceeds it is gone, the rest comes (rule 4).
func TestReplayLimit(t *testing.T) {
	for n, want := range map[int][]string{8: {"aaaa", "bbbb"}, 7: {"bbbb"}} {
		_, s := open(t, session.Config{Session: session.Limits{Replay: n}})
		st := s.Stand()
		s.Notify(text("aaaa"), "")
		s.Notify(text("bbbb"), "")
		take(st)
		s.Sit(st)
		back, _, ok := s.Resume(eventID(st.ID, 0))
		if !ok {
			t.Fatal("not resumed")
		}
		same(t, fmt.Sprint(n, " bytes"), take(back), want...)
	}
}

// n streams are kept; of n+1 the oldest that is over goes first, then the oldest that runs, never one that is read.
func TestStreamLimit(t *testing.T) {
	_, s := open(t, session.Config{Session: session.Limits{Streams: 3}})
	keep := func(done, read bool) *bridge.Stream {
		st := bridge.NewStream(1, s.PostLimits())
		s.Keep(st)
		if done {
			st.Finish(bridge.Answer{Frame: text("answer")})
		}
		if !read {
			s.Detach(st)
		}
		return st
	}
	kept := func(st *bridge.Stream) bool {
		_, _, ok := s.Resume(eventID(st.ID, 0))
		if ok {
			s.Detach(st)
		}
		return ok
	}
	running, done, done2 := keep(false, false), keep(true, false), keep(true, false)
	for _, st := range []*bridge.Stream{running, done, done2} {
		if !kept(st) {
			t.Fatal("one of n streams was forgotten")
		}
	}
	keep(false, true)
	if kept(done) || !kept(done2) || !kept(running) {
		t.Error("of n+1 another than the oldest that is over was forgotten")
	}
	keep(false, true)
	if kept(done2) || !kept(running) {
		t.Error("a running call was forgotten before one that is over")
	}
	third := keep(false, true)
	if kept(running) {
		t.Error("n+1 streams are kept")
	}
	if !running.Over() {
		t.Error("a forgotten stream still takes messages")
	}
	fourth := keep(false, true)
	for _, st := range []*bridge.Stream{third, fourth} {
		if st.Over() {
			t.Error("a stream that is read was forgotten")
		}
	}
	s.Detach(third) // and now there are too many
	if kept(third) {
		t.Error("n+1 streams are kept after a reader has left")
	}
}

// What nobody reads is kept for a while, and no longer (HTTP-L-16).
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, stop := clock(t, session.Config{Session: session.Limits{Retain: 5 * time.Minute}})
		defer stop()
		s := add(t, st, bridge.Local)
		s.Enter()
		defer s.Leave()
		done, own, running := fill(s), s.Stand(), bridge.NewStream(1, s.PostLimits())
		s.Keep(running)
		s.Detach(done)
		s.Sit(own)
		s.Detach(running)
		resumes := func(st *bridge.Stream) bool {
			_, _, ok := s.Resume(eventID(st.ID, 0))
			return ok
		}
		time.Sleep(5 * time.Minute)
		if !resumes(done) {
			t.Error("forgotten too early")
		}
		s.Detach(done)
		time.Sleep(2 * time.Second)
		if resumes(own) {
			t.Error("the session's own stream is still kept")
		}
		if !resumes(done) {
			t.Error("the time did not start anew with the last reader")
		}
		if !resumes(running) {
			t.Error("a running call was forgotten")
		}
	})
}

// Streams come and go while messages arrive: each message reaches exactly one reader.
func TestConcurrentStreams(t *testing.T) {
	_, s := open(t, session.Config{Session: session.Limits{Backlog: 10_000, Streams: 1}})
	const messages = 2000
	var mu sync.Mutex
	seen := map[string]int{}
	count := func(got []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, g := range got {
			seen[g]++
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range messages {
			s.Notify(text(fmt.Sprint(i)), "")
		}
	})
	for range 8 {
		wg.Go(func() {
			for range 100 {
				st := s.Stand()
				count(take(st))
				s.Sit(st)
			}
		})
	}
	wg.Wait()
	count(take(s.Stand()))
	if len(seen) != messages {
		t.Errorf("%d of %d messages arrived", len(seen), messages)
	}
	for m, n := range seen {
		if n != 1 {
			t.Errorf("message %s arrived %d times", m, n)
		}
	}
}

// A client that resumes while its old reader leaves is in service afterwards.
func TestResumeDuringSit(t *testing.T) {
	for range 200 {
		_, s := open(t, session.Config{})
		st := s.Stand()
		s.Notify(text("1"), "")
		take(st)
		var wg sync.WaitGroup
		wg.Go(func() { s.Sit(st) })
		wg.Go(func() {
			for {
				if back, _, ok := s.Resume(eventID(st.ID, 1)); ok {
					s.Reopen(back)
					return
				}
			}
		})
		wg.Wait()
		s.Notify(text("2"), "")
		same(t, "the resumed stream", take(st), "2")
		if t.Failed() {
			return
		}
	}
}
