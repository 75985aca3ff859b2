package framing

import (
	"bytes"
	"io"
	"strconv"
)

// LineError reports a line longer than the limit of its [Reader]. The stream goes on with the next line.
type LineError struct {
	Limit  int    // bytes
	Prefix []byte // the first bytes of the line, at most 256
}

func (e *LineError) Error() string {
	return "cannot read line: longer than " + strconv.Itoa(e.Limit) + " bytes"
}

const (
	readBuffer = 64 << 10
	pieceMax   = 4 << 20 // largest buffer for a piece of a long line
	prefixMax  = 256
	emptyReads = 100 // reads without data or error that are tolerated in a row

	byteOrderMark = "\xef\xbb\xbf"
)

// Reader cuts a byte stream into lines (FRM-03, FRM-07). It works on bytes up to the newline, so that a character that
// arrives in two reads stays whole. It is for one goroutine.
type Reader struct {
	r     io.Reader
	limit int
	buf   []byte // buf[at:end] is read and not yet returned
	at    int
	end   int
	seen  int   // buf[at:seen] holds no newline
	err   error // what the stream ended with, reported once buf is drained
	begun bool  // the place for a byte order mark has been passed
	skip  bool  // inside a line that was too long

	// A line longer than the buffer: its pieces before buf, and their size. Pieces instead of a growing buffer, because the
	// line then needs one exact slice at the end and leaves no spare room behind.
	pieces [][]byte
	before int
}

// NewReader returns a Reader of lines of at most limit bytes, line end not counted. It buffers 64 KiB, up to limit plus
// the line end while a longer line comes in, and twice that while it is handed over.
func NewReader(r io.Reader, limit int) *Reader { return &Reader{r: r, limit: limit} }

// Next returns the next line that holds more than white space, without its line end (LF or CR LF). The caller owns it.
// terminated tells whether the line ended with a newline; only the last line of a stream can be without one. A UTF-8 byte order
// mark at the very start of the stream is dropped.
//
// A longer line gives a *[LineError], and the next call goes on behind that line. Other errors are final: io.EOF, or what
// the stream failed with; an unterminated line is returned before io.EOF and dropped before any other error.
func (r *Reader) Next() (line []byte, terminated bool, err error) {
	for {
		i := bytes.IndexByte(r.buf[r.seen:r.end], '\n')
		if i >= 0 {
			line, err = r.cut(r.seen+i, true)
		} else if r.seen = r.end; r.overlong() {
			return nil, false, r.overflow()
		} else if r.err == nil {
			r.fill()
			continue
		} else if r.err == io.EOF && r.size(r.end) > 0 && !r.skip {
			line, err = r.cut(r.end, false)
		} else {
			return nil, false, r.err
		}
		if line != nil || err != nil {
			return line, i >= 0 && err == nil, err
		}
	}
}

// Drained reports whether nothing that was read is left in the buffer: the next call of Next will wait for the stream.
func (r *Reader) Drained() bool { return r.at == r.end }

// size is the number of bytes of the current line up to offset end of buf.
func (r *Reader) size(end int) int { return r.before + end - r.at }

// returns reports whether the current line up to end closes with a carriage return.
func (r *Reader) returns(end int) bool {
	switch n := len(r.pieces); {
	case end > r.at:
		return r.buf[end-1] == '\r'
	case n > 0:
		return r.pieces[n-1][len(r.pieces[n-1])-1] == '\r'
	}
	return false
}

// overlong reports whether the unfinished line cannot end within the limit any more: a carriage return may still be part
// of the line end.
func (r *Reader) overlong() bool {
	if r.skip {
		r.at = r.end
		return false
	}
	if !r.begun {
		if r.end-r.at < len(byteOrderMark) && r.err == nil {
			return false
		}
		r.mark()
	}
	n := r.size(r.end)
	return n > r.limit+1 || n > r.limit && (!r.returns(r.end) || r.err != nil)
}

// overflow gives up the unfinished line.
func (r *Reader) overflow() *LineError {
	e := r.tooLong(r.end)
	r.skip, r.at = true, r.end
	r.pieces, r.before = nil, 0
	return e
}

// tooLong makes the error for the current line up to end.
func (r *Reader) tooLong(end int) *LineError {
	head := r.buf[r.at:end]
	if len(r.pieces) > 0 {
		head = r.pieces[0]
	}
	return &LineError{Limit: r.limit, Prefix: bytes.Clone(head[:min(len(head), prefixMax)])}
}

// mark drops a byte order mark at the start of the stream.
func (r *Reader) mark() {
	r.begun = true
	if bytes.HasPrefix(r.buf[r.at:r.end], []byte(byteOrderMark)) {
		r.at += len(byteOrderMark)
	}
}

// cut takes the line that ends at nl out of the buffer; nil if it is blank or the rest of an overlong one.
func (r *Reader) cut(nl int, terminated bool) (line []byte, err error) {
	if !r.begun {
		r.mark()
	}
	if !r.skip {
		n := r.size(nl)
		if terminated && r.returns(nl) {
			n--
		}
		if n > r.limit {
			err = r.tooLong(nl)
		} else {
			line = r.take(nl, n)
		}
	}
	r.at, r.skip = min(nl+1, r.end), false
	r.seen = r.at
	r.pieces, r.before = nil, 0
	return line, err
}

// take copies the first n bytes of the line that ends at nl, nil if they are blank.
func (r *Reader) take(nl, n int) []byte {
	if len(r.pieces) == 0 {
		if blank(r.buf[r.at : r.at+n]) {
			return nil
		}
		return bytes.Clone(r.buf[r.at : r.at+n])
	}
	line := make([]byte, 0, r.size(nl))
	for _, p := range r.pieces {
		line = append(line, p...)
	}
	line = append(line, r.buf[r.at:nl]...)[:n]
	if blank(line) {
		return nil
	}
	return line
}

func blank(line []byte) bool {
	s := scanner{b: line}
	return s.space(0) == len(line)
}

// fill reads once more, after making room.
func (r *Reader) fill() {
	r.room()
	for range emptyReads {
		n, err := r.r.Read(r.buf[r.end:])
		r.end += n
		if r.err = err; n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// room makes room for a read: it drops what has been returned, moves the beginning of a line to the front, or sets a full
// buffer aside as a piece of the line. A buffer that a long line left behind is given back once it is drained.
func (r *Reader) room() {
	switch drained := r.at == r.end && r.before == 0; {
	case r.buf == nil, drained && len(r.buf) > readBuffer:
		r.use(make([]byte, readBuffer))
	case drained:
		r.use(r.buf)
	case r.end < len(r.buf):
	case r.at > 0:
		r.end = copy(r.buf, r.buf[r.at:r.end])
		r.at, r.seen = 0, r.end
	default:
		r.pieces = append(r.pieces, r.buf)
		r.before += len(r.buf)
		most := r.limit + len("\r\n") - r.before // more bytes than that are not looked at
		r.use(make([]byte, min(max(readBuffer, r.before), pieceMax, max(most, readBuffer))))
	}
}

func (r *Reader) use(buf []byte) { r.buf, r.at, r.seen, r.end = buf, 0, 0, 0 }
