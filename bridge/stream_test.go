package bridge_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"mcpbridge/bridge"
	"mcpbridge/framing"
)

func frame(s string) framing.Frame { return framing.Whole([]byte(s)) }

func answer(s string) bridge.Answer { return bridge.Answer{Frame: frame(s), Status: 200} }

func texts(list []bridge.Outgoing) (out []string) {
	for _, o := range list {
		out = append(out, string(o.Frame.Bytes()))
	}
	return out
}

func taken(s *bridge.Stream) []string { list, _ := s.Take(); return texts(list) }

func woken(s *bridge.Stream) bool {
	select {
	case <-s.Wake():
		return true
	default:
		return false
	}
}

// A stream for one answer ends with it; what comes behind is dropped (PRG-04).
func TestStreamEnds(t *testing.T) {
	s := bridge.NewStream(1, bridge.StreamLimits{})
	if woken(s) || s.Over() {
		t.Error("a new stream is not silent")
	}
	s.Notify(frame("n"), "")
	s.Ask(frame("q"))
	s.Finish(answer("a"))
	s.Notify(frame("late"), "")
	s.Ask(frame("late"))
	s.Finish(answer("late"))
	if !woken(s) || woken(s) {
		t.Error("want one wake-up")
	}
	list, last := s.Take()
	same(t, "taken", texts(list), []string{"n", "q", "a"})
	if !last || !s.Over() {
		t.Error("not the last")
	}
	var kinds []bridge.OutKind
	var seqs []int64
	for _, o := range list {
		kinds, seqs = append(kinds, o.Kind), append(seqs, o.Seq)
	}
	if !slices.Equal(kinds, []bridge.OutKind{bridge.OutNote, bridge.OutAsk, bridge.OutFinal}) || !slices.Equal(seqs, []int64{1, 2, 3}) || list[2].Status != 200 {
		t.Errorf("kinds %v, seqs %v", kinds, seqs)
	}
	if list, last = s.Take(); len(list) != 0 || !last || s.Size() != 0 {
		t.Error("something is left")
	}
}

// The stream of a batch ends with its last answer (FRM-24); one for none only when it is closed, and what waits is still
// delivered then.
func TestStreamOfSeveral(t *testing.T) {
	s := bridge.NewStream(3, bridge.StreamLimits{})
	for i := range 3 {
		if _, last := s.Take(); last {
			t.Errorf("over after %d answers", i)
		}
		s.Finish(answer("a"))
	}
	if _, last := s.Take(); !last {
		t.Error("not over after three")
	}
	s = bridge.NewStream(0, bridge.StreamLimits{})
	s.Finish(answer("a"))
	s.Finish(answer("b"))
	if s.Over() {
		t.Error("over")
	}
	for woken(s) {
	}
	s.Close()
	s.Notify(frame("late"), "")
	if !woken(s) {
		t.Error("the reader is not woken by the end")
	}
	list, last := s.Take()
	same(t, "taken", texts(list), []string{"a", "b"})
	if !last {
		t.Error("not the last")
	}
}

// From the merge limit on, notifications of one key replace each other: the newest survives (PRG-05).
func TestStreamMerges(t *testing.T) {
	s := bridge.NewStream(1, bridge.StreamLimits{Merge: 3})
	for i := range 3 { // up to the limit nothing is merged
		s.Notify(frame(fmt.Sprint("p", i)), "p")
	}
	s.Notify(frame("p3"), "p")
	s.Notify(frame("x"), "")
	s.Notify(frame("y"), "")
	s.Notify(frame("k"), "k")
	s.Notify(frame("p4"), "p")
	same(t, "taken", taken(s), []string{"p0", "p1", "p4", "x", "y", "k"})
	s.Notify(frame("p5"), "p") // what was taken is not touched
	same(t, "taken", taken(s), []string{"p5"})
}

// So many bytes of notifications may wait; one more byte is dropped (rule 4, case 86). Answers stay. The first message of
// an empty stream is taken whatever its size.
func TestStreamLimit(t *testing.T) {
	s := bridge.NewStream(2, bridge.StreamLimits{Unsent: 10})
	s.Notify(frame("12345678"), "")
	s.Notify(frame("90"), "")
	s.Notify(frame("x"), "")
	if s.Size() != 10 {
		t.Errorf("size %d", s.Size())
	}
	s.Finish(answer("an answer is never dropped"))
	same(t, "taken", taken(s), []string{"12345678", "90", "an answer is never dropped"})
	s.Notify(frame("longer than the limit"), "")
	s.Notify(frame("x"), "")
	s.Finish(answer("a"))
	same(t, "taken", taken(s), []string{"longer than the limit", "a"})
}

// Merging cannot grow a stream above its limit.
func TestStreamLimitWhenMerging(t *testing.T) {
	s := bridge.NewStream(1, bridge.StreamLimits{Unsent: 10, Merge: 1})
	for _, k := range []string{"a", "b", "c"} {
		s.Notify(frame(k), k)
	}
	s.Notify(frame("aaaaaaaa"), "a") // 8+1+1
	s.Notify(frame("bb"), "b")
	s.Notify(frame("c"), "c")
	if s.Size() != 10 {
		t.Errorf("size %d", s.Size())
	}
	same(t, "taken", taken(s), []string{"aaaaaaaa", "b", "c"})
}

// Questions have room of their own, as much as notifications, and no more: a server that asks and takes back for ever
// costs no memory (rule 4).
func TestStreamLimitOfQuestions(t *testing.T) {
	s := bridge.NewStream(1, bridge.StreamLimits{Unsent: 10})
	s.Notify(frame("1234567890"), "")
	s.Ask(frame("12345"))
	s.Ask(frame("67890"))
	s.Ask(frame("x"))
	same(t, "taken", taken(s), []string{"1234567890", "12345", "67890"})
	s.Notify(frame("1234567890"), "")
	s.Ask(frame("one that is longer than all the room"))
	same(t, "taken", taken(s), []string{"1234567890", "one that is longer than all the room"})
}

