package telemetry

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpbridge/bridge/mask"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// logOf returns a log in a folder of its own whose files are put aside at max bytes.
func logOf(t *testing.T, max int64, keep int, secrets ...string) *ServerLog {
	t.Helper()
	l := newServerLog(newStore(filepath.Join(t.TempDir(), "logs"), "one", max, keep), mask.New(secrets))
	t.Cleanup(l.Close)
	return l
}

// written closes a log and returns all that is in its files, oldest first.
func written(t *testing.T, l *ServerLog) string {
	t.Helper()
	l.Close()
	return tail(t, l, 1<<30)
}

func tail(t *testing.T, l *ServerLog, n int) string {
	t.Helper()
	var b bytes.Buffer
	if err := l.Tail(n, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var stamp = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z `)

// texts returns the lines of a log without their times; each must have one, or be our own note.
func texts(t *testing.T, log string) []string {
	t.Helper()
	if log != "" && !strings.HasSuffix(log, "\n") {
		t.Errorf("the last line has no end: %q", log[max(0, len(log)-80):])
	}
	var list []string
	for line := range strings.Lines(log) {
		if at := stamp.FindStringIndex(line); at != nil {
			line = line[at[1]:]
		} else if line != gap {
			t.Errorf("line without a time: %.80q", line)
		}
		list = append(list, strings.TrimSuffix(line, "\n"))
	}
	return list
}

func numbered(from, to int) (list []string) {
	for i := from; i <= to; i++ {
		list = append(list, fmt.Sprintf("line %d", i))
	}
	return list
}

// sink is a writer that tests wait for.
type sink struct {
	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{}
}

func newSink() *sink { return &sink{grown: make(chan struct{}, 1)} }

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.grown <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits until text has been written.
func (s *sink) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(patience)
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.grown:
		case <-late:
			t.Fatalf("%q did not come; there is %.2000q", text, s.String())
		}
	}
}

// put writes lines to files at once, without a queue.
func put(t *testing.T, s *store, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if err := s.write([]byte("2026-01-02T03:04:05.678Z " + line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
}

func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
