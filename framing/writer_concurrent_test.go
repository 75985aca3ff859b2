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

	"mcpbridge/framing"
	"pgregory.net/rapid"
)

// flaky takes short pieces, now and then none, from TryWrite, and checks that nobody writes at the same time.
type flaky struct {
	mu  sync.Mutex
	buf bytes.Buffer
	n   int
	t   *testing.T
}

func (f *flaky) lock() {
	if !f.mu.TryLock() {
		f.t.Error("two writes at the same time")
		f.mu.Lock()
	}
}

func (f *flaky) Write(p []byte) (int, error) {
	f.lock()
	defer f.mu.Unlock()
	return f.buf.Write(p)
}

func (f *flaky) TryWrite(p []byte) (int, error) {
	f.lock()
	defer f.mu.Unlock()
	f.n++
	n := len(p) * (f.n % 4) / 3 // none, a third, two thirds, all
	return f.buf.Write(p[:min(n, len(p))])
}

// Many goroutines: every line whole, none lost, each goroutine's own lines in order.
func TestWriterConcurrent(t *testing.T) {
	const callers, each = 32, 200
	stream := &flaky{t: t}
	w := framing.NewWriter(stream, 20_000)
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			for i := range each {
				size := map[bool]int{true: 70_000, false: (i * 37) % 5000}[i == 100 && c%8 == 0]
				f := framing.Whole(fmt.Appendf(nil, "%d %d\n%s", c, i, strings.Repeat("x", size)))
				if err := w.Write(t.Context(), f); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	closeWriter(t, w)
	next := [callers]int{}
	lines := strings.Split(strings.TrimSuffix(stream.buf.String(), "\n"), "\n")
	for _, line := range lines {
		var c, i int
		if _, err := fmt.Sscanf(line, "%d %d", &c, &i); err != nil || next[c] != i {
			t.Fatalf("line %.30q out of order, want number %d: %v", line, next[c], err)
		}
		next[c]++
		size := (i * 37) % 5000
		if i == 100 && c%8 == 0 {
			size = 70_000
		}
		if strings.Count(line, "x") != size {
			t.Fatalf("line %.30q is torn", line)
		}
	}
	if len(lines) != callers*each {
		t.Errorf("%d lines, want %d", len(lines), callers*each)
	}
}

// Abort in the middle of traffic: every caller comes back, the stream holds whole lines of accepted frames only.
func TestWriterConcurrentAbort(t *testing.T) {
	for range 20 {
		stream := &flaky{t: t}
		w := framing.NewWriter(stream, 1000)
		cause := errors.New("stop")
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for {
					if err := w.Write(t.Context(), framing.Whole([]byte(strings.Repeat("y", 200)))); err != nil {
						if err != cause {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		for w.Queued() == 0 {
			write(t, w, "z")
		}
		w.Abort(cause)
		group.Wait()
		if err := w.Close(); err != cause {
			t.Error(err)
		}
	}
}

// One caller, arbitrary frames, short direct writes, any limit: the stream is the frames in order.
func TestWriterProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := &tryGate{gate: open(), tries: rapid.SliceOfN(rapid.IntRange(0, 5000), 0, 40).Draw(rt, "tries")}
		var stream io.Writer = g
		if rapid.Bool().Draw(rt, "plain") {
			stream = g.gate
		}
		w := framing.NewWriter(stream, rapid.IntRange(0, 200_000).Draw(rt, "limit"))
		var want bytes.Buffer
		for i, size := range rapid.SliceOfN(rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(4090, 4100), rapid.IntRange(65_530, 65_540), rapid.IntRange(1, 150_000)), 0, 30).Draw(rt, "sizes") {
			raw := bytes.Repeat([]byte{byte('A' + i)}, size)
			want.Write(raw)
			want.WriteByte('\n')
			if err := w.Write(context.Background(), framing.Whole(raw)); err != nil {
				rt.Fatal(err)
			}
		}
		if err := w.Close(); err != nil || !bytes.Equal(g.buf.Bytes(), want.Bytes()) {
			rt.Fatalf("%d bytes, want %d: %v", g.buf.Len(), want.Len(), err)
		}
	})
}