// What was sent is kept up to the replay limit, the newest of it, and can be had again (HTTP-L-14, HTTP-L-15).
func TestStreamReplay(t *testing.T) {
	s := bridge.NewStream(1, bridge.StreamLimits{Replay: 6})
	for i := 1; i <= 5; i++ {
		s.Notify(frame(fmt.Sprint("m", i)), "")
		if i%2 == 1 {
			taken(s)
		}
	}
	s.Takeover(3)
	same(t, "after 3", taken(s), []string{"m4", "m5"})
	s.Takeover(0)
	same(t, "from the start", taken(s), []string{"m3", "m4", "m5"}) // 6 bytes
	s.Finish(answer("a"))
	s.Takeover(4)
	if !woken(s) {
		t.Error("the next reader is not woken")
	}
	list, last := s.Take()
	same(t, "after 4", texts(list), []string{"m5", "a"})
	if !last || list[1].Seq != 6 {
		t.Errorf("last %v, seq %d", last, list[1].Seq)
	}
	s.Takeover(99)
	if got := taken(s); len(got) != 0 {
		t.Errorf("after what was never sent: %q", got)
	}
	s.Takeover(5)
	if _, last = s.Take(); !last {
		t.Error("the end is not told again")
	}
	none := bridge.NewStream(1, bridge.StreamLimits{})
	none.Notify(frame("n"), "")
	taken(none)
	none.Takeover(0)
	if got := taken(none); len(got) != 0 || none.Size() != 0 {
		t.Errorf("kept without being asked: %q", got)
	}
}

// A batch in a reader's hand does not change, whatever happens to the stream: rewinding and merging included.
func TestStreamBatchIsTheReaders(t *testing.T) {
	s := bridge.NewStream(0, bridge.StreamLimits{Replay: 100, Merge: 1})
	s.Notify(frame("p1"), "p")
	s.Notify(frame("x"), "")
	list, _ := s.Take()
	s.Takeover(0)
	s.Notify(frame("p2"), "p")
	same(t, "in hand", texts(list), []string{"p1", "x"})
	for range 50 {
		s.Notify(frame(strings.Repeat("y", 50)), "")
		s.Take()
	}
	same(t, "in hand", texts(list), []string{"p1", "x"})
}

// What nobody took can be taken back; what was sent stays for a replay, and the stream open.
func TestStreamUnsend(t *testing.T) {
	s := bridge.NewStream(0, bridge.StreamLimits{Replay: 100})
	s.Notify(frame("sent"), "")
	taken(s)
	s.Notify(frame("n"), "k")
	s.Ask(frame("q"))
	rest := s.Unsend()
	same(t, "unsent", texts(rest), []string{"n", "q"})
	if rest[0].Key != "k" || rest[1].Kind != bridge.OutAsk || s.Size() != len("sent") {
		t.Errorf("rest %v, size %d", rest, s.Size())
	}
	s.Notify(frame("more"), "")
	s.Takeover(0)
	same(t, "all", taken(s), []string{"sent", "more"})
}

// No wake-up is lost: a reader that takes when it is woken sees every answer.
func TestStreamWakes(t *testing.T) {
	const n = 2000
	s := bridge.NewStream(n, bridge.StreamLimits{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range n / 4 {
				s.Notify(frame("n"), "n")
				s.Finish(answer("a"))
			}
		})
	}
	got := 0
	for last := false; !last; {
		<-s.Wake()
		var list []bridge.Outgoing
		list, last = s.Take()
		for _, o := range list {
			if o.Kind == bridge.OutFinal {
				got++
			}
		}
	}
	wg.Wait()
	if got != n {
		t.Errorf("%d answers, want %d", got, n)
	}
}

// Whatever is done to a stream: its size is what it holds and stays within its limits, messages come in order, and
// answers and questions within their room are never lost.
func TestStreamModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := bridge.StreamLimits{Unsent: 40, Merge: 3, Replay: rapid.SampledFrom([]int{0, 25}).Draw(t, "replay")}
		s := bridge.NewStream(0, l)
		finals, seen, lastSeq := 0, 0, int64(0)
		body := func() framing.Frame { return frame(strings.Repeat("x", rapid.IntRange(1, 12).Draw(t, "size"))) }
		t.Repeat(map[string]func(*rapid.T){
			"notify": func(t *rapid.T) { s.Notify(body(), rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "key")) },
			"ask":    func(*rapid.T) { s.Ask(body()) },
			"finish": func(*rapid.T) {
				if finals-seen < 3 {
					s.Finish(bridge.Answer{Frame: body()})
					finals++
				}
			},
			"take": func(t *rapid.T) {
				list, _ := s.Take()
				for _, o := range list {
					if o.Seq <= lastSeq {
						t.Fatalf("message %d after %d", o.Seq, lastSeq)
					}
					if lastSeq = o.Seq; o.Kind == bridge.OutFinal {
						seen++
					}
				}
				if seen != finals {
					t.Fatalf("%d answers, want %d", seen, finals)
				}
				if s.Size() > l.Replay {
					t.Fatalf("%d bytes kept, limit %d", s.Size(), l.Replay)
				}
			},
			"": func(t *rapid.T) {
				if most := 2*l.Unsent + 3*12 + l.Replay; s.Size() > most {
					t.Fatalf("%d bytes held, at most %d", s.Size(), most)
				}
			},
		})
	})
}
