package framing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"mcpbridge/framing"
)

// gate is a stream whose Write blocks until a token comes; what was written is kept.
type gate struct {
	tokens chan error // nil lets one Write through, an error fails it; closed lets all through

	mu     sync.Mutex
	buf    bytes.Buffer
	writes []int
}

func newGate() *gate { return &gate{tokens: make(chan error)} }

func (g *gate) Write(p []byte) (int, error) {
	if err := <-g.tokens; err != nil {
		return 0, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes = append(g.writes, len(p))
	return g.buf.Write(p)
}

func (g *gate) text() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf.String()
}

// open is a stream that takes everything.
func open() *gate {
	g := newGate()
	close(g.tokens)
	return g
}

// tryGate can take bytes without blocking too: sizes says how many each TryWrite takes, at the end none.
type tryGate struct {
	*gate
	tries []int
	err   error
	tried int
}

func (g *tryGate) TryWrite(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tried++
	n := 0
	if len(g.tries) > 0 {
		n, g.tries = min(g.tries[0], len(p)), g.tries[1:]
	}
	g.buf.Write(p[:n])
	return n, g.err
}

func write(t *testing.T, w *framing.Writer, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if err := w.Write(t.Context(), framing.Whole([]byte(s))); err != nil {
			t.Fatalf("Write(%.50q): %v", s, err)
		}
	}
}

func closeWriter(t *testing.T, w *framing.Writer) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	select {
	case <-w.Done():
	default:
		t.Error("Done is open after Close")
	}
}

func TestWriterLines(t *testing.T) {
	large := `{"x":"` + strings.Repeat("é", 40_000) + `"}`
	tests := map[string]string{
		`{"a":1}`:                      `{"a":1}`,
		"{\r\n  \"a\": 1,\n\"b\":2\r}": `{    "a": 1, "b":2 }`, // FRM-04
		`{"a":"\n\r"}`:                 `{"a":"\n\r"}`,
		"{\n" + large[1:]:              "{ " + large[1:],
		"\n\r" + large + "\r\n":        "  " + large + "  ",
		"":                             "", // nothing, not even a line end: FRM-05
	}
	for text, want := range tests {
		if want != "" {
			want += "\n"
		}
		for name, stream := range map[string]interface {
			io.Writer
			text() string
		}{"plain": open(), "direct": &tryGate{gate: open(), tries: []int{1 << 20}}} {
			w := framing.NewWriter(stream, 1<<20)
			raw := []byte(text)
			write(t, w, text)
			if err := w.Write(t.Context(), framing.Whole(raw)); err != nil {
				t.Fatal(err)
			}
			closeWriter(t, w)
			if got := stream.text(); got != want+want {
				t.Errorf("%s %.40q: got %.40q (%d bytes), want %d", name, text, got, len(got), 2*len(want))
			}
			if string(raw) != text {
				t.Errorf("the frame's memory was changed")
			}
		}
	}
}

