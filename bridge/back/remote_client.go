package back

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
)

// Media types of the transport.
const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
)

// newClient returns a client that follows no redirect by itself and finds out when a peer is gone: over HTTP/2 by pings, over
// HTTP/1.1 by keep-alive probes of TCP. How long an answer may take is the caller's affair.
func newClient(cfg *RemoteConfig) (*http.Client, error) {
	dialer := &net.Dialer{Timeout: dialTime, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive, Count: 4}}
	trust, err := cfg.trust()
	if err != nil {
		return nil, err
	}
	proxy := http.ProxyFromEnvironment
	if cfg.Proxy != "" {
		at, err := url.Parse(cfg.Proxy)
		if err != nil {
			return nil, errors.New("cannot use the setting proxy: it is no URL")
		}
		proxy = http.ProxyURL(at)
	}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: proxy, DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTime, TLSClientConfig: trust,
			ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{SendPingTimeout: 2 * keepAlive, PingTimeout: keepAlive},
			MaxConnsPerHost: cfg.Conns, MaxIdleConnsPerHost: 64, IdleConnTimeout: idleConn, MaxResponseHeaderBytes: headerBytes,
			DisableCompression: true, // a compressed stream comes late
		},
	}, nil
}

// order is one HTTP request to be made.
type order struct {
	method string
	at     *url.URL
	header http.Header
	body   []byte // of a POST
}

// post is the POST of a message, with the header of the transport (HTTP-M-03, HTTP-L-02, case 32).
func (r *Remote) post(at *url.URL, body []byte) *order {
	o := r.order(http.MethodPost, at, typeJSON+", "+typeEvents)
	o.body = body
	o.header.Set("Content-Type", typeJSON)
	return o
}

func (r *Remote) order(method string, at *url.URL, accept string) *order {
	h := http.Header{}
	h.Set("User-Agent", "mcpbridge")
	for name, value := range r.cfg.Headers {
		h.Set(name, value)
	}
	h.Set("Accept", accept)
	return &order{method: method, at: at, header: h}
}

// unsentError is the failure of a request of which certainly nothing has reached the server.
type unsentError struct{ cause error }

func (e *unsentError) Error() string { return e.cause.Error() }
func (e *unsentError) Unwrap() error { return e.cause }

// do makes a request and returns the answer's header. Redirects are followed on the same origin: 307 and 308 with the same
// body, others only where there is none (VER-38, case 34). The body of the answer is the caller's to close.
func (r *Remote) do(ctx context.Context, o *order) (*http.Response, error) {
	at := o.at
	for range maxRedirects {
		resp, err := r.once(ctx, o, at)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode < 300 || resp.StatusCode > 399 || resp.StatusCode == http.StatusNotModified {
			return resp, nil
		}
		discard(resp)
		if at, err = follow(o, at, resp); err != nil {
			return nil, err
		}
	}
	return nil, &redirectError{"the server redirects more than " + fmt.Sprint(maxRedirects) + " times"}
}

func (r *Remote) once(ctx context.Context, o *order, at *url.URL) (*http.Response, error) {
	var got atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { got.Store(true) }})
	var body io.Reader
	if o.body != nil {
		body = bytes.NewReader(o.body)
	}
	req, err := http.NewRequestWithContext(ctx, o.method, "", body)
	if err != nil {
		return nil, &unsentError{err}
	}
	req.URL, req.Host, req.Header = at, at.Host, o.header
	resp, err := r.client.Do(req)
	switch {
	case err == nil:
		r.answered(resp)
		return resp, nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case got.Load():
		err = fmt.Errorf("%w: %w", errCut, plain(err))
	default:
		err = &unsentError{plain(err)}
		r.saw(err)
	}
	return nil, err
}

// answered notes that the server can be reached, or that it wants other credentials.
func (r *Remote) answered(resp *http.Response) {
	if u, ok := reject(resp).(*Unauthorized); ok {
		r.saw(u)
	} else if r.State().Problem != "" && resp.StatusCode < 500 {
		r.saw(nil)
	}
}

// plain takes the URL, which may hold a secret, out of an error of net/http.
func plain(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return explainTLS(err)
}

// redirectError is a redirect that is not followed.
type redirectError struct{ text string }

func (e *redirectError) Error() string { return e.text }

// follow returns where a redirect leads.
func follow(o *order, at *url.URL, resp *http.Response) (*url.URL, error) {
	to, err := at.Parse(resp.Header.Get("Location"))
	status := fmt.Sprint(resp.StatusCode)
	switch {
	case err != nil || resp.Header.Get("Location") == "":
		return nil, &redirectError{"the server answered HTTP " + status + " without a usable Location"}
	case !sameOrigin(at, to):
		return nil, &redirectError{"the server redirects (HTTP " + status + ") to another origin, " + origin(to) +
			", which is not followed, because it would be given the credentials; if that is meant, set it as the url"}
	case o.method != http.MethodGet && resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect:
		return nil, &redirectError{"the server redirects a " + o.method + " with HTTP " + status + " to " + origin(to) + to.EscapedPath() +
			", which would lose the message; if that is the address, set it as the url"}
	}
	return to, nil
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// sameOrigin compares scheme, host and port, the port that a scheme implies included.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// discard lets the connection of an answer that is not wanted be used again, if there is not much of it.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
}

// mediaType is the type of an answer, without parameters and in lower case.
func mediaType(resp *http.Response) string {
	t, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(t))
}
