package framing_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"mcpbridge/framing"
)

func TestWriterDirect(t *testing.T) {
	for _, size := range []int{4096, 4097} {
		g := &tryGate{gate: open(), tries: []int{1 << 20}}
		w := framing.NewWriter(g, 1<<20)
		write(t, w, strings.Repeat("x", size))
		if inline := g.text() != "" && g.tried == 1; size == 4096 && !inline {
			t.Error("a frame of 4096 bytes was not written by its caller")
		}
		closeWriter(t, w)
		if g.tried != map[int]int{4096: 1, 4097: 0}[size] || len(g.text()) != size+1 {
			t.Errorf("%d bytes: %d tries, %d bytes written", size, g.tried, len(g.text()))
		}
	}
}

// Queue never writes from the calling goroutine, and keeps the order with Write.
func TestWriterQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &tryGate{gate: newGate(), tries: []int{1 << 20, 1 << 20}}
		w := framing.NewWriter(g, 1<<20)
		if err := w.Queue(t.Context(), framing.Whole([]byte("first"))); err != nil {
			t.Fatal(err)
		}
		if g.text() != "" || w.Queued() != 6 {
			t.Errorf("%q written, %d queued", g.text(), w.Queued())
		}
		write(t, w, "second")
		close(g.tokens)
		closeWriter(t, w)
		if g.text() != "first\nsecond\n" || g.tried != 0 {
			t.Errorf("%q after %d tries", g.text(), g.tried)
		}
		if err := w.Queue(t.Context(), framing.Whole([]byte("late"))); err != framing.ErrWriterClosed {
			t.Error(err)
		}
	})
}

// Abort while the calling goroutine writes: the frame counts as written only if the stream took all of it.
func TestWriterAbortDuringDirectWrite(t *testing.T) {
	for _, n := range []int{2, 100} {
		cause := errors.New("stop")
		stream := &aborting{n: n}
		w := framing.NewWriter(stream, 100)
		stream.abort = func() { w.Abort(cause) }
		err := w.Write(t.Context(), framing.Whole([]byte("12345")))
		if want := map[int]error{2: cause, 100: nil}[n]; err != want {
			t.Errorf("%d bytes taken: %v, want %v", n, err, want)
		}
		if err := w.Close(); err != cause || stream.buf.Len() != min(n, 6) {
			t.Errorf("%v after %d bytes", err, stream.buf.Len())
		}
	}
}

// aborting calls abort in the middle of a TryWrite that takes n bytes.
type aborting struct {
	n     int
	abort func()
	buf   bytes.Buffer
}

func (a *aborting) Write(p []byte) (int, error) { return a.buf.Write(p) }

func (a *aborting) TryWrite(p []byte) (int, error) {
	a.abort()
	return a.buf.Write(p[:min(a.n, len(p))])
}

func TestWriterDirectShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &tryGate{gate: newGate(), tries: []int{3}}
		w := framing.NewWriter(g, 8)
		write(t, w, "12345") // three go at once, "45\n" is queued
		synctest.Wait()
		if g.text() != "123" || w.Queued() != 3 {
			t.Errorf("%q written, %d queued", g.text(), w.Queued())
		}
		write(t, w, "abc") // behind the rest, not tried
		close(g.tokens)
		closeWriter(t, w)
		if g.text() != "12345\nabc\n" || g.tried != 1 {
			t.Errorf("%q after %d tries", g.text(), g.tried)
		}
	})
}

func TestWriterDirectError(t *testing.T) {
	boom := errors.New("boom")
	w := framing.NewWriter(&tryGate{gate: open(), err: boom}, 100)
	if err := w.Write(t.Context(), framing.Whole([]byte("x"))); err != boom {
		t.Error(err)
	}
	<-w.Done()
	if err := w.Close(); err != boom {
		t.Error(err)
	}
}