// Frames in several parts, with line breaks in large and small parts.
func TestWriterParts(t *testing.T) {
	raw := []byte("[\n" + strings.Repeat(`"0123456789",`, 20_000) + "\n0]")
	f := framing.Rewrite(raw, []framing.Edit{at(5, 6, "A\n"), at(100_000, 100_001, "B"), at(uint32(len(raw)-2), uint32(len(raw)-1), "\r1")})
	s := open()
	w := framing.NewWriter(s, 10)
	if err := w.Write(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	closeWriter(t, w)
	want := strings.NewReplacer("\n", " ", "\r", " ").Replace(string(f.Bytes())) + "\n"
	if s.text() != want {
		t.Error("wrong bytes")
	}
}

// The queue takes limit bytes and not one more, whatever is being written counts (FRM rule: nothing unbounded).
func TestWriterLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := framing.NewWriter(g, 20)
		write(t, w, "123456789") // 10 with its line end; the goroutine takes it and blocks
		synctest.Wait()
		write(t, w, "abcdefghi") // 20: still within
		if n := w.Queued(); n != 20 {
			t.Errorf("%d bytes queued, want 20", n)
		}
		results := make(chan error, 2)
		for _, s := range []string{"x", "y"} {
			go func() { results <- w.Write(t.Context(), framing.Whole([]byte(s))) }()
			synctest.Wait()
		}
		if len(results) != 0 {
			t.Fatalf("Write beyond the limit returned: %v", <-results)
		}
		g.tokens <- nil
		synctest.Wait()
		if len(results) != 2 {
			t.Fatalf("%d of 2 blocked writes returned when room was made", len(results))
		}
		if err := errors.Join(<-results, <-results); err != nil {
			t.Error(err)
		}
		close(g.tokens)
		closeWriter(t, w)
		if got, want := g.text(), "123456789\nabcdefghi\nx\ny\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if w.Queued() != 0 {
			t.Errorf("%d bytes queued after Close", w.Queued())
		}
	})
}

// n and n+1 of one further frame.
func TestWriterLimitExact(t *testing.T) {
	for _, extra := range []int{9, 10} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate()
			w := framing.NewWriter(g, 20)
			write(t, w, "123456789")
			ctx, cancel := context.WithCancel(t.Context())
			returned := false
			go func() {
				err := w.Write(ctx, framing.Whole(bytes.Repeat([]byte("z"), extra)))
				returned = true
				if (err != nil) != (extra == 10) {
					t.Errorf("%d more: %v", extra, err)
				}
			}()
			synctest.Wait()
			if returned != (extra == 9) {
				t.Errorf("%d more: returned %v", extra, returned)
			}
			cancel()
			synctest.Wait()
			close(g.tokens)
			closeWriter(t, w)
		})
	}
}

func TestWriterFrameAboveLimit(t *testing.T) {
	s := open()
	w := framing.NewWriter(s, 4)
	for range 3 {
		write(t, w, "123456789", strings.Repeat("L", 100_000))
	}
	closeWriter(t, w)
	if got := s.text(); got != strings.Repeat("123456789\n"+strings.Repeat("L", 100_000)+"\n", 3) {
		t.Error("wrong bytes")
	}
}

func TestWriterContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := framing.NewWriter(g, 5)
		write(t, w, "first")
		ctx, cancel := context.WithCancel(t.Context())
		var errs [2]error
		go func() { errs[0] = w.Write(ctx, framing.Whole([]byte("given up"))) }()
		synctest.Wait()
		go func() { errs[1] = w.Write(t.Context(), framing.Whole([]byte("kept"))) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if errs[0] != context.Canceled {
			t.Errorf("Write with an ended context: %v", errs[0])
		}
		close(g.tokens)
		synctest.Wait()
		closeWriter(t, w)
		if got := g.text(); errs[1] != nil || got != "first\nkept\n" {
			t.Errorf("got %q, %v", got, errs[1])
		}
	})
}

// When the first in line gives up, the next may fit.
func TestWriterContextFreesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := framing.NewWriter(g, 20)
		write(t, w, "123456789")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = w.Write(ctx, framing.Whole(bytes.Repeat([]byte("z"), 15))) }()
		synctest.Wait()
		done := false
		go func() { write(t, w, "small"); done = true }()
		synctest.Wait()
		if done {
			t.Error("a later frame overtook one that waits")
		}
		cancel()
		synctest.Wait()
		if !done {
			t.Error("the next frame fits and still waits")
		}
		close(g.tokens)
		closeWriter(t, w)
	})
}

