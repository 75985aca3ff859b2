package sse

import (
	"bytes"
	"io"
)

// source cuts a stream into lines that end with LF, CR or CR LF.
type source struct {
	r       io.Reader
	buf     []byte // buf[at:end] is read and not yet returned
	at, end int
	lf      int   // offset of the next LF from at on, or where the search for it has come to
	cr      int   // the same for CR
	err     error // what the stream ended with
	begun   bool  // the place for a byte order mark has been passed
	skipLF  bool  // the last line ended with CR: an LF that follows belongs to it
}

// line returns the next line without its end, valid until the next call. If whole is false the line does not fit the buffer and this is
// a piece of it; the next call goes on behind it. A line ends at a CR at once, without waiting for what follows. An
// unfinished last line is not returned.
func (s *source) line() (line []byte, whole bool, err error) {
	for {
		if s.begin() {
			if i := s.search(); i < s.end {
				line = s.buf[s.at:i]
				s.skipLF = s.buf[i] == '\r'
				s.at = i + 1
				return line, true, nil
			}
			if s.at == 0 && s.end == len(s.buf) {
				s.at = s.end
				return s.buf, false, nil
			}
		}
		if s.err != nil {
			return nil, false, s.err
		}
		s.fill()
	}
}

// begin passes over a byte order mark at the start and an LF behind a CR. It reports false if it must see more first.
func (s *source) begin() bool {
	if !s.begun {
		const mark = "\xef\xbb\xbf"
		head := s.buf[s.at:s.end]
		if len(head) < len(mark) && bytes.HasPrefix([]byte(mark), head) {
			return false
		}
		s.begun = true
		if bytes.HasPrefix(head, []byte(mark)) {
			s.at += len(mark)
		}
	}
	if s.at == s.end {
		return false
	}
	if s.skipLF && s.buf[s.at] == '\n' {
		s.at++
	}
	s.skipLF = false
	return true
}

// search returns the offset of the next line end, or end. Both kinds are looked for once in every byte only.
func (s *source) search() int {
	s.lf = s.index(s.lf, '\n')
	s.cr = s.index(s.cr, '\r')
	return min(s.lf, s.cr)
}

// index returns the offset of the first c at or behind at, or end; no c lies between at and from.
func (s *source) index(from int, c byte) int {
	from = max(from, s.at)
	if from < s.end && s.buf[from] == c {
		return from
	}
	if i := bytes.IndexByte(s.buf[from:s.end], c); i >= 0 {
		return from + i
	}
	return s.end
}

// fill reads once more.
func (s *source) fill() {
	if s.buf == nil {
		s.buf = make([]byte, bufferSize)
	}
	if s.at > 0 {
		n := copy(s.buf, s.buf[s.at:s.end])
		s.lf, s.cr = max(s.lf-s.at, 0), max(s.cr-s.at, 0)
		s.at, s.end = 0, n
	}
	for range emptyReads {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		if s.err = err; n > 0 || err != nil {
			return
		}
	}
	s.err = io.ErrNoProgress
}
