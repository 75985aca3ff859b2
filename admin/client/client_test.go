package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"mcpbridge/admin"
	"mcpbridge/admin/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen runs handler on a socket.
func listen(t *testing.T, handler http.Handler) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "b.sock")
	l, err := admin.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: handler}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-ended; _ = os.RemoveAll(dir) })
	return path
}

// echo is a bridge that answers with what it was asked.
type echo struct{ asked chan string }

func (e echo) Status() admin.Status {
	return admin.Status{Bridge: admin.Bridge{Version: "1", StartedAt: time.Unix(1, 0).UTC()}, Servers: []admin.Server{{Name: "a", State: "idle"}}}
}

func (e echo) Restart(_ context.Context, name string) error {
	if name == "unknown" {
		return fmt.Errorf("cannot restart %q: %w", name, admin.ErrUnknownServer)
	}
	e.asked <- name
	return nil
}

func (e echo) Reload(context.Context) (admin.Reloaded, error) {
	return admin.Reloaded{Changed: []string{"a"}}, nil
}

func (e echo) Drain(context.Context) error { e.asked <- "drain"; return nil }

func (e echo) Logs(name string) (admin.LogSource, error) { return tailOf(name), nil }

type tailOf string

func (l tailOf) Tail(n int, w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d of %s\n", n, string(l))
	return err
}

func (l tailOf) Follow(_ context.Context, n int, w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d and more of %s\n", n, string(l))
	return err
}

func TestCalls(t *testing.T) {
	b := echo{make(chan string, 1)}
	c := client.Dial(listen(t, admin.Handler(b)))
	s, err := c.Status(t.Context())
	want := b.Status()
	want.Bridge.Listening, want.Servers[0].URLs, want.Servers[0].Processes = []string{}, []string{}, []admin.Process{}
	if diff := cmp.Diff(want, s); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	r, err := c.Reload(t.Context())
	if err != nil || len(r.Changed) != 1 || r.Added == nil {
		t.Errorf("%+v, %v", r, err)
	}
	if err := c.Drain(t.Context()); err != nil || <-b.asked != "drain" {
		t.Error(err)
	}
}

// Names arrive as they are, whatever they would mean in a URL; those that cannot be a server's go nowhere.
func TestHostileNames(t *testing.T) {
	b := echo{make(chan string, 1)}
	c := client.Dial(listen(t, admin.Handler(b)))
	for _, name := range []string{"plain", "with space", "ümläut", "中文", "😀", "a%2Fb", "a/b", "../../v1/status", "%2e%2e", "a?b=c", "a#b", "a;b", "a+b&c", `a\b`, `"`, "..a", "...", "-", "restart",
		"a//b", "\x7f", "a\nb", strings.Repeat("😀", 64)} {
		if err := c.Restart(t.Context(), name); err != nil {
			t.Errorf("%q: %v", name, err)
		} else if got := <-b.asked; got != name {
			t.Errorf("%q arrived as %q", name, got)
		}
		var out strings.Builder
		if err := c.Logs(t.Context(), name, 3, false, &out); err != nil || out.String() != "3 of "+name+"\n" {
			t.Errorf("%q: %q, %v", name, out.String(), err)
		}
		out.Reset()
		if err := c.Logs(t.Context(), name, 4, true, &out); err != nil || out.String() != "4 and more of "+name+"\n" {
			t.Errorf("%q: %q, %v", name, out.String(), err)
		}
	}
	for _, name := range []string{"", ".", ".."} {
		if err := c.Restart(t.Context(), name); !errors.Is(err, admin.ErrUnknownServer) {
			t.Errorf("%q: %v", name, err)
		}
		if err := c.Logs(t.Context(), name, 1, false, io.Discard); !errors.Is(err, admin.ErrUnknownServer) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Errors of the bridge arrive with their text and kind.
func TestErrorsArrive(t *testing.T) {
	c := client.Dial(listen(t, admin.Handler(echo{})))
	err := c.Restart(t.Context(), "unknown")
	if !errors.Is(err, admin.ErrUnknownServer) || err.Error() != `cannot restart "unknown": there is no server of that name; `+"`mcpbridge status` lists them" {
		t.Errorf("%v", err)
	}
	if err := c.Logs(t.Context(), "a", -1, false, io.Discard); err == nil || !strings.Contains(err.Error(), `cannot show "-1" lines`) {
		t.Errorf("%v", err)
	}
	c = client.Dial(listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(422)
		_, _ = io.WriteString(w, `{"error":{"code":"bad_config","message":"c.json:1:2: oops"}}`)
	})))
	if _, err := c.Reload(t.Context()); !errors.Is(err, admin.ErrConfig) || err.Error() != "c.json:1:2: oops" {
		t.Errorf("%v", err)
	}
}

// What goes wrong on the way says what to do.
func TestNoBridge(t *testing.T) {
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dead := filepath.Join(dir, "dead.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	for _, path := range []string{dead, filepath.Join(dir, "none.sock"), filepath.Join(dir, "no", "folder.sock")} {
		_, err := client.Dial(path).Status(t.Context())
		if want := "no bridge answers at " + path + ": is `mcpbridge serve` running? Another --config names another socket"; !errors.Is(err, client.ErrNoBridge) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// answers is a server that is no bridge of this version.
func TestStrangeAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(http.ResponseWriter)
		says   string // "" is no error
	}{
		{"not found", func(w http.ResponseWriter) { http.NotFound(w, nil) }, "is it of another version? It says 404 Not Found"},
		{"no JSON", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") }, "is it of another version? invalid character"},
		{"more than is known", func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"bridge":{"new":1},"more":[]}`) }, ""},
		{"the longest", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "{}"+strings.Repeat(" ", 16<<20-2)) }, ""},
		{"too long", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "{}"+strings.Repeat(" ", 16<<20-1)) }, "its answer has more than 16777216 bytes"},
		{"hangs up", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "it hung up"},
		{"hangs up later", func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "it hung up"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tt.answer(w) }))
			_, err := client.Dial(path).Status(t.Context())
			if (err == nil) != (tt.says == "") || err != nil && (!strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), path)) {
				t.Errorf("%v, want %q", err, tt.says)
			}
		})
	}
}

// A bridge that stays silent is given up, with a reason.
func TestSilentBridge(t *testing.T) {
	silent := make(chan struct{})
	path := listen(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-silent }))
	defer close(silent)
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, err := client.Dial(path).Status(ctx); err == nil || !strings.Contains(err.Error(), "in time; it is busy or stuck") {
		t.Errorf("%v", err)
	}
}

// A log that breaks off is an error, one whose reader leaves is none.
func TestLogBreaksOff(t *testing.T) {
	path := listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "line\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	var out strings.Builder
	err := client.Dial(path).Logs(t.Context(), "a", 1, true, &out)
	if err == nil || !strings.HasPrefix(err.Error(), `cannot go on with the log of "a": `) || out.String() != "line\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
