// Package client asks a running bridge what it does and tells it what to do, over its control socket. It owns the words
// for what goes wrong on the way. It must not know what the answers are for.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"mcpbridge/admin"
)

const (
	// answerTime is how long a bridge may take for answers that need no work.
	answerTime = 10 * time.Second
	// maxAnswer is the longest answer taken that is no log, in bytes.
	maxAnswer = 16 << 20
)

// ErrNoBridge is wrapped by errors that mean that no bridge listens at the socket.
var ErrNoBridge = errors.New("is `mcpbridge serve` running? Another --config names another socket")

// Client calls one bridge. It may be used by several goroutines.
type Client struct {
	path string
	http http.Client
}

// Dial returns a client of the bridge whose control socket is at path. It does not connect: each call does.
func Dial(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return &Client{path, http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Status returns what the bridge and its servers do.
func (c *Client) Status(ctx context.Context) (s admin.Status, err error) {
	ctx, done := context.WithTimeout(ctx, answerTime)
	defer done()
	err = c.call(ctx, http.MethodGet, "/v1/status", &s)
	return s, err
}

// Restart ends the processes of a server, so that the next message starts new ones. The error wraps
// [admin.ErrUnknownServer] if there is no such server.
func (c *Client) Restart(ctx context.Context, name string) error {
	path, err := serverPath(name)
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, path+"/restart", nil)
}

// Reload has the configuration read again. The error wraps [admin.ErrConfig] if the file has errors.
func (c *Client) Reload(ctx context.Context) (r admin.Reloaded, err error) {
	err = c.call(ctx, http.MethodPost, "/v1/reload", &r)
	return r, err
}

// Drain has new work refused and returns when nothing is open any more. When ctx ends first, new work stays refused.
func (c *Client) Drain(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/v1/drain", nil)
}

// Logs copies the last lines of a server's log to w and, if follow is set, what comes further until ctx ends or the bridge
// ends the log; both are nil.
func (c *Client) Logs(ctx context.Context, name string, lines int, follow bool, w io.Writer) error {
	path, err := serverPath(name)
	if err != nil {
		return err
	}
	query := url.Values{"lines": {strconv.Itoa(lines)}}
	if follow {
		query.Set("follow", "1")
	}
	body, err := c.open(ctx, http.MethodGet, path+"/logs?"+query.Encode())
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err = io.Copy(w, body); err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot go on with the log of %q: %w", name, c.explain(err))
	}
	return nil
}

// serverPath is where a server is found. Names that mean something else in a path are no server's.
func serverPath(name string) (string, error) {
	if name == "" || name == "." || name == ".." {
		return "", fmt.Errorf("cannot find server %q: %w", name, admin.ErrUnknownServer)
	}
	return "/v1/servers/" + url.PathEscape(name), nil
}

// call makes a request and reads its answer into v, which may be nil.
func (c *Client) call(ctx context.Context, method, path string, v any) error {
	body, err := c.open(ctx, method, path)
	if err != nil {
		return err
	}
	defer body.Close()
	if v == nil {
		return nil
	}
	return c.decode(body, v)
}

func (c *Client) decode(body io.Reader, v any) error {
	data, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	switch {
	case err != nil:
		return c.explain(err)
	case len(data) > maxAnswer:
		return fmt.Errorf("cannot understand the bridge at %s: its answer has more than %d bytes", c.path, maxAnswer)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("cannot understand the bridge at %s, is it of another version? %w", c.path, err)
	}
	return nil
}

// open makes a request and returns the body of its answer, if that is no error.
func (c *Client) open(ctx context.Context, method, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://bridge"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.explain(err)
	}
	if resp.StatusCode/100 == 2 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	return nil, c.refusal(resp)
}

// refusal is the error an answer tells.
func (c *Client) refusal(resp *http.Response) error {
	var f admin.Failure
	if err := c.decode(resp.Body, &f); err != nil || f.Error.Message == "" {
		return fmt.Errorf("cannot get that from the bridge at %s, is it of another version? It says %s", c.path, resp.Status)
	}
	return &refused{f.Error.Code, f.Error.Message}
}

// refused is an error the bridge told.
type refused struct{ code, text string }

func (r *refused) Error() string { return r.text }

func (r *refused) Unwrap() error {
	switch r.code {
	case admin.CodeUnknownServer:
		return admin.ErrUnknownServer
	case admin.CodeConfig:
		return admin.ErrConfig
	}
	return nil
}

// refusedWindows is WSAECONNREFUSED, which package syscall has no portable name for.
const refusedWindows = syscall.Errno(10061)

// explain turns what the network says into what it means here.
func (c *Client) explain(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, refusedWindows):
		return fmt.Errorf("no bridge answers at %s: %w", c.path, ErrNoBridge)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot open control socket %s: it belongs to another user: %w", c.path, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("cannot get an answer from the bridge at %s in time; it is busy or stuck", c.path)
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("cannot get an answer from the bridge at %s: it hung up. Did it stop? It also hangs up on more than %d callers at once",
			c.path, admin.MaxConns)
	}
	return fmt.Errorf("cannot ask the bridge at %s: %w", c.path, err)
}
