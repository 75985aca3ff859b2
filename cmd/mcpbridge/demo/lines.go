package demo

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

var errTooLong = errors.New("line too long")

// lineReader cuts a byte stream at newlines. A line belongs to the caller.
type lineReader struct {
	r   *bufio.Reader
	max int
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), max: limit}
}

// next returns the next line without its newline. A line above the limit is read to its end and reported as errTooLong,
// so that the following line can be read. At the end of the stream an unterminated rest is dropped.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := l.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		ended := err == nil
		part = bytes.TrimSuffix(part, []byte{'\n'})
		if long = long || len(line)+len(part) > l.max; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !ended {
			continue
		}
		if long {
			return nil, errTooLong
		}
		return line, nil
	}
}
