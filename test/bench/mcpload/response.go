//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// responseHead is what the load generator reads of a response's head.
type responseHead struct {
	status  int
	length  int64 // -1: unknown
	chunked bool
	events  bool
	close   bool
	session string
}

func (c *conn) readHead() (responseHead, error) {
	h := responseHead{length: -1}
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return h, err
	}
	if len(line) < 12 {
		return h, fmt.Errorf("bad status line %q", line)
	}
	if h.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return h, fmt.Errorf("bad status line %q", line)
	}
	for {
		if line, err = c.r.ReadSlice('\n'); err != nil {
			return h, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return h, nil
		}
		key, value, _ := bytes.Cut(line, []byte(":"))
		h.set(key, bytes.TrimSpace(value))
	}
}

func (h *responseHead) set(key, value []byte) {
	is := func(name string) bool { return bytes.EqualFold(key, []byte(name)) }
	switch {
	case is("Content-Length"):
		if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
			h.length = n
		}
	case is("Transfer-Encoding"):
		h.chunked = bytes.EqualFold(value, []byte("chunked"))
	case is("Content-Type"):
		h.events = bytes.HasPrefix(value, []byte("text/event-stream"))
	case is("Connection"):
		h.close = bytes.EqualFold(value, []byte("close"))
	case is("Mcp-Session-Id"):
		h.session = string(value)
	}
}

// readBody returns the whole body, valid until the next call.
func (c *conn) readBody(h responseHead) ([]byte, error) {
	c.body = c.body[:0]
	switch {
	case h.chunked:
		err := c.readChunks()
		return c.body, err
	case h.length >= 0:
		err := c.readMore(h.length)
		return c.body, err
	case h.status == 202 || h.status == 204:
		return nil, nil
	}
	b, err := io.ReadAll(c.r)
	c.close() // the body ended with the connection
	return b, err
}

func (c *conn) readChunks() error {
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 64)
		if err != nil {
			return fmt.Errorf("bad chunk: %w", err)
		}
		if err := c.readMore(n); err != nil {
			return err
		}
		if _, err := c.r.ReadSlice('\n'); err != nil || n == 0 {
			return err
		}
	}
}

func (c *conn) readMore(n int64) error {
	old := len(c.body)
	if need := old + int(n); cap(c.body) < need {
		c.body = append(make([]byte, 0, max(2*cap(c.body), need)), c.body...)
	}
	c.body = c.body[:old+int(n)]
	_, err := io.ReadFull(c.r, c.body[old:])
	return err
}
