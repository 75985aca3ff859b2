package admin

import (
	"fmt"
	"net/http"
)

// text is an answer that is written bit by bit. Its head goes out with the first bytes, so that an error before them can
// still be told by the status.
type text struct {
	w     http.ResponseWriter
	flush bool // each write goes out at once
	begun bool
	gone  bool // the caller takes no more
}

// begin sends the head.
func (t *text) begin() {
	if t.begun {
		return
	}
	t.begun = true
	t.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	t.w.Header().Set("Cache-Control", "no-store")
	t.w.WriteHeader(http.StatusOK)
	t.push()
}

// Write implements io.Writer.
func (t *text) Write(p []byte) (int, error) {
	t.begin()
	n, err := t.w.Write(p)
	if err == nil {
		err = t.push()
	}
	t.gone = err != nil
	return n, err
}

func (t *text) push() error {
	if !t.flush {
		return nil
	}
	return http.NewResponseController(t.w).Flush()
}

// end finishes the answer. An error that comes too late for the status is its last line.
func (t *text) end(err error) {
	switch {
	case err == nil:
		t.begin()
	case t.gone:
	case t.begun:
		fmt.Fprintf(t.w, "mcpbridge: %v\n", err)
	default:
		fail(t.w, err)
	}
}
