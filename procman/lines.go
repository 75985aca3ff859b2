package procman

import "bytes"

// lineCutter hands out lines of a byte stream: without "\n" or "\r\n", at most max bytes each, longer ones in pieces.
type lineCutter struct {
	max  int
	emit func([]byte)
	part []byte // begun line, shorter than max
}

func (c *lineCutter) write(p []byte) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			c.grow(p)
			return
		}
		c.grow(p[:end])
		c.endLine()
		p = p[end+1:]
	}
}

// grow adds bytes without an end of line.
func (c *lineCutter) grow(p []byte) {
	for len(p) > 0 {
		if len(c.part) == c.max {
			c.flush()
		}
		n := min(c.max-len(c.part), len(p))
		c.part = append(c.part, p[:n]...)
		p = p[n:]
	}
}

func (c *lineCutter) endLine() {
	c.part = bytes.TrimSuffix(c.part, []byte("\r"))
	c.flush()
}

// close hands out a last line that has no end.
func (c *lineCutter) close() {
	if len(c.part) > 0 {
		c.endLine()
	}
}

func (c *lineCutter) flush() {
	c.emit(c.part)
	c.part = c.part[:0]
}
