package seal

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// maxFile is how many bytes a key file may have.
const maxFile = 64 << 10

// emptyWait is how long an empty key file may be about to be filled by another bridge, emptyPoll how often it is looked at.
const (
	emptyWait = time.Second
	emptyPoll = 10 * time.Millisecond
)

var errEmpty = errors.New("it is empty: remove it, and a new one is made")

// LoadRing reads a ring from a file: one key a line as ParseKey takes it, the first seals; empty lines and lines that begin with
// # do not count. If there is no file one is made with a random key, for the owner alone (mode 0600); bridges that start at once
// end with the same key. Where files have modes, one that others than its owner may use is refused. A symbolic link is followed.
func LoadRing(path string) (*Ring, error) {
	raw, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = create(path); err != nil {
			return nil, fmt.Errorf("cannot create key file: %w", err)
		}
		raw, err = readFile(path)
	}
	for end := time.Now().Add(emptyWait); errors.Is(err, errEmpty) && time.Now().Before(end); {
		time.Sleep(emptyPoll)
		raw, err = readFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read key file %s: %w", path, err)
	}
	keys, err := parseKeys(raw)
	if err != nil {
		return nil, fmt.Errorf("cannot use key file %s: %w", path, err)
	}
	return NewRing(keys...)
}

// readFile reads a key file that is safe to use. What is checked is the file that is read.
func readFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() { // to open one may block
		return nil, errors.New("it is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others than its owner may use it (mode %04o): run chmod 600 on it, and replace the keys if others may have seen them", info.Mode().Perm())
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(raw) == 0:
		return nil, errEmpty
	case len(raw) > maxFile:
		return nil, fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return raw, nil
}

func parseKeys(raw []byte) (keys [][32]byte, err error) {
	n := 0
	for line := range bytes.Lines(raw) {
		n++
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' {
			continue
		}
		key, err := ParseKey(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no key in it: put one in, or remove the file and a new one is made")
	}
	return keys, nil
}

// create makes a key file unless there is one by now. It is written under another name first, so that nobody sees half of it.
func create(path string) error {
	var key [keySize]byte
	_, _ = rand.Read(key[:])
	text := "# Keys of mcpbridge, one a line: the first seals, all open. Keep them secret.\n" + hex.EncodeToString(key[:]) + "\n"
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // has mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if err := fill(tmp, text); err != nil {
		return err
	}
	err = os.Link(tmp.Name(), path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return createDirectly(path, text)
}

// createDirectly is for file systems without hard links: the file is empty for a moment, which LoadRing waits for.
func createDirectly(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fill(f, text)
}

// fill writes a file, on the disk too: a key that is lost ends all sessions.
func fill(f *os.File, text string) error {
	_, err := f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}
