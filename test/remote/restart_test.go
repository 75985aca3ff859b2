package remote

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const callers = 16

// load has 16 callers call the tool echo, until stopped. Every call must have exactly one answer, its own or an error of the bridge.
type load struct {
	good, failed atomic.Int64
	reasons      sync.Map
	stop         context.CancelFunc
	wg           sync.WaitGroup
	mu           sync.Mutex
	wrong        []string
}

func start(t *testing.T, clients ...*client) *load {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{stop: stop}
	for i := range callers {
		c := clients[i%len(clients)]
		l.wg.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				l.one(c, i*1_000_000+n)
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

func (l *load) one(c *client, id int) {
	text := fmt.Sprintf("call %d", id)
	a, err := c.call(context.Background(), id, "echo", fmt.Sprintf(`{"text":%q}`, text))
	switch {
	case err != nil:
		l.fault(err.Error())
	case a.Error != nil && a.Error.Data.Source == "bridge":
		l.failed.Add(1)
		l.reasons.Store(a.Error.Data.Reason, true)
	case a.Error != nil:
		l.fault("call failed with an error of nobody's: " + a.Error.Message)
	case !strings.Contains(string(a.Result), `"`+text+`"`):
		l.fault(text + " got " + string(a.Result))
	default:
		l.good.Add(1)
	}
}

func (l *load) fault(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, text)
}

func (l *load) end() {
	l.stop()
	l.wg.Wait()
}

// reach waits until so many more calls were good.
func (l *load) reach(t *testing.T, more int64) {
	t.Helper()
	want := l.good.Load() + more
	for late := time.Now().Add(patience); l.good.Load() < want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%d of %d good calls, %d failed", l.good.Load(), want, l.failed.Load())
		}
	}
}

func (l *load) judge(t *testing.T) {
	t.Helper()
	l.end()
	for _, w := range l.wrong {
		t.Error(w)
	}
	l.reasons.Range(func(reason, _ any) bool {
		switch reason {
		case "back_unavailable", "back_disconnected", "back_terminated":
		default:
			t.Errorf("a call failed with reason %v", reason)
		}
		return true
	})
	t.Logf("%d good, %d failed", l.good.Load(), l.failed.Load())
}

// Another bridge as the server is killed under 16 callers of both eras and comes back: every call has exactly one answer, sessions of
// the near bridge go on, and so do later calls (rules 2 and 3).
func TestRemoteKilledUnderLoad(t *testing.T) {
	far := shop.House(t, fmt.Sprintf(`"mcpServers": {"demo": {"command": %q, "args": ["demo-server"]}}`, shop.Bridge(t)))
	tenant := far.Start(t)
	url := "http://" + far.Addr + "/mcp"
	house, _ := near(t, fmt.Sprintf(`"auto": {"url": %q}, "legacy": {"url": %q, "protocol": "legacy"}`, url, url))
	l := start(t, modern(t, house.URL("auto")), legacy(t, house.URL("auto")), modern(t, house.URL("legacy")), legacy(t, house.URL("legacy")))
	for range 3 {
		l.reach(t, 200)
		tenant.Kill(t)
		time.Sleep(100 * time.Millisecond) // how long it is away, not a wait
		tenant = far.Start(t)
	}
	l.reach(t, 200)
	l.judge(t)
}

type echoIn struct {
	Text string `json:"text"`
}

// sdkServer is a server of the official Go SDK with one tool.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in echoIn) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	return s
}

// streamableSDK serves one for each session, in both eras.
func streamableSDK() http.Handler {
	s := sdkServer()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
}

// place is a listener's address at which one HTTP server follows another.
type place struct {
	t    *testing.T
	addr string
	srv  *httptest.Server
}

func (p *place) open(h http.Handler) {
	p.t.Helper()
	addr := p.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	var l net.Listener
	var err error
	for late := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if l, err = net.Listen("tcp", addr); err == nil || time.Now().After(late) {
			break
		}
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.addr = l.Addr().String()
	p.srv = &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	p.srv.Start()
}

func (p *place) close() {
	p.srv.CloseClientConnections()
	p.srv.Config.Close()
	p.srv.Listener.Close()
}

// Servers of the Go SDK, of each transport, lose everything in a restart, their sessions too: the near bridge opens others, and its own
// sessions go on (HTTP-L-22, SSE-11).
func TestSDKServersRestarted(t *testing.T) {
	streamable := func(o *mcp.StreamableHTTPOptions) func() http.Handler {
		return func() http.Handler {
			s := sdkServer()
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, o)
		}
	}
	for name, handler := range map[string]func() http.Handler{
		"stateful":       streamable(nil),
		"stateless":      streamable(&mcp.StreamableHTTPOptions{Stateless: true}),
		"stateless json": streamable(&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}),
		"sse": func() http.Handler {
			s := sdkServer()
			return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			far := &place{t: t}
			far.open(handler())
			t.Cleanup(func() { far.close() })
			house, _ := near(t, fmt.Sprintf(`"far": {"url": "http://%s/mcp"}`, far.addr))
			l := start(t, modern(t, house.URL("far")), legacy(t, house.URL("far")), legacy(t, house.URL("far")))
			for range 2 {
				l.reach(t, 200)
				far.close()
				far.open(handler())
			}
			l.reach(t, 200)
			l.judge(t)
		})
	}
}
