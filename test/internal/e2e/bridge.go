package e2e

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpbridge/config"
	"mcpbridge/daemon"
)

// Patience is how long anything may take before a test gives up on it. It is a net, never a pause.
const Patience = 15 * time.Second

// Options say what to run.
type Options struct {
	Fixture string   // path of the fixture server's program
	Args    []string // its arguments
	Blind   bool     // the fixture reports nothing, for load
	Edit    func(*config.Config, *config.Server)
}

// Bridge is a running daemon with one fixture server behind it.
type Bridge struct {
	URL    string // of the endpoint
	Addr   string // host:port of the first listener
	Listen []string
	Hub    *Hub
	Client *http.Client
	log    *journal
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

// Start runs a daemon until the test ends.
func Start(t testing.TB, o Options) *Bridge {
	t.Helper()
	hub := newHub(t)
	argv := []string{o.Fixture}
	if !o.Blind {
		argv = append(argv, "-control", hub.addr())
	}
	c := config.ForCommand(append(argv, o.Args...))
	c.Listen = []string{"127.0.0.1:0"}
	if o.Edit != nil {
		o.Edit(c, &c.Servers[0])
	}
	b := &Bridge{Hub: hub, log: &journal{}, ended: make(chan struct{})}
	ready := make(chan daemon.Address, 1)
	d, err := daemon.New(daemon.Options{Config: c, Log: zerolog.New(b.log).Level(zerolog.DebugLevel), Version: "test",
		Ready: func(a daemon.Address) { ready <- a }})
	if err != nil {
		t.Fatalf("cannot build the bridge: %v", err)
	}
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(context.Background())
	go func() {
		b.err = d.Run(ctx)
		close(b.ended)
	}()
	select {
	case a := <-ready:
		b.URL, b.Listen, b.Addr = a.Endpoints["default"][0], a.Listening, a.Listening[0]
	case <-b.ended:
		t.Fatalf("cannot run the bridge: %v", b.err)
	}
	b.Client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128, DisableCompression: true}}
	t.Cleanup(func() {
		b.Client.CloseIdleConnections()
		if err := b.Stop(); err != nil {
			t.Errorf("cannot stop the bridge in order: %v", err)
		}
		if t.Failed() {
			t.Logf("log of the bridge:\n%s", b.log.tail())
		}
	})
	return b
}

// Stop ends the daemon in order, waits for it, and returns what Run returned.
func (b *Bridge) Stop() error {
	b.cancel()
	select {
	case <-b.ended:
		return b.err
	case <-time.After(Patience):
		return errors.New("it did not stop")
	}
}

// Stopping ends the daemon and does not wait.
func (b *Bridge) Stopping() { b.cancel() }

// Log returns everything the daemon has logged.
func (b *Bridge) Log() string { return b.log.String() }

// AwaitLog waits until the log holds a text.
func (b *Bridge) AwaitLog(t testing.TB, text string) {
	t.Helper()
	if !b.log.await(text) {
		t.Fatalf("the log does not hold %q:\n%s", text, b.log.tail())
	}
}

// journal keeps log lines and wakes those who wait for one.
type journal struct {
	mu   sync.Mutex
	b    bytes.Buffer
	more chan struct{}
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.more != nil {
		close(j.more)
		j.more = nil
	}
	return j.b.Write(p)
}

func (j *journal) await(text string) bool {
	late := time.After(Patience)
	for {
		j.mu.Lock()
		found := bytes.Contains(j.b.Bytes(), []byte(text))
		if j.more == nil {
			j.more = make(chan struct{})
		}
		more := j.more
		j.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-more:
		case <-late:
			return false
		}
	}
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

func (j *journal) tail() string {
	s := j.String()
	return s[max(0, len(s)-8<<10):]
}
