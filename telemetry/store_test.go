package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lineSize is what put writes for "line N" of one digit.
const lineSize = int64(len("2026-01-02T03:04:05.678Z line 1\n"))

func storeOf(t *testing.T, max int64, keep int) *store {
	t.Helper()
	s := newStore(t.TempDir(), "one", max, keep)
	t.Cleanup(s.close)
	return s
}

// A file is put aside by the line that would not fit, and as many stay as may.
func TestRotation(t *testing.T) {
	for _, tt := range []struct {
		name       string
		max        int64
		keep, line int
		want       []string
	}{
		{"full", 3 * lineSize, 2, 3, []string{"one.log"}},
		{"one more", 3 * lineSize, 2, 4, []string{"one.log", "one.log.1"}},
		{"two aside", 3 * lineSize, 2, 9, []string{"one.log", "one.log.1", "one.log.2"}},
		{"three would be aside", lineSize, 2, 4, []string{"one.log", "one.log.2", "one.log.3"}},
		{"none is kept", lineSize, 0, 4, []string{"one.log"}},
		{"a line longer than a file", lineSize - 1, 1, 2, []string{"one.log", "one.log.1"}},
	} {
		s := storeOf(t, tt.max, tt.keep)
		put(t, s, numbered(1, tt.line)...)
		if got := filesIn(t, s.dir); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A file that cannot be put aside grows to twice its size, then takes no more until it can be.
func TestRenameFails(t *testing.T) {
	s := storeOf(t, 2*lineSize, 2)
	stuck := errors.New("somebody has it open")
	s.rename = func(string, string) error { return stuck }
	put(t, s, numbered(1, 4)...)
	if err := s.write([]byte("line 5\n")); !errors.Is(err, stuck) {
		t.Errorf("%v", err)
	}
	s.rename = os.Rename
	put(t, s, "line 6")
	var b bytes.Buffer
	if err := s.tail(10, &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(numbered(1, 4), "line 6"), texts(t, b.String())); diff != "" {
		t.Error(diff)
	}
	if got := filesIn(t, s.dir); !slices.Equal(got, []string{"one.log", "one.log.1"}) {
		t.Errorf("%q", got)
	}
}

// A log goes on where the run before stopped, and leaves files alone that only look like its own.
func TestSecondRun(t *testing.T) {
	s := storeOf(t, lineSize, 2)
	put(t, s, numbered(1, 3)...)
	s.close()
	others := []string{"one.log.01", "one.log.x", "one.log.-1", "one.log.1.log", "one-2026-01-02T03-04-05.678.log", "onetwo.log.1"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(s.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := newStore(s.dir, "one", lineSize, 2)
	defer again.close()
	put(t, again, numbered(4, 5)...)
	want := append(others, "one.log", "one.log.3", "one.log.4")
	slices.Sort(want)
	if got := filesIn(t, s.dir); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The last n lines, whatever file they are in.
func TestTail(t *testing.T) {
	for _, perFile := range []int64{1, 2, 3, 7, 100} {
		s := storeOf(t, perFile*lineSize, 100)
		put(t, s, numbered(1, 7)...)
		for n := range 10 {
			var b bytes.Buffer
			if err := s.tail(n, &b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(numbered(max(1, 8-n), 7), texts(t, b.String())); diff != "" {
				t.Errorf("%d a file, last %d: %s", perFile, n, diff)
			}
		}
	}
}

// Lines as long as they get, and more than is read at once.
func TestTailOfLongLines(t *testing.T) {
	s := storeOf(t, 1<<20, 10)
	for i := range 40 {
		put(t, s, fmt.Sprint(i)+strings.Repeat("x", MaxLine))
	}
	for _, n := range []int{1, 3, 4, 5, 39, 40, 41} {
		var b bytes.Buffer
		if err := s.tail(n, &b); err != nil {
			t.Fatal(err)
		}
		if got := texts(t, b.String()); len(got) != min(n, 40) || !strings.HasPrefix(got[0], fmt.Sprint(40-min(n, 40))+"x") {
			t.Errorf("last %d: %d lines from %.10q on", n, len(got), got[0])
		}
	}
}

// What is written while a slow reader reads the tail does not belong to it, though the file is put aside meanwhile.
func TestTailEnds(t *testing.T) {
	s := storeOf(t, 3*lineSize, 10)
	put(t, s, numbered(1, 5)...)
	var b bytes.Buffer
	w := writerFunc(func(p []byte) (int, error) {
		put(t, s, numbered(6, 9)...)
		return b.Write(p)
	})
	if err := s.tail(100, w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(numbered(1, 5), texts(t, b.String())); diff != "" {
		t.Error(diff)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestReaderOfNothing(t *testing.T) {
	r := OpenServerLog(filepath.Join(t.TempDir(), "none"), "one")
	if err := r.Tail(10, io.Discard); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	l := logOf(t, 1<<20, 1)
	if got := tail(t, l, 10); got != "" {
		t.Errorf("%q", got)
	}
}

// follow starts a follower, and returns what it writes to and how it ends.
func follow(t *testing.T, ctx context.Context, f interface {
	Follow(context.Context, int, io.Writer) error
}, n int) (*sink, <-chan error) {
	t.Helper()
	out, end := newSink(), make(chan error, 1)
	go func() { end <- f.Follow(ctx, n, out) }()
	return out, end
}

// Each line comes once and in order, however often the log is rotated meanwhile.
func TestFollowAcrossRotation(t *testing.T) {
	for _, keep := range []int{0, 1000} {
		l := logOf(t, 5*lineSize, keep)
		put(t, l.files, numbered(1, 3)...)
		out, end := follow(t, t.Context(), l, 2)
		out.await(t, "line 3\n")
		for i := 4; i <= 300; i++ {
			put(t, l.files, fmt.Sprintf("line %d", i))
			if keep == 0 { // all has to be read before it goes
				out.await(t, fmt.Sprintf("line %d\n", i))
			}
		}
		out.await(t, "line 300\n")
		if diff := cmp.Diff(numbered(2, 300), texts(t, out.String())); diff != "" {
			t.Error(diff)
		}
		l.Close()
		if err := <-end; err != nil {
			t.Error(err)
		}
	}
}

// A follower ends with its context, also while it waits.
func TestFollowEnds(t *testing.T) {
	l := logOf(t, 1<<20, 1)
	ctx, stop := context.WithCancel(t.Context())
	out, end := follow(t, ctx, l, 10)
	l.Line("", []byte("first"))
	out.await(t, "first\n")
	stop()
	if err := <-end; err != nil {
		t.Error(err)
	}
	broken := errors.New("broken")
	if err := l.Follow(t.Context(), 1, writerFunc(func([]byte) (int, error) { return 0, broken })); err != broken {
		t.Errorf("%v", err)
	}
}

// A follower that takes nothing holds nobody up, keeps no file open, and is told of what it missed.
func TestSlowFollower(t *testing.T) {
	l := logOf(t, 5*lineSize, 2)
	put(t, l.files, "line 1")
	reached, release := make(chan struct{}), make(chan struct{})
	wait := sync.OnceFunc(func() { close(reached); <-release })
	out, end := newSink(), make(chan error, 1)
	go func() {
		end <- l.Follow(t.Context(), 1, writerFunc(func(p []byte) (int, error) { wait(); return out.Write(p) }))
	}()
	<-reached
	put(t, l.files, numbered(2, 99)...)
	close(release)
	out.await(t, "line 99\n")
	got := texts(t, out.String())
	if got[0] != "line 1" || got[1]+"\n" != gap {
		t.Fatalf("%q", got)
	}
	var first int
	if _, _ = fmt.Sscanf(got[2], "line %d", &first); first > 99-2*4 || first < 99-3*5 {
		t.Errorf("goes on with %q, not with the oldest line there is", got[2])
	}
	if diff := cmp.Diff(numbered(first, 99), got[2:]); diff != "" {
		t.Error(diff)
	}
	l.Close()
	if err := <-end; err != nil {
		t.Error(err)
	}
}

// Two logs of one server, as after a reload, lose nothing of each other.
func TestTwoLogsOfOneServer(t *testing.T) {
	a := storeOf(t, 5*lineSize, 1000)
	b := newStore(a.dir, "one", 5*lineSize, 1000)
	defer b.close()
	out, end := follow(t, t.Context(), &Reader{a}, 0)
	for i := 1; i <= 100; i++ {
		put(t, a, fmt.Sprintf("line %d", 2*i-1))
		put(t, b, fmt.Sprintf("line %d", 2*i))
	}
	var all bytes.Buffer
	if err := a.tail(1000, &all); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(numbered(1, 200), texts(t, all.String())); diff != "" {
		t.Error(diff)
	}
	out.await(t, "line 200\n")
	a.close()
	if err := <-end; err != nil {
		t.Error(err)
	}
}

// What another program writes is followed too, from before there is a file.
func TestReaderFollows(t *testing.T) {
	s := storeOf(t, 3*lineSize, 100)
	ctx, stop := context.WithCancel(t.Context())
	out, end := follow(t, ctx, OpenServerLog(s.dir, "one"), 5)
	for i := 1; i <= 20; i++ {
		put(t, s, fmt.Sprintf("line %d", i))
		if i%5 == 1 {
			out.await(t, fmt.Sprintf("line %d\n", i))
		}
	}
	out.await(t, "line 20\n")
	if diff := cmp.Diff(numbered(1, 20), texts(t, out.String())); diff != "" {
		t.Error(diff)
	}
	stop()
	if err := <-end; err != nil {
		t.Error(err)
	}
}

// Somebody empties the file: what comes then is shown.
func TestEmptiedFile(t *testing.T) {
	s := storeOf(t, 1<<20, 1)
	put(t, s, numbered(1, 5)...)
	out, end := follow(t, t.Context(), &Reader{s}, 5)
	out.await(t, "line 5\n")
	if err := os.Truncate(filepath.Join(s.dir, s.base), 0); err != nil {
		t.Fatal(err)
	}
	put(t, s, "line 6")
	out.await(t, "line 6\n")
	s.close()
	if err := <-end; err != nil {
		t.Error(err)
	}
}
