package front

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/mirror"
	"mcpbridge/framing"
	"mcpbridge/test/vectors"
)

// elsewhere lists the vectors whose outcome is not decided by the checking stages. Each must pass these stages.
var elsewhere = map[string]string{
	"hv-class-get-plain":             "routing of HTTP methods",
	"hv-class-get-session":           "routing of HTTP methods",
	"hv-class-delete-plain":          "routing of HTTP methods",
	"hv-class-delete-session":        "routing of HTTP methods",
	"hv-class-put":                   "routing of HTTP methods",
	"hv-class-unknown-method":        "only the server knows its methods",
	"hv-order-unknown-before-params": "only the server knows its methods",
	"hv-mrtr-state-forged":           "needs the keys of request states",
	"hv-mrtr-state-empty":            "needs the keys of request states",
}

type fixture struct {
	guard    *Guard
	sessions map[string]mcp.Version
	tools    map[string][]mirror.Param
}

func loadFixture(t *testing.T) *fixture {
	t.Helper()
	var raw struct {
		HTTP struct {
			AllowedOrigins []string
			Sessions       map[string]mcp.Version
			Tools          []struct {
				Name        string
				InputSchema json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(vectors.Fixtures(t), &raw); err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		guard:    &Guard{LoopbackOnly: true, AllowedOrigins: raw.HTTP.AllowedOrigins},
		sessions: raw.HTTP.Sessions,
		tools:    map[string][]mirror.Param{},
	}
	for _, tool := range raw.HTTP.Tools {
		params, err := mirror.Parse(tool.InputSchema)
		if err != nil {
			t.Fatalf("fixture tool %s: %v", tool.Name, err)
		}
		f.tools[tool.Name] = params
	}
	if len(f.sessions) != 3 || len(f.tools) < 5 {
		t.Fatalf("fixture is incomplete: %d sessions, %d tools", len(f.sessions), len(f.tools))
	}
	return f
}

// run strings the stages together in the order of HTTP-M-41. The class is nil for what has no body.
func (f *fixture) run(r *http.Request) (*Class, Accept, *bridge.Error) {
	if refusal := f.guard.Check(r); refusal != nil {
		return nil, Accept{}, refusal
	}
	if r.Method != http.MethodPost {
		return nil, Accept{}, nil
	}
	if refusal := CheckContentType(r.Header); refusal != nil {
		return nil, Accept{}, refusal
	}
	accept, refusal := CheckAccept(r.Header)
	if refusal != nil {
		return nil, accept, refusal
	}
	body, refusal := ReadBody(r, f.guard.BodyLimit, nil)
	if refusal != nil {
		return nil, accept, refusal
	}
	var view SessionView
	if ids := r.Header[mcp.HeaderSessionID]; len(ids) > 0 {
		view.Present = true
		view.Version, view.Known = f.sessions[ids[0]]
	}
	class, refusal := Classify(r.Header, body, view)
	if refusal != nil {
		return nil, accept, refusal
	}
	return class, accept, CheckParams(class, r.Header, f.tools[class.Name])
}

type wireRequest struct {
	Method     string
	Path       string
	Headers    [][2]string
	HeadersHex [][2]string
	Body       json.RawMessage
	BodyText   *string
	BodyHex    *string
}

func (w *wireRequest) body(t *testing.T) []byte {
	switch {
	case w.BodyText != nil:
		return []byte(*w.BodyText)
	case w.BodyHex != nil:
		return unhex(t, *w.BodyHex)
	}
	return w.Body
}

// parse writes the request in wire form and lets net/http read it, as a listener would.
func (w *wireRequest) parse(t *testing.T) *http.Request {
	t.Helper()
	var b bytes.Buffer
	path := w.Path
	if path == "" {
		path = "/mcp"
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", w.Method, path)
	if !slices.ContainsFunc(w.Headers, func(h [2]string) bool { return h[0] == "Host" }) {
		b.WriteString("Host: 127.0.0.1:8080\r\n")
	}
	for _, h := range w.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	for _, h := range w.HeadersHex {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], unhex(t, h[1]))
	}
	body := w.body(t)
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	r, err := http.ReadRequest(bufio.NewReader(&b))
	if err != nil {
		t.Fatalf("cannot parse request: %v", err)
	}
	return r
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type outcome struct {
	Outcome     string
	Era         string
	Status      int
	StatusAnyOf []int
	Code        int
	CodeAnyOf   []int
	ID          string
	EchoID      json.RawMessage
	ContentType string
	Data        json.RawMessage
}

func TestHTTPRequestVectors(t *testing.T) {
	f := loadFixture(t)
	left := 0
	for _, v := range vectors.Group(t, "http-request") {
		t.Run(v.ID, func(t *testing.T) {
			var w wireRequest
			var want outcome
			if err := json.Unmarshal(v.Request, &w); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(v.Expect, &want); err != nil {
				t.Fatal(err)
			}
			class, accept, refusal := f.run(w.parse(t))
			if reason, ok := elsewhere[v.ID]; ok {
				left++
				if refusal != nil {
					t.Fatalf("left to others (%s), but refused here: %+v", reason, refusal)
				}
				return
			}
			if want.Outcome == "reject" {
				wantRefusal(t, &want, w.body(t), refusal)
				return
			}
			if refusal != nil {
				t.Fatalf("refused: %d %d %s", refusal.Status, refusal.Code, refusal.Message)
			}
			wantPassed(t, &want, class, accept)
		})
	}
	if left != len(elsewhere) {
		t.Errorf("%d of the %d vectors left to others exist", left, len(elsewhere))
	}
}

func wantPassed(t *testing.T, want *outcome, c *Class, a Accept) {
	t.Helper()
	switch want.Outcome {
	case "dispatch":
		if c.Era.String() != want.Era || c.Message.Kind != framing.Request {
			t.Errorf("era %v, kind %v, want a request of era %s", c.Era, c.Message.Kind, want.Era)
		}
	case "handshake":
		if c.Era != mcp.Legacy || c.Method != mcp.Initialize {
			t.Errorf("era %v, method %q, want a legacy initialize", c.Era, c.Method)
		}
	case "accepted":
		if c.Message.Kind == framing.Request {
			t.Error("a request cannot be accepted with 202")
		}
	default:
		t.Fatalf("outcome %q is not decided by these stages", want.Outcome)
	}
	if want.EchoID != nil && !bytes.Equal(c.Message.Bytes(c.Message.ID), want.EchoID) {
		t.Errorf("id %s, want %s", c.Message.Bytes(c.Message.ID), want.EchoID)
	}
	switch want.ContentType {
	case "application/json":
		if a != (Accept{JSON: true}) {
			t.Errorf("accept %+v, want JSON only", a)
		}
	case "text/event-stream":
		if a != (Accept{SSE: true}) {
			t.Errorf("accept %+v, want SSE only", a)
		}
	}
}

func wantRefusal(t *testing.T, want *outcome, body []byte, got *bridge.Error) {
	t.Helper()
	if got == nil {
		t.Fatal("passed, want a refusal")
	}
	statuses, codes := want.StatusAnyOf, want.CodeAnyOf
	if want.Status != 0 {
		statuses = []int{want.Status}
	}
	if want.Code != 0 {
		codes = []int{want.Code}
	}
	if !slices.Contains(statuses, got.HTTPStatus()) || len(codes) > 0 && !slices.Contains(codes, got.Code) {
		t.Errorf("status %d, code %d (%s), want %v, %v", got.HTTPStatus(), got.Code, got.Message, statuses, codes)
	}
	if id := wantID(want, body); string(got.ID) != id {
		t.Errorf("id %q, want %q", got.ID, id)
	}
	var answer struct{ Error struct{ Data map[string]any } }
	if err := json.Unmarshal(got.Body(false), &answer); err != nil {
		t.Fatalf("answer is no JSON: %v: %s", err, got.Body(false))
	}
	var data map[string]any
	if want.Data != nil {
		if err := json.Unmarshal(want.Data, &data); err != nil {
			t.Fatal(err)
		}
	}
	for key, value := range data {
		if diff := cmp.Diff(value, answer.Error.Data[key]); diff != "" {
			t.Errorf("data.%s differs (-want +got):\n%s", key, diff)
		}
	}
}

// wantID is the id a refusal echoes: that of a request whose body was read far enough (FRM-12).
func wantID(want *outcome, body []byte) string {
	switch status := want.Status; {
	case want.ID == "absent-or-null", status == 403, status == 415:
		return ""
	}
	var request struct{ ID, Method, Params json.RawMessage }
	if json.Unmarshal(body, &request) != nil || request.Method == nil {
		return ""
	}
	if want.Status == 406 && !bytes.Contains(request.Method, []byte("listen")) {
		return ""
	}
	id := string(request.ID)
	if strings.ContainsAny(id, ".{[") || id == "true" || id == "null" {
		return ""
	}
	return id
}
