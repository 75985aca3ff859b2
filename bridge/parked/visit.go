package parked

import (
	"context"
	"sync"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

const (
	// maxAttempts is how often a request may be refused until URLs have been visited (translation 5.8).
	maxAttempts = 10
	// maxVisited is how many ids of visited URLs are remembered.
	maxVisited = 1000
	// maxURLs is how many URLs one refusal may name.
	maxURLs = 100
)

// visits are the elicitations a server called complete. The server's word may come before the client's retry.
type visits struct {
	mu    sync.Mutex
	done  map[mark]bool
	order []mark
	more  chan struct{} // closed with the next one, nil if nobody waits
}

// Elicited takes the id of an elicitation that is complete (CLF-04).
func (t *Table) Elicited(id string) {
	m := markOf([]byte(id))
	v := &t.visit
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.done == nil {
		v.done = map[mark]bool{}
	}
	if !v.done[m] {
		v.done[m] = true
		v.order = append(v.order, m)
	}
	if len(v.order) > maxVisited {
		delete(v.done, v.order[0])
		v.order = v.order[1:]
	}
	if v.more != nil {
		close(v.more)
		v.more = nil
	}
}

// wait returns when all ids are complete, and after so long in any case: the server need not tell.
func (v *visits) wait(ctx context.Context, ids []mark, limit time.Duration) {
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		more := v.missing(ids)
		if more == nil {
			return
		}
		select {
		case <-more:
		case <-t.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// missing returns nil if all ids are complete, else what is closed when there is one more.
func (v *visits) missing(ids []mark) <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range ids {
		if !v.done[id] {
			if v.more == nil {
				v.more = make(chan struct{})
			}
			return v.more
		}
	}
	return nil
}

// outcomeOf is what becomes of the server's answer.
func (r *call) outcomeOf(m *framing.Message, a bridge.Answer) outcome {
	o := outcome{frame: a.Frame, code: a.Status, id: r.id()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.Kind == framing.Error {
		code, _ := member(m.Bytes(m.Error), "code")
		if d, ok := parseDecimal(code); ok && d.compare(urlRequired) == 0 {
			return r.urlsLocked(m, o)
		}
	}
	if r.lacked == nil {
		return o
	}
	if text, failed := failure(m); failed { // translation 5.4, case 2
		return outcome{err: undeclared(*r.lacked, text)}
	}
	return o
}

var urlRequired, _ = parseDecimal(itoa(mcp.CodeURLElicitationRequired))

// failure is the server's own text of a failed call.
func failure(m *framing.Message) (text string, failed bool) {
	if m.Kind == framing.Error {
		text, _ = memberText(m.Bytes(m.Error), "message")
		return text, true
	}
	if string(m.Bytes(m.ResultMember("isError"))) != "true" {
		return "", false
	}
	for _, block := range elements(m.Bytes(m.ResultMember("content"))) {
		if t, ok := memberText(block, "text"); ok {
			return t, true
		}
	}
	return "the tool failed", true
}

// urlsLocked turns -32042 into questions about URLs (translation 5.8). The call has failed, so that the state stands for itself.
func (r *call) urlsLocked(m *framing.Message, o outcome) outcome {
	data, _ := member(m.Bytes(m.Error), "data")
	list, _ := member(data, "elicitations")
	urls := elements(list)
	need := bridge.Need{Feature: "elicitation", Profile: era.ElicitURL}
	message, _ := memberText(m.Bytes(m.Error), "message")
	switch {
	case len(urls) == 0 || len(urls) > maxURLs:
		return o
	case !need.Covered(r.client.profile):
		return outcome{err: undeclared(need, message)}
	case r.attempts >= maxAttempts:
		return outcome{err: tooManyRounds(r.t.cfg.Server, maxAttempts)}
	}
	s := state{kind: urlState, round: uint16(r.attempts + 1), base: uint16(r.asked), count: uint16(len(urls)),
		owner: ownerOf(r.inner.Principal), params: r.digestLocked(), expires: time.Now().Add(r.t.cfg.TTL)}
	b := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, u := range urls {
		id, hasID := memberText(u, "elicitationId")
		_, hasURL := memberText(u, "url")
		if _, hasText := memberText(u, "message"); !hasID || !hasURL || !hasText {
			return o
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(framing.AppendString(b, urlKey(int(s.base), i)), `:{"method":"`+mcp.ElicitationCreate+`","params":`...)
		b = append(append(b, change(u, framing.Op{Name: "elicitationId"}, framing.Op{Name: "mode", Value: []byte(`"url"`)})...), '}')
		if len(s.marks) < maxMarks {
			s.marks = append(s.marks, markOf([]byte(id)))
		}
	}
	b = framing.AppendString(append(b, `},"requestState":`...), r.t.seal(&s))
	return outcome{frame: bridge.ResultFrame(r.id(), append(b, '}')), code: 200, id: r.id()}
}

// urlKey is the key of the i-th URL, counted from 0, of a call that had asked so many questions before.
func urlKey(base, i int) string { return "elicitation-" + string(itoa(base+i+1)) }

// visited judges a retry of a request that was refused until URLs have been visited. With neither a request nor an error it is to be
// sent again: if all have been accepted, or if the server has to tell anew what there is to accept.
func (t *Table) visited(ex *bridge.Exchange, s *state, answers map[string][]byte) (bridge.Dispatched, *bridge.Error) {
	declined := false
	for i := range int(s.count) {
		key := urlKey(int(s.base), i)
		answer := answers[key]
		if answer == nil {
			continue
		}
		switch action, _ := memberText(answer, "action"); action {
		case "accept":
		case "decline", "cancel":
			declined = true
		default:
			return nil, badAnswer(key, "its action must be accept, decline or cancel")
		}
	}
	if !declined {
		return nil, nil
	}
	d := &reader{ex: ex}
	if ex.Method != mcp.ToolsCall {
		ex.Fail(&bridge.Error{Code: mcp.CodeInternal, Reason: bridge.ReasonDeclined, Message: declinedText})
		return settled{}, nil
	}
	result := framing.AppendString([]byte(`{"resultType":"complete","isError":true,"content":[{"type":"text","text":`), declinedText)
	d.ask(append(result, "}]}"...))
	return settled{}, nil
}

// accepted reports whether all URLs have been.
func (s *state) accepted(answers map[string][]byte) bool {
	for i := range int(s.count) {
		if action, _ := memberText(answers[urlKey(int(s.base), i)], "action"); action != "accept" {
			return false
		}
	}
	return true
}

const declinedText = "The server needs the user to open a web page first, and the user declined."

// settled is a request that has its answer.
type settled struct{}

// Cancel implements bridge.Dispatched.
func (settled) Cancel([]byte) bool { return false }
