package front

import (
	"io"
	"strings"
	"testing"
	"time"
)

// All requests together may hold n bytes of bodies and not n+1; what a request gives back another may have (rule 4).
func TestBodyBudget(t *testing.T) {
	b := NewBodyBudget(300)
	read := func(h *Hold, size int) int {
		r, _ := posted(strings.NewReader(strings.Repeat("x", size)), int64(size))
		body, err := ReadBody(r, 0, h)
		if err != nil {
			if err.Status != 503 || err.Retry == 0 || !strings.Contains(err.Message, "limits.bodyTotalBytes") {
				t.Errorf("refused with %d %q", err.Status, err.Message)
			}
			return err.Status
		}
		return len(body)
	}
	one, two, three := &Hold{budget: b}, &Hold{budget: b}, &Hold{budget: b}
	if got := read(one, 200); got != 200 {
		t.Fatalf("the first body: %d", got)
	}
	if got := read(two, 101); got != 503 {
		t.Errorf("n+1 bytes: %d", got)
	}
	if got := read(two, 100); got != 100 {
		t.Errorf("n bytes: %d", got)
	}
	one.release()
	if got := read(three, 200); got != 200 {
		t.Errorf("after a release: %d", got)
	}
	two.release()
	three.release()
	if left := b.used.Load(); left != 0 {
		t.Errorf("%d bytes are never given back", left)
	}
	chunked, _ := posted(strings.NewReader(strings.Repeat("x", 400)), -1)
	if _, err := ReadBody(chunked, 0, &Hold{budget: b}); err == nil || err.Status != 503 {
		t.Errorf("a body of unknown length beyond the budget: %v", err)
	}
}

// A stalled body costs a small multiple of what has arrived (SEC-07).
func TestStalledBodyCostsWhatArrived(t *testing.T) {
	b := NewBodyBudget(0)
	for _, sent := range []int{1, firstAlloc, firstAlloc + 1, 1 << 20, 1<<20 + 1, 5 << 20} {
		h := &Hold{budget: b}
		r, _ := posted(strings.NewReader(strings.Repeat("x", sent)), DefaultBodyLimit)
		if _, err := ReadBody(r, 0, h); err == nil {
			t.Fatal("a cut body was accepted")
		}
		if h.bytes > max(firstAlloc, int64(sent)*allocGrowth) {
			t.Errorf("%d bytes for %d that arrived", h.bytes, sent)
		}
		h.release()
	}
}

// The deadline moves on with every step that has arrived, and not before.
func TestPacedBody(t *testing.T) {
	moves := 0
	p := &paced{ReadCloser: io.NopCloser(strings.NewReader(strings.Repeat("x", 2*paceStep+1))), left: paceStep, wait: time.Minute,
		extend: func(at time.Time) error {
			if d := time.Until(at); d > time.Minute || d < 30*time.Second {
				t.Errorf("the deadline is %v away", d)
			}
			moves++
			return nil
		}}
	for want, size := range []int{paceStep - 1, 1, paceStep, 1} {
		if _, err := io.ReadFull(p, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if want = min(want, 2); moves != want {
			t.Errorf("%d moves, want %d", moves, want)
		}
	}
}
