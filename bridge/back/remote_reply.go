package back

import (
	"context"
	"errors"
	"net/http"
	"time"

	"mcpbridge/framing"
	"mcpbridge/framing/sse"
)

// reply is what came back for the POST of a request.
type reply struct {
	final  *framing.Message // the answer, nil if there is none
	status int
	text   string // of a refusal
	cursor cursor
	err    error          // why there is no answer
	rest   *http.Response // a stream that has not ended behind its answer
}

// finish lets the stream behind its answer end by itself, so that its connection can be used again, but not for long.
func (r *reply) finish() {
	if r.rest == nil {
		return
	}
	t := time.AfterFunc(retryPause, func() { _ = r.rest.Body.Close() })
	discard(r.rest)
	t.Stop()
}

// cursor is where a stream can be taken up again (HTTP-L-09).
type cursor struct {
	id    string        // the last event id, "" if there was none
	retry time.Duration // how long to wait before, negative if the server did not say
}

// sameID reports whether a response's raw id is that of the request: of a few servers it comes back as a string
// (translation 4.1).
func sameID(got, want []byte) bool {
	if string(got) == string(want) {
		return true
	}
	text, ok := framing.String(got)
	return ok && text == string(want)
}

// ask makes the POST of a request and reads what comes back, to the answer or the end. Other messages go to each as they come.
func (r *Remote) ask(ctx context.Context, o *order, id []byte, each func(*framing.Message, []byte, error)) reply {
	resp, err := r.do(ctx, o)
	if err != nil {
		return reply{err: err}
	}
	return r.hear(ctx, resp, id, each)
}

// hear reads the answer to the POST of a request (HTTP-M-08, HTTP-L-04).
func (r *Remote) hear(ctx context.Context, resp *http.Response, id []byte, each func(*framing.Message, []byte, error)) reply {
	out := reply{status: resp.StatusCode}
	switch kind := mediaType(resp); {
	case resp.StatusCode >= 300:
		defer discard(resp)
		out.final, out.text = refusalOf(ctx, resp, id)
		if s := resp.StatusCode; out.final == nil || s == 401 || s == 403 || s >= 500 && !out.final.ID.OK() {
			out.final, out.err = nil, reject(resp)
		}
	case kind == typeEvents && resp.StatusCode == http.StatusOK:
		return r.events(ctx, resp, id, each)
	case kind == typeJSON:
		defer discard(resp)
		out.final, out.err = r.single(ctx, resp, id, each)
	default:
		defer discard(resp)
		out.err = &protocolError{"it answered HTTP " + resp.Status + " with content type \"" + kind + "\" where JSON or an event stream was due"}
	}
	return out
}

// single reads an answer in JSON. An array, of a server of 2025-03-26, is each's to unpack.
func (r *Remote) single(ctx context.Context, resp *http.Response, id []byte, each func(*framing.Message, []byte, error)) (*framing.Message, error) {
	raw, err := readAll(ctx, resp.Body, r.cfg.Limits.Line, " (setting limits.lineBytes)")
	if err != nil {
		return nil, err
	}
	m, err := framing.Scan(raw)
	var bad *framing.ScanError
	switch {
	case errors.As(err, &bad) && bad.Array:
		each(nil, raw, err)
		return nil, &protocolError{"its answer, an array, does not answer the request"}
	case err != nil:
		return nil, &protocolError{"its answer is no message: " + err.Error()}
	case answers(m, id):
		return m, nil
	}
	return nil, &protocolError{"its answer is not that of the request"}
}

// answers reports whether a message is the answer to the one request it can be meant for: an error may lack the id (FRM-12).
func answers(m *framing.Message, id []byte) bool {
	switch m.Kind {
	case framing.Result:
		return sameID(m.Bytes(m.ID), id)
	case framing.Error:
		return !m.ID.OK() || sameID(m.Bytes(m.ID), id)
	}
	return false
}

// events reads an event stream up to the answer.
func (r *Remote) events(ctx context.Context, resp *http.Response, id []byte, each func(*framing.Message, []byte, error)) reply {
	out := reply{status: resp.StatusCode}
	dec := sse.NewDecoder(resp.Body, r.cfg.Limits.Line)
	for {
		ev, err := dec.Next()
		if err != nil {
			_ = resp.Body.Close()
			out.cursor, out.err = cursorOf(dec), ending(ctx, err)
			return out
		}
		if ev.Name != "message" {
			continue
		}
		m, err := framing.Scan(ev.Data)
		if err == nil && answers(m, id) {
			out.final, out.rest = m, resp
			return out
		}
		each(m, ev.Data, err)
	}
}

func cursorOf(dec *sse.Decoder) cursor {
	c := cursor{id: dec.LastID(), retry: -1}
	if ms := dec.Retry(); ms >= 0 {
		c.retry = time.Duration(ms) * time.Millisecond
	}
	return c
}

// ending is the end of a stream that had not ended.
func ending(ctx context.Context, err error) error {
	var long *sse.EventTooLarge
	switch {
	case errors.As(err, &long):
		return &protocolError{"its answer is too long (setting limits.lineBytes): " + err.Error()}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return errCut
}
