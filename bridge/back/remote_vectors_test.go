package back_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/mcp"
	"mcpbridge/test/vectors"
)

// httpStep is one step of a transcript with a remote server.
type httpStep struct {
	BridgePosts   string
	BridgeGets    bool
	Version       string
	ServerReplies *struct {
		Status                                                        int
		ContentType, WWWAuthenticate, RetryAfter, Location, SessionID string
		Body                                                          json.RawMessage
	}
	ServerStreams []string
	Timeout       bool
	ConnectError  bool
}

type httpExpect struct {
	Era, Version, Next, Reason, InitializeVersion, Transport, PostURL string
	SendsHeaders                                                      []string
}

// httpPlayer acts the answers of a transcript in order, and then like a server of both eras.
type httpPlayer struct {
	mu    sync.Mutex
	steps []httpStep
	wrong []string
	stall context.Context // ends what never answers
}

func (p *httpPlayer) serve(w http.ResponseWriter, q *seen) {
	p.mu.Lock()
	if len(p.steps) == 0 {
		p.mu.Unlock()
		dualServer(w, q)
		return
	}
	asked, answer := p.steps[0], p.steps[1]
	p.steps = p.steps[2:]
	if got := q.Verb + " " + q.Method; got != expected(asked) {
		p.wrong = append(p.wrong, "got "+got+", want "+expected(asked))
	}
	p.mu.Unlock()
	p.answer(w, q, answer)
}

func expected(s httpStep) string {
	if s.BridgeGets {
		return "GET "
	}
	return "POST " + s.BridgePosts
}

func (p *httpPlayer) answer(w http.ResponseWriter, q *seen, s httpStep) {
	switch {
	case s.Timeout:
		<-q.ctx.Done()
	case s.ConnectError:
		cut(w)
	case s.ServerStreams != nil:
		openStream(w)
		for _, text := range s.ServerStreams {
			_, _ = io.WriteString(w, text)
		}
		w.(http.Flusher).Flush()
		<-p.stall.Done()
	default:
		p.reply(w, q, s)
	}
}

func (p *httpPlayer) reply(w http.ResponseWriter, q *seen, s httpStep) {
	a := s.ServerReplies
	for name, value := range map[string]string{"WWW-Authenticate": a.WWWAuthenticate, "Retry-After": a.RetryAfter,
		"Location": a.Location, "Mcp-Session-Id": a.SessionID, "Content-Type": a.ContentType} {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
	body := strings.NewReplacer(`"$probe"`, string(q.ID), `"$initialize"`, string(q.ID)).Replace(string(a.Body))
	var text string
	if json.Unmarshal(a.Body, &text) == nil {
		body = text
	}
	if a.ContentType == "text/event-stream" {
		body = "data: " + body + "\n\n"
	}
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, body)
}

// dualServer speaks both eras, over Streamable HTTP, and takes messages of HTTP+SSE without ever answering them.
func dualServer(w http.ResponseWriter, q *seen) {
	switch q.Method {
	case mcp.Discover:
		modernServer(nil)(w, q)
	default:
		legacyServer("2025-11-25", nil)(w, q)
	}
}

// The whole group, from the first POST to the conclusion: with an ordinary server behind the transcript the connection opens,
// or does not, as the entry expects (VER-30 to VER-38).
func TestHTTPEraVectors(t *testing.T) {
	t.Parallel()
	for _, v := range vectors.Group(t, "era-http") {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			playHTTP(t, v)
		})
	}
}

func playHTTP(t *testing.T, v vectors.Vector) {
	var steps []httpStep
	var want httpExpect
	unmarshal(t, v.Steps, &steps)
	unmarshal(t, v.Expect, &want)
	script := slices.Clone(steps)
	stall, end := context.WithCancel(context.Background())
	p := &httpPlayer{steps: steps, stall: stall}
	patience := remotePatience
	if want.Transport != "" || slices.ContainsFunc(steps, func(s httpStep) bool { return s.Timeout }) {
		patience = 500 * time.Millisecond // nobody answers then
	}
	r := newRemoteRig(t, p.serve, configured(func(c *back.RemoteConfig) { c.Limits.Start = patience }))
	t.Cleanup(end) // before the rig ends
	if want.Version != "" && mcp.Version(want.Version).Era() == mcp.Modern && script[0].Version != want.Version {
		t.Fatalf("the transcript probes at %s", script[0].Version)
	}
	c, err := r.link.Conn(t.Context())
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.wrong {
		t.Error(w)
	}
	if len(p.steps) > 0 {
		t.Errorf("%d steps were not reached", len(p.steps))
	}
	judgeHTTP(t, r, want, countHTTP(script), c, err)
}

