package survive

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"mcpbridge/test/internal/e2e"
)

// peer is a client from npm that does what it is told (test/peers/survive.mjs).
type peer struct {
	orders io.WriteCloser

	mu      sync.Mutex
	said    []utterance
	changed chan struct{} // closed and replaced at each line
	over    bool
	read    int // lines the test has looked at
	given   int // orders so far, connecting among them
}

// utterance is a line the client printed.
type utterance struct {
	Done        *state
	Session     string
	Initialized int
	Failed      string
	Note        string
	Params      json.RawMessage
	Get         int
	Error       string
	raw         string
}

// startPeer runs a client until the test ends and returns it with its first outcome, that of connecting.
func startPeer(t testing.TB, url string, flags ...string) (*peer, utterance) {
	t.Helper()
	shop.Peer(t, "@modelcontextprotocol/sdk/package.json")
	script, err := filepath.Abs("../peers/survive.mjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(shop.Node(t), append([]string{script, url}, flags...)...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	p := &peer{changed: make(chan struct{}), given: 1}
	out, err := cmd.StdoutPipe()
	if err == nil {
		if p.orders, err = cmd.StdinPipe(); err == nil {
			err = cmd.Start()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.listen(out)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.orders.Close()
		select {
		case <-done:
		case <-time.After(e2e.Patience):
			_ = cmd.Process.Kill()
			<-done
		}
		if t.Failed() {
			for _, u := range p.said {
				t.Log("the client said", u.raw)
			}
			t.Logf("its stderr: %s", &complaints)
		}
	})
	return p, p.outcome(t)
}

func (p *peer) listen(out io.Reader) {
	in := bufio.NewScanner(out)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		u := utterance{raw: in.Text()}
		if err := json.Unmarshal(in.Bytes(), &u); err != nil {
			u.Error = fmt.Sprintf("%s: %v", in.Bytes(), err)
		}
		p.add(func() { p.said = append(p.said, u) })
	}
	p.add(func() { p.over = true })
}

func (p *peer) add(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// await returns the nth line, counted from 1, that fits, of those from number from on.
func (p *peer) await(t testing.TB, what string, from, nth int, fits func(utterance) bool) utterance {
	t.Helper()
	late := time.After(e2e.Patience)
	for {
		p.mu.Lock()
		said, changed, over := p.said, p.changed, p.over
		p.mu.Unlock()
		for ; from < len(said); from++ {
			if fits(said[from]) {
				if nth--; nth == 0 {
					return said[from]
				}
			}
		}
		if over {
			t.Fatalf("the client has ended; wanted: %s", what)
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("the client does not say %s", what)
		}
	}
}

// forget has notes and the like count from now on only.
func (p *peer) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read = len(p.said)
}

// order has the client do something and returns the outcome, which must be a good one.
func (p *peer) order(t testing.TB, format string, a ...any) utterance {
	t.Helper()
	if _, err := fmt.Fprintf(p.orders, format+"\n", a...); err != nil {
		t.Fatal(err)
	}
	p.given++
	return p.outcome(t)
}

// outcome waits for the outcome of the order given last. They come in order, one for each.
func (p *peer) outcome(t testing.TB) utterance {
	t.Helper()
	u := p.await(t, "what became of an order", 0, p.given, func(u utterance) bool { return u.Done != nil || u.Failed != "" })
	if u.Failed != "" {
		t.Fatalf("the client failed: %s", u.Failed)
	}
	return u
}

func (p *peer) next(t testing.TB) utterance {
	t.Helper()
	return p.order(t, `{"do":"call","name":"next"}`)
}

// announced has the server send a notification, which must reach the client on its stream.
func (p *peer) announced(t testing.TB, method, params string) {
	t.Helper()
	p.forget()
	p.announce(t, method, params)
	p.noted(t, method)
}

func (p *peer) announce(t testing.TB, method, params string) {
	t.Helper()
	p.order(t, `{"do":"call","name":"announce","arguments":{"method":%q,"params":%s}}`, method, params)
}

// noted waits until the client has been sent a notification since it was told to forget.
func (p *peer) noted(t testing.TB, method string) {
	t.Helper()
	p.await(t, method, p.read, 1, func(u utterance) bool { return u.Note == method })
}

// streaming waits until the client has opened its GET stream since it was told to forget.
func (p *peer) streaming(t testing.TB) {
	t.Helper()
	if u := p.await(t, "that its stream is open", p.read, 1, func(u utterance) bool { return u.Get != 0 }); u.Get != 200 {
		t.Errorf("GET was answered with %d", u.Get)
	}
}
