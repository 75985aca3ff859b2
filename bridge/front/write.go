package front

import (
	"net/http"
	"strconv"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/framing"
	"mcpbridge/framing/sse"
)

// Shared header values: assigned, never changed.
var (
	contentJSON   = []string{"application/json"}
	contentStream = []string{"text/event-stream"}
	noCache       = []string{"no-cache"}
	noBuffering   = []string{"no"}
)

func itoa(n int) string { return strconv.Itoa(n) }

// chunk is how much is written between two renewals of the write deadline.
const chunk = 1 << 20

// writeJSON answers with one JSON object.
func (x *exchange) writeJSON(a bridge.Answer) {
	if x.host != nil {
		x.host.write(a.Frame)
		return
	}
	if a.Status == 0 {
		a.Status = 200
	}
	x.rec.Status = a.Status
	h := x.w.Header()
	h["Content-Type"] = contentJSON
	if n := a.Frame.Len(); n > 1024 { // net/http counts small bodies itself
		h["Content-Length"] = []string{strconv.Itoa(n)}
	}
	if a.Status != 200 {
		x.w.WriteHeader(a.Status)
	}
	if a.Frame.Len() <= chunk {
		x.renew()
		_, _ = x.w.Write(a.Frame.Bytes())
		return
	}
	_ = x.writeParts(a.Frame)
}

// writeParts writes a large frame piece by piece, so that a slow but living reader is not taken for a dead one.
func (x *exchange) writeParts(f framing.Frame) error {
	for _, part := range f.Parts() {
		for len(part) > 0 {
			x.renew()
			n := min(len(part), chunk)
			if _, err := x.w.Write(part[:n]); err != nil {
				return err
			}
			part = part[n:]
		}
	}
	return nil
}

// renew gives the client the full write timeout for what is written next.
func (x *exchange) renew() {
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(x.cfg.WriteTimeout))
}

// events writes an event stream.
type events struct {
	x   *exchange
	st  *bridge.Stream
	buf []byte
}

// begin sends the head of an event stream. Its first bytes leave at once, so that proxies see life (case 37).
func (x *exchange) begin(st *bridge.Stream) *events {
	h := x.w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Accel-Buffering"] = contentStream, noCache, noBuffering
	x.w.WriteHeader(http.StatusOK)
	x.rec.Status, x.rec.Stream = http.StatusOK, true
	return &events{x: x, st: st}
}

// put adds messages; large ones are written through.
func (e *events) put(batch []bridge.Outgoing, id func(seq int64) string) error {
	for _, o := range batch {
		if o.Frame.Len() == 0 { // a cancelled request ends without an answer
			continue
		}
		if o.Frame.Len() <= 64<<10 {
			e.buf = sse.AppendEvent(e.buf, id(o.Seq), "", -1, o.Frame)
			if len(e.buf) >= chunk { // a slow reader has the write timeout for each
				if err := e.write(); err != nil {
					return err
				}
			}
			continue
		}
		e.buf = sse.Head(e.buf, id(o.Seq), "", -1)
		if err := e.write(); err != nil {
			return err
		}
		if err := e.x.writeParts(o.Frame.OneLine()); err != nil {
			return err
		}
		e.buf = append(e.buf, sse.Tail...)
	}
	return nil
}

// comment adds a comment, which clients ignore.
func (e *events) comment(text string) { e.buf = sse.AppendComment(e.buf, text) }

func (e *events) write() error {
	if len(e.buf) == 0 {
		return nil
	}
	e.x.renew()
	_, err := e.x.w.Write(e.buf)
	e.buf = e.buf[:0]
	return err
}

// flush sends what has been added.
func (e *events) flush() error {
	if err := e.write(); err != nil {
		return err
	}
	return http.NewResponseController(e.x.w).Flush()
}
