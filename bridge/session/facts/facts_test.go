package facts

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

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

func TestRecord(t *testing.T) {
	for _, f := range []session.Fact{
		{Level: mcp.NoLevel},
		{Level: 0, Used: at(1), End: at(2)},
		{Level: 7, Used: at(1), Running: true, Subscriptions: []string{`"a"`, `"` + strings.Repeat("x", 300) + `"`}},
		{Level: mcp.NoLevel, Buried: true, End: at(3)},
	} {
		got, ok := decode(encode(f))
		if !ok || !reflect.DeepEqual(got, f) {
			t.Errorf("%+v became %+v, %v", f, got, ok)
		}
	}
	full := encode(session.Fact{Level: 3, Subscriptions: []string{`"ab"`}})
	for n := range full {
		if _, ok := decode(full[:n]); ok && n != fixedSize {
			t.Errorf("a record cut to %d bytes is read", n)
		}
	}
	for i, b := range map[int]byte{0: 2, fixedSize: 5} {
		wrong := append([]byte(nil), full...)
		wrong[i] = b
		if _, ok := decode(wrong); ok {
			t.Errorf("a record with byte %d wrong is read", i)
		}
	}
	full[2] = 200
	if f, ok := decode(full); !ok || f.Level != mcp.NoLevel {
		t.Errorf("a level nobody knows: %+v, %v", f, ok)
	}
}

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

// A disk that takes nothing: Bury says so, and the session is buried all the same while the bridge runs. What could not be written
// is written later.
func TestDiskFails(t *testing.T) {
	path := file(t)
	db := begin(t, path)
	if err := db.Bury(uid{9}, later()); err != nil {
		t.Fatal(err)
	}
	if err := db.bolt.Close(); err != nil { // behind its back
		t.Fatal(err)
	}
	if err := db.Bury(uid{1}, later()); err == nil {
		t.Error("a record that could not be written was reported as durable")
	}
	if f, ok := db.Load(uid{1}); !ok || !f.Buried {
		t.Errorf("%+v, %v", f, ok)
	}
	if err := db.Close(); err == nil {
		t.Error("Close hides that records were lost")
	}
}

// Whatever is done to a file, it opens, or a fresh one does and a warning says where the old one is.
func TestBroken(t *testing.T) {
	source := file(t)
	good := begin(t, source)
	for i := range 200 {
		good.Save(uid{byte(i)}, session.Fact{Used: at(1), End: later(), Subscriptions: []string{strings.Repeat("x", 200)}})
	}
	if err := good.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	zeroed := func(from, to int) []byte {
		b := append([]byte(nil), raw...)
		clear(b[from:to])
		return b
	}
	type damage struct {
		bytes []byte
		warns bool
	}
	cases := map[string]damage{
		"garbage":       {[]byte(strings.Repeat("garbage!", page)), true},
		"few bytes":     {[]byte("x"), true},
		"no meta pages": {zeroed(0, 2*page), true},
		"no data":       {zeroed(2*page, len(raw)), true},
		"empty":         {nil, false},
	}
	for n := page / 2; n < len(raw); n += page / 2 {
		cases[fmt.Sprint("cut to ", n)] = damage{raw[:n], n < 4*page}
	}
	for name, tc := range cases {
		path := file(t)
		if err := os.WriteFile(path, tc.bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		db, warning, err := Open(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if tc.warns && warning == nil {
			t.Errorf("%s: no warning", name)
		}
		if warning != nil {
			aside, _ := filepath.Glob(path + ".broken-*")
			if len(aside) != 1 || !strings.Contains(warning.Error(), aside[0]) {
				t.Errorf("%s: moved to %q, warning %v", name, aside, warning)
			} else if kept, _ := os.ReadFile(aside[0]); string(kept) != string(tc.bytes) {
				t.Errorf("%s: what was moved aside is not what was there", name)
			}
		}
		if err := db.Bury(uid{1}, later()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if db, warning, err = Open(path); err != nil || warning != nil {
			t.Errorf("%s, the second time: %v, %v", name, err, warning)
			continue
		}
		if f, _ := db.Load(uid{1}); !f.Buried {
			t.Errorf("%s: the fresh file keeps nothing", name)
		}
		_ = db.Close()
	}
}

// A record that cannot be read costs that record only.
func TestBrokenRecord(t *testing.T) {
	path := file(t)
	b, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Update(func(tx *bbolt.Tx) error {
		facts, err := tx.CreateBucket(bucket)
		good := encode(session.Fact{Used: at(1), End: later()})
		one, two := uid{1}, uid{2}
		return errors.Join(err, facts.Put(one[:], []byte{99}), facts.Put(two[:], good), facts.Put([]byte("short"), good))
	})
	if err := errors.Join(err, b.Close()); err != nil {
		t.Fatal(err)
	}
	db := begin(t, path)
	if _, ok := db.Load(uid{1}); ok {
		t.Error("a broken record is read")
	}
	if _, ok := db.Load(uid{2}); !ok {
		t.Error("a good record is lost")
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

func FuzzDecode(f *testing.F) {
	f.Add(encode(session.Fact{Level: 3, Used: at(1), End: at(2), Subscriptions: []string{`"a"`}}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		fact, ok := decode(b)
		if !ok {
			return
		}
		if back, ok := decode(encode(fact)); !ok || !reflect.DeepEqual(back, fact) {
			t.Errorf("%+v became %+v", fact, back)
		}
	})
}

// A page whose head has changed on the disk never ends the program, nor does it hang: what can be read is, or a fresh file is begun.
func TestRottenPages(t *testing.T) {
	source := file(t)
	good := begin(t, source)
	for i := range 200 {
		good.Save(uid{byte(i)}, session.Fact{Used: at(1), End: later(), Subscriptions: []string{strings.Repeat("x", 200)}})
	}
	if err := good.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	const head = 16
	for _, with := range []byte{0x00, 0x01, 0x10, 0xff} {
		for page := 0; page < len(raw); page += os.Getpagesize() {
			rotten := append([]byte(nil), raw...)
			copy(rotten[page:page+head], bytes.Repeat([]byte{with}, head))
			path := file(t)
			if err := os.WriteFile(path, rotten, 0o600); err != nil {
				t.Fatal(err)
			}
			db, _, err := Open(path)
			if err != nil {
				t.Fatalf("page at %d, %x: %v", page, with, err)
			}
			for i := range 200 {
				db.Save(uid{byte(i), 1}, session.Fact{Used: at(2), End: later()})
				db.Load(uid{byte(i)})
			}
			_ = db.Bury(uid{1}, later())
			if f, _ := db.Load(uid{1}); !f.Buried {
				t.Errorf("page at %d, %x: nothing is remembered", page, with)
			}
			_ = db.Close()
		}
	}
}

// A file that turns out to be broken while it is used is not used any more: facts are kept in memory.
func TestBrokenLater(t *testing.T) {
	db := begin(t, file(t))
	db.Save(uid{1}, session.Fact{Used: at(1), Level: 2})
	if err := db.use(func() error { panic("page 3 is page 4") }); err == nil || !strings.Contains(err.Error(), "page 3") {
		t.Error(err)
	}
	if err := db.Bury(uid{2}, later()); !errors.Is(err, errBroken) {
		t.Errorf("buried: %v", err)
	}
	if f, _ := db.Load(uid{2}); !f.Buried {
		t.Error("not kept in memory")
	}
	if err := db.Close(); !errors.Is(err, errBroken) {
		t.Errorf("closed: %v", err)
	}
	_ = db.bolt.Close()
}