func countHTTP(steps []httpStep) (n int) {
	for _, s := range steps {
		if s.BridgePosts != "" || s.BridgeGets {
			n++
		}
	}
	return n
}

// nextOf says what has to follow the transcript: a request, an error with a reason and text, or nothing.
var nextOf = map[string]struct {
	sends  string
	reason bridge.Reason
}{
	"serve": {}, "initialize": {sends: "POST initialize"}, "retry-discover-once": {sends: "POST server/discover"},
	"reprobe-once": {sends: "POST server/discover"}, "notifications/initialized": {sends: "POST notifications/initialized"},
	"follow-post": {sends: "POST server/discover"}, "initialize-over-sse": {sends: "POST initialize", reason: bridge.ReasonBackUnavailable},
	"error": {reason: bridge.ReasonBackUnavailable}, "error-surface": {reason: bridge.ReasonBackUnavailable},
	"fix-headers-or-error": {reason: bridge.ReasonBackUnavailable}, "error-outage": {reason: bridge.ReasonBackUnavailable},
	"retry-later": {reason: bridge.ReasonBackUnavailable}, "authorize-and-reprobe": {reason: bridge.ReasonBackUnauthorized},
	"authorize-or-error": {reason: bridge.ReasonBackUnauthorized}, "authorize-and-retry": {reason: bridge.ReasonBackUnauthorized},
}

// phrases are the bridge's words for the reasons of the vectors.
var phrases = map[string]string{"no mutual version": "no mutual version", "cross-origin redirect": "to another origin", "redirect": "redirects",
	"endpoint on foreign origin": "endpoint of another origin", "first failures reported": "initialize"}

func judgeHTTP(t *testing.T, r *remoteRig, want httpExpect, scripted int, c *bridge.Conn, err *bridge.Error) {
	t.Helper()
	next, ok := nextOf[want.Next]
	if !ok {
		t.Fatalf("unknown next step %q", want.Next)
	}
	rest := r.trace()[min(scripted, len(r.trace())):]
	if want.Next == "notifications/initialized" {
		rest = nil
		for _, q := range r.await(1, method(mcp.Initialized)) {
			rest = append(rest, "POST "+q.Method)
		}
	}
	switch {
	case next.sends != "" && (len(rest) == 0 || rest[0] != next.sends):
		t.Errorf("then it sent %v, want %s first", rest, next.sends)
	case next.sends == "" && slices.ContainsFunc(rest, func(s string) bool { return strings.HasPrefix(s, "POST") }):
		t.Errorf("then it sent %v, want nothing", rest)
	}
	if next.reason != "" {
		if err == nil || err.Reason != next.reason || !strings.Contains(err.Message, phrases[want.Reason]) {
			t.Errorf("error %v, want reason %s and %q", err, next.reason, phrases[want.Reason])
		}
	} else if err != nil {
		t.Fatalf("the connection does not open: %v", err)
	} else if want.Era != "" && c.Facts().Era.String() != want.Era {
		t.Errorf("opened as %v, want %s", c.Facts().Era, want.Era)
	}
	judgeDetails(t, r, want)
}

func judgeDetails(t *testing.T, r *remoteRig, want httpExpect) {
	t.Helper()
	for _, q := range r.all(method(mcp.Initialize)) {
		if want.InitializeVersion != "" && !strings.Contains(q.Body, `"protocolVersion":"`+want.InitializeVersion+`"`) {
			t.Errorf("initialize does not offer %s: %s", want.InitializeVersion, q.Body)
		}
		if want.PostURL != "" && q.Path != "/mcp" && q.Path != want.PostURL {
			t.Errorf("a message went to %s, want %s", q.Path, want.PostURL)
		}
	}
	if want.PostURL != "" && len(r.all(func(q *seen) bool { return q.Path == want.PostURL })) == 0 {
		t.Errorf("no message went to %s", want.PostURL)
	}
	if want.SendsHeaders == nil {
		return
	}
	for _, q := range r.all(method(mcp.Initialized)) {
		for _, name := range []string{"Mcp-Session-Id", "MCP-Protocol-Version"} {
			if has := q.Header.Get(name) != ""; has != slices.Contains(want.SendsHeaders, name) {
				t.Errorf("initialized has header %s: %v", name, has)
			}
		}
	}
}
