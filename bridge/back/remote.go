package back

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mask"
	"mcpbridge/bridge/mcp"
)

// RemoteConfig describes a server that is reached over HTTP. The zero value of a limit means its default.
type RemoteConfig struct {
	Name    string
	URL     string            // used byte for byte (case 34)
	Headers map[string]string // sent with every request, to the origin of URL alone
	// EventsFirst tries the HTTP+SSE transport of 2024-11-05 before the others.
	EventsFirst bool
	Protocol    mcp.Era // pins the era; EraUnknown finds out
	Limits      bridge.Limits
	// Streams is the number of requests that may be under way on one link at a time. Those beyond wait as for a server that does
	// not read. Default 1024.
	Streams int
	// Conns is the number of connections to the server's origin at a time, for all links; HTTP/2 needs few. Default 4096.
	Conns int
	// Proxy is the URL of a proxy; "" leaves it to the environment.
	Proxy string
	// CAFile, ClientCert and ClientKey are paths of PEM files: authorities beside the system's, and what is shown to the server.
	CAFile, ClientCert, ClientKey string
	// Insecure takes any certificate.
	Insecure bool
	// Secrets are texts that must not appear in an error (SEC-09).
	Secrets []string
}

// Limits that are not configured.
const (
	dialTime      = 10 * time.Second // for a TCP connection, and again for TLS on it
	handshakeTime = 30 * time.Second // for each answer of a handshake (VER-35)
	goodbyeTime   = 3 * time.Second  // for the DELETE of a session (HTTP-L-23)
	headerBytes   = 64 << 10         // of an answer's header block
	maxErrorBody  = 1 << 20          // of an answer that is no success
	maxRedirects  = 5
	maxRetryAfter = 5 * time.Second // a longer wait is the client's affair (translation 11.5)
	retryPause    = 300 * time.Millisecond
	// idleConn is below the five seconds after which Node's servers close a connection, so that no call is written to one that
	// is just being closed: a tool call that may have arrived cannot be sent again (STD-06).
	idleConn = 4 * time.Second
	// keepAlive finds dead connections: after so long without a word the peer is asked, and four times more.
	keepAlive = 15 * time.Second
)

// Remote is one remote server: what all its links share. Each link has a back of its own, see Back.
type Remote struct {
	cfg    RemoteConfig
	at     *url.URL
	client *http.Client
	masker mask.Masker
	broken error // why it cannot be used at all

	mu    sync.Mutex
	known knowledge // guarded by mu
	state RemoteState
}

// RemoteState is what was last seen of a remote server.
type RemoteState struct {
	// Problem is why it could not be used the last time it was tried, "" if it could. It holds no secrets.
	Problem string
	// Challenge is the WWW-Authenticate header of its last refusal, for a sign-in (AUC-01); "" if there was none.
	Challenge string
	Since     time.Time // when it came to be so
}

// knowledge is what was found out about a server's era and transport. It ages: a stale verdict never fails by itself (VER-07).
type knowledge struct {
	legacy time.Time   // when it turned out not to be modern
	events bool        // it speaks HTTP+SSE
	offer  mcp.Version // the legacy revision it named in place of a modern one
}

// NewRemote returns a server to which no connection is made yet. It reads the files that cfg names; an error
// says which is at fault. Links to a server returned with an error are refused with it.
func NewRemote(cfg RemoteConfig) (*Remote, error) {
	at, err := url.Parse(cfg.URL)
	if err != nil || at.Host == "" {
		at, err = &url.URL{}, errors.New("cannot use the url of server "+cfg.Name)
	}
	cfg.Limits = cfg.Limits.WithDefaults()
	if cfg.Streams == 0 {
		cfg.Streams = 1024
	}
	if cfg.Conns == 0 {
		cfg.Conns = 4096
	}
	r := &Remote{cfg: cfg, at: at, masker: mask.New(append(slices.Collect(maps.Values(cfg.Headers)), cfg.Secrets...))}
	if err == nil {
		r.client, err = newClient(&r.cfg)
	}
	r.broken = err
	return r, err
}

// Back returns the back of one link. It implements bridge.Back.
func (r *Remote) Back() *RemoteLink { return &RemoteLink{remote: r} }

// State tells what was last seen of the server.
func (r *Remote) State() RemoteState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Close lets go of connections that lie idle.
func (r *Remote) Close() {
	if r.broken == nil {
		r.client.CloseIdleConnections()
	}
}

// saw notes how the server was last found: err is nil if it answered as it should.
func (r *Remote) saw(err error) {
	s := RemoteState{Since: time.Now()}
	if err != nil {
		s.Problem = r.masker.Text(err.Error())
		if u, ok := errors.AsType[*Unauthorized](err); ok {
			s.Challenge = u.Challenge
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Problem == r.state.Problem {
		s.Since = r.state.Since
	}
	r.state = s
}

// Forget has the next opening find out everything anew.
func (r *Remote) Forget() {
	r.learn(knowledge{})
	r.saw(nil)
}

func (r *Remote) knowledge() knowledge {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !known(r.known.legacy) {
		return knowledge{}
	}
	return r.known
}

func (r *Remote) learn(k knowledge) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = k
}

// RemoteLink is the back of one link to a remote server. It has one connection at a time.
type RemoteLink struct {
	remote *Remote

	mu     sync.Mutex
	conn   *bridge.Conn // guarded by mu; the last one
	closed bool         // guarded by mu
}

var _ bridge.Back = (*RemoteLink)(nil)

// Remote returns the server.
func (l *RemoteLink) Remote() *Remote { return l.remote }

// Open implements bridge.Back. Its error says what was tried and what happened, without secrets.
func (l *RemoteLink) Open(ctx context.Context, o bridge.OpenOptions) (*bridge.Conn, error) {
	if l.remote.broken != nil {
		return nil, l.remote.broken
	}
	if err := l.Halt(ctx); err != nil {
		return nil, fmt.Errorf("cannot end the last connection: %w", err)
	}
	d := &dialing{remote: l.remote, o: o}
	c, err := d.run(ctx)
	if err != nil {
		l.remote.saw(err)
		return nil, l.remote.public(err)
	}
	l.remote.saw(nil)
	l.mu.Lock()
	closed := l.closed
	l.conn = c
	l.mu.Unlock()
	if closed {
		return nil, errors.Join(errGone, l.Halt(ctx))
	}
	return c, nil
}

// Halt implements bridge.Back: the connection ends, a session of the server's with it.
func (l *RemoteLink) Halt(ctx context.Context) error {
	l.mu.Lock()
	c := l.conn
	l.conn = nil
	l.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.Close(ctx)
}

// Close implements bridge.Back.
func (l *RemoteLink) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return l.Halt(ctx)
}
