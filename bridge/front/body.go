package front

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

// DefaultBodyLimit is the largest request body in bytes unless limits.bodyBytes says otherwise (case 35).
const DefaultBodyLimit = 64 << 20

const (
	// firstAlloc is what a request gets on the mere word of its Content-Length.
	firstAlloc = 64 << 10
	// allocGrowth bounds what a sender can make the bridge allocate: so many times what it has really sent.
	allocGrowth = 4
	// maxBody is what the scanner can address, whatever the setting.
	maxBody = 1<<32 - 2
	// chunkAlloc is the first buffer for a body of unknown length.
	chunkAlloc = 4 << 10
)

// ReadBody is the second stage: it reads the body of r once, at most limit bytes (0 or less: DefaultBodyLimit). A longer
// body is 413, from its Content-Length before a byte is read, else when the limit is passed; the message names limit and
// setting (case 35). A body that ends early or cannot be read is 400: the client has gone, nobody reads the answer and
// nothing is the bridge's fault (case 42). The cause of that error is the read error.
//
// hold counts the buffers, before each is allocated, against what all requests may hold together; nil counts nothing.
func ReadBody(r *http.Request, limit int64, hold *Hold) ([]byte, *bridge.Error) {
	if limit <= 0 {
		limit = DefaultBodyLimit
	}
	limit = min(limit, maxBody)
	switch {
	case r.ContentLength > limit:
		return nil, bodyTooLarge(limit)
	case r.ContentLength >= 0:
		return readSized(r.Body, r.ContentLength, hold)
	}
	return readChunked(r.Body, limit, hold)
}

// readSized reads exactly size bytes into one allocation of that size, unless the body is large: then the buffer grows
// with what has arrived, so that a header alone does not cost memory.
func readSized(body io.Reader, size int64, hold *Hold) ([]byte, *bridge.Error) {
	if size == 0 {
		return []byte{}, nil
	}
	var buf []byte
	for int64(len(buf)) < size {
		have := len(buf)
		n := min(size, max(firstAlloc, int64(have)*allocGrowth))
		if err := hold.grow(n); err != nil {
			return nil, err
		}
		next := make([]byte, n)
		copy(next, buf)
		buf = next
		if n, err := io.ReadFull(body, buf[have:]); err != nil {
			return nil, bodyCut(int64(have+n), err)
		}
	}
	return buf, nil
}

func readChunked(body io.Reader, limit int64, hold *Hold) ([]byte, *bridge.Error) {
	buf := make([]byte, 0, min(chunkAlloc, limit+1))
	if err := hold.grow(int64(cap(buf))); err != nil {
		return nil, err
	}
	for {
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return nil, bodyTooLarge(limit)
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, bodyCut(int64(len(buf)), err)
		}
		if len(buf) == cap(buf) {
			n := min(int64(cap(buf))*2, limit+1)
			if err := hold.grow(n); err != nil {
				return nil, err
			}
			next := make([]byte, len(buf), n)
			copy(next, buf)
			buf = next
		}
	}
}

func bodyTooLarge(limit int64) *bridge.Error {
	return &bridge.Error{
		Status: http.StatusRequestEntityTooLarge,
		Code:   mcp.CodeInvalidRequest,
		Reason: bridge.ReasonTooLarge,
		Message: "cannot read request: its body is larger than " + strconv.FormatInt(limit, 10) +
			" bytes, the setting limits.bodyBytes.",
	}
}

func bodyCut(got int64, err error) *bridge.Error {
	return bridge.Invalid("cannot read request: its body ended after " + strconv.FormatInt(got, 10) + " bytes.").Because(err)
}
