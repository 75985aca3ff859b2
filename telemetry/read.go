package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	// readBytes is what a reader takes at once.
	readBytes = 32 << 10
	// lookTime is how often a follower looks at the files without being told that they changed: another program, or
	// another log of the same server, may have written.
	lookTime = 250 * time.Millisecond
)

// place is where a reader stands: a byte of the file that has, or will have, a number.
type place struct {
	number int
	offset int64
}

func (p place) before(q place) bool {
	return p.number < q.number || p.number == q.number && p.offset < q.offset
}

const gap = "mcpbridge: lines are missing here: they were removed before they could be read\n"

// tail writes the last n lines that are there now.
func (s *store) tail(n int, w io.Writer) error {
	at, end, err := s.back(n)
	if err != nil {
		return err
	}
	out := reader{files: s, at: at, out: w}
	for out.at.before(end) {
		got, _, _, err := out.step(end)
		if err != nil || got == 0 {
			return err
		}
	}
	return nil
}

// follow writes the last n lines and what comes.
func (s *store) follow(ctx context.Context, n int, w io.Writer) error {
	at, _, err := s.back(n)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out := reader{files: s, at: at, out: w}
	look := time.NewTicker(lookTime)
	defer look.Stop()
	for ctx.Err() == nil {
		got, changed, closed, err := out.step(place{number: 1 << 60})
		switch {
		case err != nil:
			return err
		case got > 0:
			continue
		case closed:
			return nil
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-look.C:
		}
	}
	return nil
}

// back finds the start of the last n lines, and the end of them all. The error wraps fs.ErrNotExist if there is no file.
func (s *store) back(n int) (start, end place, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renumber()
	list := append(s.aside(), s.number)
	found := false
	for i := len(list) - 1; i >= 0; i-- {
		f, err := os.Open(s.path(list[i]))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return start, end, err
		}
		offset, size, missing, err := backward(f, n)
		_ = f.Close()
		if err != nil {
			return start, end, err
		}
		if start = (place{list[i], offset}); !found {
			found, end = true, place{list[i], size}
		}
		if n = missing; n == 0 {
			return start, end, nil
		}
	}
	if !found {
		return place{number: s.number}, place{number: s.number}, &fs.PathError{Op: "open log", Path: filepath.Join(s.dir, s.base), Err: fs.ErrNotExist}
	}
	return start, end, nil
}

// backward finds the start of the last n lines of a file, and how many of them are missing in it.
func backward(f *os.File, n int) (offset, size int64, missing int, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, 0, err
	}
	size = info.Size()
	if n == 0 || size == 0 {
		return size, size, n, nil
	}
	buf := make([]byte, readBytes)
	ends := size - 1 // the end of the last line starts none
	for ends > 0 {
		chunk := buf[:min(ends, readBytes)]
		from := ends - int64(len(chunk))
		if _, err := f.ReadAt(chunk, from); err != nil {
			return 0, 0, 0, err
		}
		for {
			i := bytes.LastIndexByte(chunk, '\n')
			if i < 0 {
				break
			}
			if n--; n == 0 {
				return from + int64(i) + 1, size, 0, nil
			}
			chunk = chunk[:i]
		}
		ends = from
	}
	return 0, size, n - 1, nil
}

// reader copies a log from a place on.
type reader struct {
	files *store
	at    place
	out   io.Writer
	buf   []byte
	mid   bool // in the middle of a line
}

// step copies what comes next, but nothing from end on. If that is nothing, changed tells when to try again, and closed
// that there is no use in it.
func (r *reader) step(end place) (n int, changed <-chan struct{}, closed bool, err error) {
	if r.buf == nil {
		r.buf = make([]byte, readBytes)
	}
	n, lost, changed, closed, err := r.files.read(&r.at, end, r.buf)
	if err != nil {
		return 0, nil, false, err
	}
	if lost {
		note := gap
		if r.mid {
			note = "\n" + gap
		}
		if _, err := io.WriteString(r.out, note); err != nil {
			return 0, nil, false, err
		}
	}
	if n == 0 {
		return 0, changed, closed, nil
	}
	r.mid = r.buf[n-1] != '\n'
	_, err = r.out.Write(r.buf[:n])
	return n, nil, false, err
}

// read reads what comes at a place and moves it on. lost tells that something before was removed. No file stays open, and nobody
// writes meanwhile.
func (s *store) read(at *place, end place, buf []byte) (n int, lost bool, changed <-chan struct{}, closed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renumber()
	for at.number <= s.number && at.before(end) {
		room := buf
		if at.number == end.number {
			room = buf[:min(int64(len(buf)), end.offset-at.offset)]
		}
		n, err := s.readFile(at, room)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			lost = lost || at.number < s.number && *at != s.ended
		case err != nil || n > 0:
			return n, lost, nil, false, err
		}
		if at.number == s.number {
			break
		}
		next := s.after(at.number)
		lost = lost || next > at.number+1 && *at != s.ended
		*at = place{number: next}
	}
	return 0, lost, s.changed, s.closed, nil
}

// readFile reads from the file a place is in. It returns 0 and nil at its end.
func (s *store) readFile(at *place, buf []byte) (int, error) {
	f, err := os.Open(s.path(at.number))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n, err := f.ReadAt(buf, at.offset)
	if n == 0 && errors.Is(err, io.EOF) {
		if info, err := f.Stat(); err == nil && info.Size() < at.offset {
			at.offset = 0 // somebody has emptied it
			n, err = f.ReadAt(buf, 0)
			if err != nil && !errors.Is(err, io.EOF) {
				return 0, err
			}
		}
	} else if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	at.offset += int64(n)
	return n, nil
}
