package back

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

var (
	// errGone is the end of a connection that was asked for.
	errGone = errors.New("the connection was closed by the bridge")
	// errCut is a stream that ended before the answer.
	errCut = errors.New("the connection was cut before the answer")
)

// Unauthorized is the refusal of a server that wants other credentials (AUC-01).
type Unauthorized struct {
	Status    int
	Challenge string // its WWW-Authenticate header
}

func (e *Unauthorized) Error() string {
	return "the server refuses the bridge's credentials (HTTP " + strconv.Itoa(e.Status) + "); set them with headers"
}

// statusError is an answer of HTTP that is neither a success nor an answer of MCP.
type statusError struct {
	status int
	after  time.Duration // of Retry-After, 0 for none
}

func (e *statusError) Error() string {
	return "the server answered HTTP " + strconv.Itoa(e.status) + " " + http.StatusText(e.status)
}

// outage reports whether the answer says nothing about what the server speaks (VER-35).
func (e *statusError) outage() bool { return e.status == http.StatusTooManyRequests || e.status >= 500 }

// protocolError is an answer that breaks the protocol.
type protocolError struct{ text string }

func (e *protocolError) Error() string { return e.text }

// reject makes an error of an answer that is no success and has no message of MCP.
func reject(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &Unauthorized{resp.StatusCode, resp.Header.Get("WWW-Authenticate")}
	}
	return &statusError{resp.StatusCode, retryAfter(resp.Header.Get("Retry-After"))}
}

// retryAfter reads seconds or a date.
func retryAfter(text string) time.Duration {
	if s, err := strconv.Atoi(text); err == nil && s > 0 {
		return time.Duration(min(s, 24*3600)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// public hides secrets in an error for whoever wanted the link to be opened.
func (r *Remote) public(err error) error {
	if s, ok := errors.AsType[*statusError](err); ok && s.after > 0 {
		return &waitError{r.masker.Text(err.Error()), s.after}
	}
	if own := r.unauthorized(err); own != nil {
		return own
	}
	return errors.New(r.masker.Text(err.Error()))
}

// waitError is an error after which it makes no sense to try again for a while.
type waitError struct {
	text  string
	after time.Duration
}

func (e *waitError) Error() string             { return e.text }
func (e *waitError) RetryAfter() time.Duration { return e.after }

func (r *Remote) unauthorized(err error) *bridge.Error {
	u, ok := errors.AsType[*Unauthorized](err)
	if !ok {
		return nil
	}
	return (&bridge.Error{Status: 503, Code: mcp.CodeInternal, Reason: bridge.ReasonBackUnauthorized, Data: statusData(u.Status),
		Message: "cannot use server " + r.cfg.Name + ": " + r.masker.Text(err.Error())}).Because(u)
}

func statusData(status int) []byte { return strconv.AppendInt([]byte(`"status":`), int64(status), 10) }

// failure is the answer to a request that failed as err says (translation 11.5). Before it was sent the status of HTTP may
// tell; behind that the error is an outcome like any other.
func (r *Remote) failure(err error) *bridge.Error {
	if own, ok := errors.AsType[*bridge.Error](err); ok {
		return own
	}
	if own := r.unauthorized(err); own != nil {
		own.Status = 0
		return own
	}
	e := &bridge.Error{Code: mcp.CodeInternal, Reason: bridge.ReasonBackDisconnected,
		Message: "server " + r.cfg.Name + ": " + r.masker.Text(err.Error())}
	var s *statusError
	var p *protocolError
	var unsent *unsentError
	var redirect *redirectError
	switch {
	case errors.As(err, &s):
		e.Data = statusData(s.status)
		e.Retry = int(math.Ceil(s.after.Seconds()))
		switch {
		case s.status == http.StatusTooManyRequests:
			e.Status, e.Reason = 429, bridge.ReasonBackHTTPStatus
		case s.outage():
			e.Reason = bridge.ReasonBackUnavailable
		default:
			e.Reason = bridge.ReasonBackHTTPStatus
		}
	case errors.As(err, &p):
		e.Reason = bridge.ReasonPeerProtocolError
	case errors.As(err, &redirect):
		e.Reason = bridge.ReasonBackHTTPStatus
	case errors.As(err, &unsent):
		e.Status, e.Reason, e.Retry = 503, bridge.ReasonBackUnavailable, 1
		e.Message = "cannot reach server " + r.cfg.Name + ": " + r.masker.Text(err.Error())
	}
	return e.Because(err)
}

// passing reports whether an error may be gone at the next try.
func passing(err error) bool {
	var s *statusError
	var unsent *unsentError
	return errors.As(err, &s) && s.outage() || errors.As(err, &unsent) || errors.Is(err, errCut)
}

// readAll reads a body of at most limit bytes.
func readAll(ctx context.Context, body io.Reader, limit int, setting string) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	switch {
	case len(raw) > limit:
		return nil, &protocolError{"its answer is longer than " + strconv.Itoa(limit) + " bytes" + setting}
	case err == nil:
		return raw, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, errCut
}

// refusalOf reads the body of an answer that is no success: the message it carries, nil if it is none or belongs to another request,
// and its text.
func refusalOf(ctx context.Context, resp *http.Response, id []byte) (m *framing.Message, text string) {
	raw, err := readAll(ctx, resp.Body, maxErrorBody, "")
	if err != nil {
		return nil, ""
	}
	if mediaType(resp) == typeJSON {
		m, err = framing.Scan(raw)
		if err != nil || m.Kind != framing.Error || m.ID.OK() && !sameID(m.Bytes(m.ID), id) {
			m = nil
		}
	}
	return m, string(raw)
}
