package telemetry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// store is the files of one log.
type store struct {
	dir, base string
	max       int64 // bytes at which a file is put aside
	keep      int   // files put aside that stay
	rename    func(from, to string) error

	mu      sync.Mutex
	file    *os.File // being written, nil until there is something to write
	size    int64    // of file
	torn    bool     // file ends in the middle of a line
	number  int      // under which the newest file is put aside, 0 if it is not known
	ended   place    // end of the file put aside last
	changed chan struct{}
	closed  bool
}

func newStore(dir, server string, max int64, keep int) *store {
	return &store{dir: dir, base: fileName(server), max: max, keep: keep, rename: os.Rename, changed: make(chan struct{})}
}

// path is where the file with a number is. s.mu is held.
func (s *store) path(number int) string {
	path := filepath.Join(s.dir, s.base)
	if number == s.number {
		return path
	}
	return path + "." + strconv.Itoa(number)
}

// write appends whole lines.
func (s *store) write(lines []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.prepare(int64(len(lines))); err != nil {
		return fmt.Errorf("cannot write log: %w", err)
	}
	if s.torn {
		lines = append([]byte("\n"), lines...)
	}
	n, err := s.file.Write(lines)
	s.size += int64(n)
	s.torn = n > 0 && lines[n-1] != '\n' || n == 0 && s.torn
	close(s.changed)
	s.changed = make(chan struct{})
	if err != nil {
		return fmt.Errorf("cannot write log: %w", err)
	}
	return nil
}

// prepare sees to it that there is a file with room for n bytes.
func (s *store) prepare(n int64) error {
	if s.file != nil && !s.stillThere() {
		_ = s.file.Close()
		s.file = nil
	}
	if s.file == nil {
		if err := s.open(); err != nil {
			return err
		}
	}
	if s.size == 0 || s.size+n <= s.max {
		return nil
	}
	err := s.rotate()
	if err != nil && s.file != nil && s.size+n <= 2*s.max {
		return nil // Windows renames no file that another log has open; that passes, and the file may grow to double size
	}
	return err
}

// stillThere reports whether the file has its name still: another log of the same server may have put it aside.
func (s *store) stillThere() bool {
	mine, err := s.file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(filepath.Join(s.dir, s.base))
	return err == nil && os.SameFile(mine, named)
}

// open opens the newest file, or begins one.
func (s *store) open() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, s.base), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Perm() != 0o600 {
		err = f.Chmod(0o600)
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	last := []byte("\n")
	if info.Size() > 0 {
		_, _ = f.ReadAt(last, info.Size()-1)
	}
	s.file, s.size, s.torn = f, info.Size(), last[0] != '\n'
	s.renumber()
	return nil
}

// rotate puts the file aside and begins a new one.
func (s *store) rotate() error {
	s.renumber()
	path := filepath.Join(s.dir, s.base)
	_ = s.file.Close()
	s.file = nil
	if err := s.rename(path, path+"."+strconv.Itoa(s.number)); err != nil {
		return errors.Join(err, s.open())
	}
	s.ended = place{s.number, s.size}
	s.number++
	s.sweep()
	return s.open()
}

// sweep removes files put aside that are too many.
func (s *store) sweep() {
	old := s.aside()
	for _, number := range old[:max(0, len(old)-s.keep)] {
		_ = os.Remove(s.path(number))
	}
}

// aside lists the numbers of the files put aside, lowest first.
func (s *store) aside() []int {
	entries, _ := os.ReadDir(s.dir)
	var list []int
	for _, e := range entries {
		tail, ok := strings.CutPrefix(e.Name(), s.base+".")
		if number, err := strconv.Atoi(tail); ok && err == nil && number > 0 && strconv.Itoa(number) == tail {
			list = append(list, number)
		}
	}
	slices.Sort(list)
	return list
}

// after is the number of the file that comes behind one.
func (s *store) after(number int) int {
	for _, next := range s.aside() {
		if next > number {
			return next
		}
	}
	return s.number
}

// renumber finds out the number of the newest file, if it is not known or another log of the same server has gone on.
func (s *store) renumber() {
	if s.number > 0 {
		if _, err := os.Stat(filepath.Join(s.dir, s.base) + "." + strconv.Itoa(s.number)); errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	s.number = max(s.number, 1)
	if list := s.aside(); len(list) > 0 {
		s.number = max(s.number, list[len(list)-1]+1)
	}
}

// close ends writing; readers get the rest.
func (s *store) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	close(s.changed)
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}