func TestWriterAbort(t *testing.T) {
	for name, cause := range map[string]error{"cause": errors.New("child is gone"), "no cause": nil} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate()
			w := framing.NewWriter(g, 5)
			write(t, w, "stuck")
			synctest.Wait()
			var blocked error
			go func() { blocked = w.Write(t.Context(), framing.Whole([]byte("waits"))) }()
			synctest.Wait()
			w.Abort(cause)
			synctest.Wait()
			err := w.Write(t.Context(), framing.Whole([]byte("later")))
			if blocked == nil || err == nil || cause != nil && (blocked != cause || err != cause) {
				t.Errorf("%s: blocked %v, later %v", name, blocked, err)
			}
			if w.Queued() != 0 {
				t.Errorf("%d bytes queued after Abort", w.Queued())
			}
			select {
			case <-w.Done():
				t.Error("Done before the stream's Write has returned")
			default:
			}
			g.tokens <- nil // the stream's Write returns at last
			<-w.Done()
			if got := g.text(); got != "stuck\n" {
				t.Errorf("written after Abort: %q", got)
			}
			if err := w.Close(); err == nil || cause != nil && err != cause {
				t.Errorf("Close after Abort: %v", err)
			}
		})
	}
}

func TestWriterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := framing.NewWriter(g, 5)
		write(t, w, "queued")
		var blocked error
		go func() { blocked = w.Write(t.Context(), framing.Whole([]byte("waits"))) }()
		synctest.Wait()
		closed := false
		go func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			closed = true
		}()
		synctest.Wait()
		if blocked != framing.ErrWriterClosed || closed {
			t.Errorf("blocked write %v, closed %v before the queue was written", blocked, closed)
		}
		if err := w.Write(t.Context(), framing.Whole([]byte("late"))); err != framing.ErrWriterClosed {
			t.Error(err)
		}
		close(g.tokens)
		synctest.Wait()
		if !closed || g.text() != "queued\n" {
			t.Errorf("closed %v, %q", closed, g.text())
		}
		closeWriter(t, w) // a second time
	})
}

func TestWriterStreamError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		g := newGate()
		w := framing.NewWriter(g, 10)
		write(t, w, "1234567")
		var blocked error
		go func() { blocked = w.Write(t.Context(), framing.Whole([]byte("waits"))) }()
		synctest.Wait()
		g.tokens <- boom
		<-w.Done()
		synctest.Wait()
		if err := w.Write(t.Context(), framing.Whole([]byte("x"))); err != boom || blocked != boom {
			t.Errorf("later %v, blocked %v", err, blocked)
		}
		if err := w.Close(); err != boom {
			t.Error(err)
		}
	})
	w := framing.NewWriter(&brokenWriter{room: 3}, 10) // a short write without an error
	write(t, w, "1234567")
	if <-w.Done(); w.Close() != io.ErrShortWrite {
		t.Error(w.Close())
	}
}

// Small frames that pile up behind a write leave in one, up to 256 KiB.
func TestWriterCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := framing.NewWriter(g, 10<<20)
		write(t, w, "first")
		synctest.Wait()
		line := strings.Repeat("x", 1023)
		for range 600 {
			write(t, w, line)
		}
		close(g.tokens)
		closeWriter(t, w)
		if fmt.Sprint(g.writes) != fmt.Sprint([]int{6, 256 << 10, 256 << 10, 88 << 10}) {
			t.Errorf("writes of %v bytes", g.writes)
		}
	})
}

// From 64 KiB on a frame is written from its own memory.
func TestWriterDoesNotCopyLargeFrames(t *testing.T) {
	for _, size := range []int{64<<10 - 1, 64 << 10} {
		raw := bytes.Repeat([]byte("x"), size)
		var direct bool
		w := framing.NewWriter(writerFunc(func(p []byte) (int, error) {
			direct = direct || &p[0] == &raw[0]
			return len(p), nil
		}), 1<<20)
		if err := w.Write(t.Context(), framing.Whole(raw)); err != nil {
			t.Fatal(err)
		}
		closeWriter(t, w)
		if direct != (size >= 64<<10) {
			t.Errorf("%d bytes: written from its own memory: %v", size, direct)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
