package front

import (
	"net/http"
	"strconv"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/framing"
	"mcpbridge/framing/sse"
)

// relay is stage 9: it carries what comes back for a POST to the client, as one JSON object if the answer is there before
// anything else, as an event stream otherwise (design decision 8).
type relay struct {
	*exchange
	st    *bridge.Stream
	s     Session // nil on the modern front
	batch bool    // the JSON form is an array
	as    int     // what the stream is read as, see bridge.Stream.Takeover
	gone  func()  // called when the client is gone before the end
	stop  func()  // called when the bridge stops, to end what would not end by itself; may be nil

	out   *events
	moved time.Time         // when something was last written, or the wait began
	json  []bridge.Outgoing // answers of a batch collected so far
}

// run returns when the answer is written or the client is gone.
func (r *relay) run(streamNow bool) {
	if r.host != nil {
		r.host.carry(r.r.Context(), r)
		return
	}
	if streamNow && !r.commit() {
		return
	}
	r.moved = time.Now()
	stopping := r.cfg.Stopping
	if r.stop == nil {
		stopping = nil
	}
	for {
		select {
		case <-r.st.Wake():
			if r.take() {
				return
			}
			r.moved = time.Now()
		case <-stopping:
			stopping = nil
			r.stop()
		case <-r.pulse.next():
			if !r.beat() {
				return
			}
		case <-r.r.Context().Done():
			r.gone()
			return
		}
	}
}

// beat turns a silent call into a stream, and keeps a stream alive. It reports false when the client is gone, or has come back
// on another connection.
func (r *relay) beat() bool {
	if !r.st.Reads(r.as) {
		return false
	}
	wait := r.cfg.KeepAlive
	if r.out == nil {
		if wait = r.cfg.Silence; !r.accept.SSE {
			return true
		}
	}
	if !r.pulse.due(r.moved, wait) {
		return true
	}
	r.moved = time.Now()
	if r.out == nil {
		return r.commit()
	}
	r.out.comment("keep-alive")
	return r.sent(r.out.flush())
}

// sent handles the result of a write: a client that cannot be written to is gone.
func (r *relay) sent(err error) bool {
	if err == nil {
		return true
	}
	r.gone()
	return false
}

// take carries on what is there and reports whether the relay is over.
func (r *relay) take() (over bool) {
	batch, last, mine := r.st.TakeAs(r.as)
	if !mine { // the client has come back on another connection
		return true
	}
	if r.out == nil && r.accept.JSON && r.allFinal(batch) {
		r.json = append(r.json, batch...)
		if last {
			r.writeAnswers()
		}
		return last
	}
	if !r.accept.SSE { // JSON only: nobody can be told more than the answer (HTTP-M-04)
		return r.answerOnly(batch, last)
	}
	if r.out == nil && !r.commit() {
		return true
	}
	batch = append(r.json, batch...)
	r.json = nil
	if !r.sent(r.put(batch)) {
		return true
	}
	return last
}

func (r *relay) put(batch []bridge.Outgoing) error {
	if err := r.out.put(batch, r.eventID); err != nil {
		return err
	}
	return r.out.flush()
}

func (r *relay) allFinal(batch []bridge.Outgoing) bool {
	for i := range batch {
		if batch[i].Kind != bridge.OutFinal {
			return false
		}
	}
	return true
}

func (r *relay) answerOnly(batch []bridge.Outgoing, last bool) bool {
	for _, o := range batch {
		if o.Kind == bridge.OutFinal {
			r.json = append(r.json, o)
		}
	}
	if last {
		r.writeAnswers()
	}
	return last
}

// writeAnswers writes the JSON form: one object, or the array of a batch.
func (r *relay) writeAnswers() {
	answers := r.json[:0]
	for _, o := range r.json {
		if o.Frame.Len() > 0 {
			answers = append(answers, o)
		}
	}
	switch {
	case len(answers) == 0: // cancelled: there is no answer (CAN-03)
		_ = r.accepted()
	case !r.batch:
		r.writeJSON(bridge.Answer{Frame: answers[0].Frame, Status: answers[0].Status})
	default:
		b := []byte{'['}
		for i, o := range answers {
			if i > 0 {
				b = append(b, ',')
			}
			b = o.Frame.Append(b)
		}
		r.writeJSON(bridge.Answer{Frame: framing.Whole(append(b, ']')), Status: http.StatusOK})
	}
}

// commit begins the event stream. In a session it can be resumed from here on; clients of 2025-11-25 are told so by an
// event that has an id and no data (HTTP-L-07).
func (r *relay) commit() bool {
	if r.s != nil {
		r.s.Keep(r.st)
	}
	r.out = r.begin(r.st)
	if r.s != nil && r.s.Version().Priming() {
		r.out.buf = sse.AppendEvent(r.out.buf, r.eventID(0), "", -1, framing.Frame{})
	} else {
		r.out.comment("open")
	}
	return r.sent(r.out.flush())
}

// eventID is the id of a message; there are none on modern streams (HTTP-M-15).
func (r *relay) eventID(seq int64) string {
	if r.st.ID == "" {
		return ""
	}
	return r.st.ID + "_" + strconv.FormatInt(seq, 10)
}
