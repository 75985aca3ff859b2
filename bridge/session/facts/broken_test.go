package facts

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"mcpbridge/bridge/session"
)

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
