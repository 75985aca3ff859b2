package facts

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/session"
)

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "sessions.db") }

// begin opens a file that has to be good.
func begin(t *testing.T, path string) *DB {
	t.Helper()
	db, warning, err := Open(path)
	if err != nil || warning != nil {
		t.Fatalf("cannot open: %v, %v", err, warning)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// again closes the file and opens it anew, as the next run of the bridge does.
func again(t *testing.T, db *DB) *DB {
	t.Helper()
	path := db.bolt.Path()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return begin(t, path)
}

func at(s int64) time.Time { return time.Unix(s, 5) }

// later is the end of a life that goes on.
func later() time.Time { return time.Unix(time.Now().Add(time.Hour).Unix(), 0) }

// What was saved is there at once, and after the file was closed and opened.
func TestSave(t *testing.T) {
	db := begin(t, file(t))
	want := session.Fact{Level: 3, Used: at(10), Running: true, End: later(), Subscriptions: []string{`"file:///a"`, `"b"`}}
	check := func(when string) {
		t.Helper()
		if got, ok := db.Load(uid{1}); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", when, got, ok)
		}
		if _, ok := db.Load(uid{2}); ok {
			t.Errorf("%s: a session nobody saved", when)
		}
	}
	db.Save(uid{1}, want)
	check("at once")
	db = again(t, db)
	check("after a restart")
	want.Level, want.Used = 5, at(11)
	db.Save(uid{1}, want)
	db = again(t, db)
	check("after another")
}

// A session that is buried stays so, whatever is saved about it; an earlier use does not replace a later one, unless the clock was
// wrong then.
func TestSupersedes(t *testing.T) {
	future := time.Now().Add(time.Hour)
	for name, tc := range map[string]struct {
		old, next session.Fact
		replaces  bool
	}{
		"later use":            {session.Fact{Used: at(1)}, session.Fact{Used: at(2)}, true},
		"same use":             {session.Fact{Used: at(1)}, session.Fact{Used: at(1), Level: 1}, true},
		"earlier use":          {session.Fact{Used: at(2)}, session.Fact{Used: at(1)}, false},
		"earlier use, a burst": {session.Fact{Used: future}, session.Fact{Used: at(1)}, true},
		"buried":               {session.Fact{Used: at(2)}, session.Fact{Buried: true, End: later()}, true},
		"saved after that":     {session.Fact{Buried: true, End: later()}, session.Fact{Used: at(2)}, false},
	} {
		for _, onDisk := range []bool{false, true} {
			db := begin(t, file(t))
			put := func(f session.Fact) {
				if !f.Buried {
					db.Save(uid{1}, f)
				} else if err := db.Bury(uid{1}, f.End); err != nil {
					t.Error(err)
				}
			}
			put(tc.old)
			if onDisk {
				db = again(t, db)
			}
			put(tc.next)
			db = again(t, db)
			got, _ := db.Load(uid{1})
			is := got.Buried == tc.next.Buried && (got.Buried || got.Used.Equal(tc.next.Used) && got.Level == tc.next.Level)
			if is != tc.replaces {
				t.Errorf("%s, old one on the disk %v: %+v", name, onDisk, got)
			}
		}
	}
}

// That holds for what is being written just now too.
func TestSaveDuringWriting(t *testing.T) {
	db := &DB{next: newBatch(), writing: newBatch(), wake: make(chan struct{}, 1)}
	db.writing.put(uid{1}, encode(session.Fact{Buried: true, End: later()}))
	db.Save(uid{1}, session.Fact{Used: at(1)})
	if f, ok := db.Load(uid{1}); !ok || !f.Buried {
		t.Errorf("%+v, %v", f, ok)
	}
}

// What is buried is on the disk when Bury returns: a bridge that is killed then does not forget it.
func TestBuryIsDurable(t *testing.T) {
	db := begin(t, file(t))
	end := later()
	if err := db.Bury(uid{1}, end); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(db.bolt.Path())
	if err != nil {
		t.Fatal(err)
	}
	copied := file(t)
	if err := os.WriteFile(copied, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, ok := begin(t, copied).Load(uid{1}); !ok || !f.Buried || !f.End.Equal(end) {
		t.Errorf("in a copy of the file: %+v, %v", f, ok)
	}
}

// Records go when the life of their session is over: at the start and every hour. Those without an end stay.
func TestSweep(t *testing.T) {
	path := file(t)
	synctest.Test(t, func(t *testing.T) {
		db, _, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		lives := map[uid]time.Duration{{1}: 30 * time.Minute, {2}: 90 * time.Minute, {3}: 3 * time.Hour}
		for id, d := range lives {
			db.Save(id, session.Fact{Used: now, End: now.Add(d)})
		}
		if err := db.Bury(uid{4}, time.Time{}); err != nil {
			t.Fatal(err)
		}
		there := func() (n int) {
			for i := range 5 {
				if _, ok := db.Load(uid{byte(i)}); ok {
					n++
				}
			}
			return n
		}
		for _, want := range []int{3, 2} {
			time.Sleep(time.Hour)
			synctest.Wait()
			if got := there(); got != want {
				t.Errorf("%v later there are %d records, want %d", time.Since(now), got, want)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		if db, _, err = Open(path); err != nil {
			t.Fatal(err)
		}
		if got := there(); got != 1 || db.records != 1 {
			t.Errorf("after a start there are %d records, want 1; %d are counted", got, db.records)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// n records are kept; with n+1 those whose sessions end first go, and never one without an end before one with.
func TestMaxRecords(t *testing.T) {
	db := begin(t, file(t))
	db.max = 20
	put := func(i byte, end time.Time) {
		if err := db.Bury(uid{i}, end); err != nil { // one by one: it is written on return
			t.Fatal(err)
		}
	}
	there := func(i byte) bool { _, ok := db.Load(uid{i}); return ok }
	put(1, time.Time{})
	for i := byte(2); i <= 20; i++ {
		put(i, later().Add(time.Duration(i)*time.Second))
	}
	for i := byte(1); i <= 20; i++ {
		if !there(i) {
			t.Fatalf("record %d of n is gone", i)
		}
	}
	put(21, later().Add(time.Minute))
	for i := byte(1); i <= 21; i++ {
		if gone := i == 2 || i == 3; there(i) == gone {
			t.Errorf("after n+1 record %d is there: %v", i, !gone)
		}
	}
	if db.records != 19 {
		t.Errorf("%d records are counted, want 19", db.records)
	}
	for i := byte(1); i <= 21; i++ { // known ones take no room
		put(i, later().Add(2*time.Minute))
	}
	if db = again(t, db); db.records > 20 {
		t.Errorf("%d records", db.records)
	}
}

// What waits for the disk is bounded; a record that is there already can always be replaced by one of its size.
func TestMaxPending(t *testing.T) {
	b := newBatch()
	half := make([]byte, MaxPending/2)
	if !b.put(uid{1}, half) || !b.put(uid{2}, half) {
		t.Fatal("n bytes are refused")
	}
	if b.put(uid{3}, []byte{1}) {
		t.Error("n+1 bytes are taken")
	}
	if !b.put(uid{1}, half[1:]) || !b.put(uid{3}, []byte{1}) {
		t.Error("there is no room although some was made")
	}
}

// A file another bridge uses is an error at once, and is left alone.
func TestLocked(t *testing.T) {
	db := begin(t, file(t))
	start := time.Now()
	_, warning, err := Open(db.bolt.Path())
	if err == nil || warning != nil || !strings.Contains(err.Error(), "another bridge uses "+db.bolt.Path()) {
		t.Errorf("%v, %v", err, warning)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if err := db.Bury(uid{1}, later()); err != nil {
		t.Error(err)
	}
}

// What the system refuses is no reason to move a file.
func TestRefusedBySystem(t *testing.T) {
	for name, path := range map[string]string{"a folder": t.TempDir(), "in no folder": filepath.Join(t.TempDir(), "absent", "x")} {
		if _, warning, err := Open(path); err == nil || warning != nil || !strings.Contains(err.Error(), "cannot open session facts") {
			t.Errorf("%s: %v, %v", name, err, warning)
		}
	}
}

func TestMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes on Windows; run on Linux or macOS")
	}
	path := file(t)
	db := begin(t, path)
	for range 2 {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("mode %v, %v", info.Mode(), err)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		db = again(t, db)
	}
}

// After Close nothing is kept, nothing hangs.
func TestClosed(t *testing.T) {
	db := begin(t, file(t))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	db.Save(uid{1}, session.Fact{Used: at(1)})
	if _, ok := db.Load(uid{1}); ok {
		t.Error("saved after Close")
	}
	if err := db.Bury(uid{1}, later()); err == nil {
		t.Error("buried after Close")
	}
}

// Many write and read at once; nothing is lost.
func TestConcurrent(t *testing.T) {
	db := begin(t, file(t))
	var wg sync.WaitGroup
	for i := range byte(16) {
		wg.Go(func() {
			for n := range 200 {
				db.Save(uid{i}, session.Fact{Level: mcp.Level(i % 8), Used: at(int64(n)), End: later()})
				if f, ok := db.Load(uid{i}); !ok || !f.Used.Equal(at(int64(n))) {
					t.Errorf("session %d, %d: %v, %v", i, n, f.Used, ok)
					return
				}
			}
			if i%2 == 0 {
				if err := db.Bury(uid{i}, later()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	db = again(t, db)
	for i := range byte(16) {
		if f, ok := db.Load(uid{i}); !ok || f.Buried != (i%2 == 0) || !f.Buried && !f.Used.Equal(at(199)) {
			t.Errorf("session %d: %+v, %v", i, f, ok)
		}
	}
}

// The file does not grow beyond MaxFile: records are forgotten, those first whose sessions end first, and new ones are kept.
func TestMaxFile(t *testing.T) {
	const limit = 1 << 20
	path := file(t)
	db := begin(t, path)
	db.bolt.MaxSize, db.bolt.AllocSize = limit, 32<<10
	big := []string{strings.Repeat("x", 10_000)}
	for i := range byte(200) { // twice of what there is room for
		db.Save(uid{i}, session.Fact{Subscriptions: big, Used: at(1), End: later().Add(time.Duration(i) * time.Second)})
		if err := db.Bury(uid{i, 1}, later().Add(time.Hour)); err != nil { // on return both are written
			t.Fatalf("record %d: %v", i, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() > limit {
		t.Errorf("the file has %d bytes, limit %d; %v", info.Size(), limit, err)
	}
	_, first := db.Load(uid{0})
	_, last := db.Load(uid{199})
	if first || !last {
		t.Errorf("the first record is there: %v, the last: %v", first, last)
	}
	n := db.records
	if db = again(t, db); db.records != n {
		t.Errorf("%d records were counted, %d are there", n, db.records)
	}
}
