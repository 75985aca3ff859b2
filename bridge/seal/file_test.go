package seal_test

import (
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"mcpbridge/bridge/seal"
)

func TestParseKey(t *testing.T) {
	k := key(0xfb) // has + and / in base64, - and _ in base64url
	for _, text := range []string{
		hex.EncodeToString(k[:]), strings.ToUpper(hex.EncodeToString(k[:])),
		base64.StdEncoding.EncodeToString(k[:]), base64.RawStdEncoding.EncodeToString(k[:]),
		base64.URLEncoding.EncodeToString(k[:]), base64.RawURLEncoding.EncodeToString(k[:]),
	} {
		if got, err := seal.ParseKey(text); err != nil || got != k {
			t.Errorf("%q: %x, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "secret", strings.Repeat("0", 63), strings.Repeat("0", 65), strings.Repeat("g", 64), " " + hex.EncodeToString(k[:]),
		base64.StdEncoding.EncodeToString(k[:31]), base64.StdEncoding.EncodeToString(append(k[:], 0)), base64.StdEncoding.EncodeToString(k[:]) + "=",
		strings.Repeat("A", 42) + "B", // bits beyond the 32 bytes
		strings.Repeat("+", 22) + strings.Repeat("-", 20) + "8", strings.Repeat("A", 42) + "\n", hex.EncodeToString(k[:]) + "\n",
	} {
		got, err := seal.ParseKey(text)
		if err == nil || got != [32]byte{} {
			t.Errorf("%q is taken for a key", text)
		} else if text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("the error shows what was given: %v", err)
		}
	}
}

// opens reports whether one ring opens what another sealed.
func opens(by, of *seal.Ring) bool {
	_, ok := by.Box("a").Open(of.Box("a").Seal([]byte("x"), nil), nil)
	return ok
}

func load(t *testing.T, path string) *seal.Ring {
	t.Helper()
	r, err := seal.LoadRing(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A file is made when there is none, for its owner alone, and is the same the next time.
func TestLoadRingCreates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	first := load(t, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o", info.Mode().Perm())
	}
	if !opens(load(t, path), first) {
		t.Error("another key the second time")
	}
	if opens(load(t, filepath.Join(t.TempDir(), "keys")), first) {
		t.Error("the same key in another file")
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("%d files are left, want the key file alone", len(left))
	}
}

// Bridges that start at once end with the same key.
func TestLoadRingAtOnce(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "keys")
		rings := make([]*seal.Ring, 8)
		var wg sync.WaitGroup
		for i := range rings {
			wg.Go(func() {
				r, err := seal.LoadRing(path)
				if err != nil {
					t.Error(err)
				}
				rings[i] = r
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		for _, r := range rings[1:] {
			if !opens(r, rings[0]) {
				t.Fatal("two bridges have different keys")
			}
		}
	}
}

func write(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// Comments and empty lines do not count; the first key seals.
func TestLoadRingLines(t *testing.T) {
	k1, k2 := key(1), key(2)
	path := write(t, "# keys\r\n\n  "+hex.EncodeToString(k2[:])+" \r\n#"+strings.Repeat("0", 64)+"\n"+base64.StdEncoding.EncodeToString(k1[:]), 0o600)
	r := load(t, path)
	if !opens(ring(t, k2), r) || opens(ring(t, k1), r) {
		t.Error("the first key does not seal")
	}
	if !opens(r, ring(t, k1)) {
		t.Error("the second key does not open")
	}
}

// What cannot be used is refused with what to do about it, and never shows a key.
func TestLoadRingRefuses(t *testing.T) {
	k := key(7)
	good := hex.EncodeToString(k[:])
	for name, tc := range map[string]struct{ text, says string }{
		"comments only": {"# nothing\n", "there is no key in it"},
		"empty":         {"", "remove it"},
		"bad line":      {good + "\n" + good[:60] + "\n", "line 2"},
		"n+1 bytes":     {good + "\n#" + strings.Repeat("x", 64<<10-len(good)-1), "larger than 65536 bytes"},
		"twice":         {good + "\n" + good, "keys 1 and 2 are the same"},
	} {
		_, err := seal.LoadRing(write(t, tc.text, 0o600))
		if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), good[:60]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	load(t, write(t, good+"\n#"+strings.Repeat("x", 64<<10-len(good)-2), 0o600)) // n bytes
	if _, err := seal.LoadRing(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := seal.LoadRing(filepath.Join(t.TempDir(), "absent", "keys")); err == nil {
		t.Error("a key file in a folder that is not there")
	}
}

// A key that others can read is none (SEC-09). A symbolic link does not matter, the file behind it does.
func TestLoadRingModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes on Windows; run on Linux or macOS")
	}
	k := key(7)
	for mode, fine := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o620: false, 0o601: false} {
		path := write(t, hex.EncodeToString(k[:]), mode)
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{path, link} {
			if _, err := seal.LoadRing(p); (err == nil) != fine || err != nil && !strings.Contains(err.Error(), "chmod 600") {
				t.Errorf("mode %o: %v", mode, err)
			}
		}
	}
}

// A file another bridge is about to fill is waited for.
func TestLoadRingWaits(t *testing.T) {
	k := key(7)
	path := write(t, "", 0o600)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := os.WriteFile(path, []byte(hex.EncodeToString(k[:])), 0o600); err != nil {
			t.Error(err)
		}
	})
	r, err := seal.LoadRing(path)
	wg.Wait()
	if err != nil || !opens(ring(t, k), r) {
		t.Errorf("not waited for: %v", err)
	}
}
