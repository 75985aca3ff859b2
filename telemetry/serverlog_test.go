package telemetry

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/bridge/mask"
)

// Lines get their time and process, without secrets (SEC-09), into a file for the owner alone.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state", "logs")
		l := NewServerLog(dir, "my server", 1, 2, mask.New([]string{"hunter22"}))
		l.Line("12", []byte("hello"))
		time.Sleep(1500 * time.Millisecond)
		l.Line("", []byte("password hunter22\r"))
		l.Line("1\n3", nil)
		l.Close()
		got, err := os.ReadFile(filepath.Join(dir, "my%20server.log"))
		want := "2000-01-01T00:00:00.000Z [12] hello\n2000-01-01T00:00:01.500Z password ***\n2000-01-01T00:00:01.500Z [1\\x0a3] \n"
		if err != nil || string(got) != want {
			t.Errorf("%q, %v", got, err)
		}
		if runtime.GOOS == "windows" {
			return
		}
		for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "my%20server.log"): 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, want)
			}
		}
	})
}

// A file that others may read is taken from them.
func TestModeIsRepaired(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes on Windows")
	}
	l := logOf(t, 1<<20, 1)
	path := filepath.Join(l.files.dir, l.files.base)
	if err := os.MkdirAll(l.files.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("torn"), 0o644); err != nil {
		t.Fatal(err)
	}
	l.Line("", []byte("x"))
	l.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if data, _ := os.ReadFile(path); !strings.HasPrefix(string(data), "torn\n20") {
		t.Errorf("a line joined the torn one before: %q", data)
	}
}

// A secret is hidden wherever a long line is cut, and whatever stands around it.
func TestSecretInCutLine(t *testing.T) {
	const secret = "s3cret-token"
	for _, before := range []int{0, MaxLine - len(secret) - 1, MaxLine - len(secret), MaxLine - len(secret) + 1, MaxLine - 6, MaxLine - 1, MaxLine, MaxLine + 1,
		2*MaxLine - 5, MaxLine - overlap - 3, MaxLine - overlap, 3*MaxLine - 3} {
		for _, after := range []int{0, 1, MaxLine, 3 * MaxLine} {
			l := logOf(t, 1<<20, 1, secret)
			l.Line("p", []byte(strings.Repeat("a", before)+secret+strings.Repeat("b", after)))
			got := strings.Join(texts(t, written(t, l)), "")
			got = strings.ReplaceAll(got, "[p] ", "")
			if got != strings.Repeat("a", before)+"***"+strings.Repeat("b", after) {
				t.Errorf("%d before, %d after: %d bytes, secret shown: %v", before, after, len(got), strings.Contains(got, secret[:6]))
			}
		}
	}
}

// The secret does not show either when a control sequence divides it, or when its own pieces come from procman's cutter.
func TestSecretInDisguise(t *testing.T) {
	l := logOf(t, 1<<20, 1, "s3cret-token", "tab\tbed-secret", strings.Repeat("long", 500))
	l.Line("", []byte("s3cret\x1b[31m-token"))
	l.Line("", []byte("tab\tbed-secret"))
	long := strings.Repeat("x", MaxLine-1000) + strings.Repeat("long", 500)
	l.Line("", []byte(long[:MaxLine]))
	l.Line("", []byte(long[MaxLine:]))
	got := written(t, l)
	if strings.Contains(got, "token") || strings.Contains(got, "bed-secret") || strings.Contains(got, "longlong") || strings.Count(got, "***") != 3 {
		t.Errorf("%.300q ... %q", got, got[max(0, len(got)-300):])
	}
}

// What was held back of a cut line comes though no rest does, and pieces of two processes are not joined.
func TestHeldPiecesCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := logOf(t, 1<<20, 1)
		l.Line("a", []byte(strings.Repeat("A", MaxLine)))
		l.Line("b", []byte("bbb"))
		time.Sleep(2 * holdTime)
		synctest.Wait()
		got := texts(t, tail(t, l, 10))
		want := []string{"[a] " + strings.Repeat("A", MaxLine-overlap), "[b] bbb", "[a] " + strings.Repeat("A", overlap)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// At most maxHeld processes may keep pieces back.
func TestHeldPiecesAreBounded(t *testing.T) {
	for _, tt := range []struct{ processes, held int }{{maxHeld, maxHeld}, {maxHeld + 1, 1}} {
		var j joiner
		for i := range tt.processes {
			j.add(entry{process: strconv.Itoa(i), text: strings.Repeat("x", MaxLine), full: true}, func(time.Time, string, string) {})
		}
		if len(j.held) != tt.held {
			t.Errorf("%d processes: %d held, want %d", tt.processes, len(j.held), tt.held)
		}
	}
}

// The n-th line or byte of a second passes, the next does not; how much was left out is said once the second is over, though
// the server is silent from then on.
func TestFlood(t *testing.T) {
	for _, tt := range []struct {
		name         string
		lines, bytes int // what is written
		passed, left int
	}{
		{"lines n", FloodLines, 1, FloodLines, 0},
		{"lines n+1", FloodLines + 1, 1, FloodLines, 1},
		{"bytes n", FloodBytes / 1024, 1024, FloodBytes / 1024, 0},
		{"bytes n+1", FloodBytes/1024 + 1, 1024, FloodBytes / 1024, 1},
		{"bytes n+3", FloodBytes/1024 + 3, 1024, FloodBytes / 1024, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := logOf(t, 10<<20, 1)
				for range tt.lines {
					l.Line("", []byte(strings.Repeat("x", tt.bytes)))
				}
				synctest.Wait()
				if got := texts(t, tail(t, l, 10_000)); len(got) != tt.passed {
					t.Fatalf("%d lines passed, want %d", len(got), tt.passed)
				}
				time.Sleep(time.Second + 2*holdTime)
				synctest.Wait()
				got := texts(t, tail(t, l, 10_000))[tt.passed:]
				want := []string{}
				if tt.left > 0 {
					want = []string{fmt.Sprintf("mcpbridge: %d lines of %d bytes left out: the server wrote more than 2000 lines or 524288 bytes in a second", tt.left, tt.left*tt.bytes)}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				l.Line("", []byte("calm again"))
				if got := texts(t, written(t, l)); got[len(got)-1] != "calm again" || len(got) != tt.passed+len(want)+1 {
					t.Errorf("%d lines, the last is %q", len(got), got[len(got)-1])
				}
			})
		})
	}
}

// A log that is closed in the middle of a flood says so too.
func TestFloodAtTheEnd(t *testing.T) {
	l := logOf(t, 10<<20, 1)
	for range FloodLines + 7 {
		l.Line("", []byte("x"))
	}
	if got := texts(t, written(t, l)); !strings.HasPrefix(got[len(got)-1], "mcpbridge: 7 lines of 7 bytes left out") {
		t.Errorf("%.300q", got[len(got)-1])
	}
}

// A line of a megabyte costs no more than the flood limit.
func TestHugeLine(t *testing.T) {
	l := logOf(t, 10<<20, 1)
	l.Line("", []byte(strings.Repeat("x", 1<<20)))
	l.Line("", []byte("lost with it"))
	got := written(t, l)
	lines := texts(t, got)
	if n := strings.Count(got, "x"); n != FloodBytes {
		t.Errorf("%d bytes of it were written, want %d", n, FloodBytes)
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, fmt.Sprintf("mcpbridge: 65 lines of %d bytes left out", 1<<20-FloodBytes+12)) {
		t.Errorf("%.300q", last)
	}
	for _, line := range lines {
		if len(line) > MaxLine+overlap {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

// While the disk takes nothing, QueueBytes wait and the rest is counted; Line returns all the same.
func TestQueueIsBounded(t *testing.T) {
	for _, extra := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			l := logOf(t, 10<<20, 1)
			l.begun = true // nobody takes anything
			const size = 1024 - lineCost
			for i := range QueueBytes/1024 + extra {
				if i%200 == 0 {
					time.Sleep(time.Second)
				}
				l.Line("", []byte(strings.Repeat("x", size)))
			}
			if l.cost != QueueBytes || l.late != extra {
				t.Errorf("%d bytes and %d late, want %d and %d", l.cost, l.late, QueueBytes, extra)
			}
			go l.run()
			got := texts(t, written(t, l))
			if len(got) != QueueBytes/1024+extra {
				t.Errorf("%d lines", len(got))
			}
			if last := got[len(got)-1]; extra > 0 && last != "mcpbridge: 1 lines left out: the disk is too slow for them" {
				t.Errorf("%.300q", last)
			}
		})
	}
}

// A log that cannot be written says so when it is read, and how much is missing once it can be written again.
func TestDiskFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := logOf(t, 1<<20, 1)
		if err := os.WriteFile(l.files.dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			l.Line("", []byte("lost"))
			synctest.Wait()
		}
		if err := l.Tail(10, newSink()); err == nil || !strings.Contains(err.Error(), "cannot write log: mkdir ") && !strings.Contains(err.Error(), "not a directory") {
			t.Errorf("%v", err)
		}
		if err := os.Remove(l.files.dir); err != nil {
			t.Fatal(err)
		}
		l.Line("", []byte("back"))
		got := texts(t, written(t, l))
		if len(got) != 2 || !strings.HasPrefix(got[0], "mcpbridge: 3 lines left out: cannot write log: ") || got[1] != "back" {
			t.Errorf("%q", got)
		}
	})
}

func TestClose(t *testing.T) {
	l := logOf(t, 1<<20, 1)
	l.Close()
	l.Line("", []byte("too late"))
	l.Close()
	if _, err := os.Stat(l.files.dir); !os.IsNotExist(err) {
		t.Errorf("a log nothing was written to left something: %v", err)
	}
	l = logOf(t, 1<<20, 1)
	l.Line("", []byte("in time"))
	l.Close()
	l.Line("", []byte("too late"))
	if got := texts(t, written(t, l)); !slices.Equal(got, []string{"in time"}) {
		t.Errorf("%q", got)
	}
}

// Many processes at once: each line once, those of one process in order.
func TestConcurrent(t *testing.T) {
	l := logOf(t, 32<<10, 1000)
	var wg sync.WaitGroup
	for p := range 8 {
		wg.Go(func() {
			for i := range 200 {
				l.Line(strconv.Itoa(p), fmt.Appendf(nil, "line %d", i))
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			_ = l.Tail(50, newSink())
		}
	})
	wg.Wait()
	next := map[string]int{}
	for _, line := range texts(t, written(t, l)) {
		process, text, _ := strings.Cut(line, " ")
		if text != fmt.Sprintf("line %d", next[process]) {
			t.Fatalf("%s: %q, want line %d", process, text, next[process])
		}
		next[process]++
	}
	if len(next) != 8 || next["[7]"] != 200 {
		t.Errorf("%v", next)
	}
}
