package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Hub is where fixture processes report. It numbers them in the order of their start.
type Hub struct {
	l  net.Listener
	wg sync.WaitGroup

	mu       sync.Mutex
	children []*Child
	changed  chan struct{} // closed and replaced whenever anything was reported
}

func newHub(t testing.TB) *Hub {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("cannot listen for fixtures: %v", err)
	}
	h := &Hub{l: l, changed: make(chan struct{})}
	h.wg.Go(h.accept)
	t.Cleanup(func() {
		_ = l.Close()
		h.mu.Lock()
		for _, c := range h.children {
			_ = c.conn.Close()
		}
		h.mu.Unlock()
		h.wg.Wait()
	})
	return h
}

func (h *Hub) addr() string { return h.l.Addr().String() }

func (h *Hub) accept() {
	for {
		conn, err := h.l.Accept()
		if err != nil {
			return
		}
		c := &Child{hub: h, conn: conn}
		h.mu.Lock()
		h.children = append(h.children, c)
		h.mu.Unlock()
		h.wg.Go(c.listen)
	}
}

// Started is how many fixture processes there have been.
func (h *Hub) Started() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, c := range h.children {
		if c.pid != 0 {
			n++
		}
	}
	return n
}

// Child waits for the nth fixture process, counted from 0.
func (h *Hub) Child(t testing.TB, n int) *Child {
	t.Helper()
	var c *Child
	if !h.wait(func() bool {
		if len(h.children) > n && h.children[n].pid != 0 {
			c = h.children[n]
		}
		return c != nil
	}) {
		t.Fatalf("fixture process %d was not started", n)
	}
	return c
}

// wait returns true once ok does, which is called with the lock held; false after Patience.
func (h *Hub) wait(ok func() bool) bool {
	late := time.After(Patience)
	for {
		h.mu.Lock()
		done, changed := ok(), h.changed
		h.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-changed:
		case <-late:
			return false
		}
	}
}

// Child is one fixture process as its test sees it.
type Child struct {
	hub  *Hub
	conn net.Conn
	send sync.Mutex

	// guarded by hub.mu
	pid    int
	lines  [][]byte // as read, with their ends
	synced int
	eof    bool // its input has ended
	gone   bool // the process has
}

// Kinds of frames, see the fixture.
const (
	kindHello  = 'h'
	kindLine   = 'l'
	kindEOF    = 'e'
	kindSynced = 's'
	kindWrite  = 'w'
	kindExit   = 'x'
	kindClose  = 'c'
	kindSync   = 's'
)

func (c *Child) listen() {
	for {
		var head [5]byte
		_, err := io.ReadFull(c.conn, head[:])
		payload := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if err == nil {
			_, err = io.ReadFull(c.conn, payload)
		}
		c.hub.mu.Lock()
		if err != nil {
			c.gone = true
		} else {
			c.takeLocked(head[0], payload)
		}
		close(c.hub.changed)
		c.hub.changed = make(chan struct{})
		c.hub.mu.Unlock()
		if err != nil {
			_ = c.conn.Close()
			return
		}
	}
}

func (c *Child) takeLocked(kind byte, payload []byte) {
	switch kind {
	case kindHello:
		c.pid, _ = strconv.Atoi(string(payload))
	case kindLine:
		c.lines = append(c.lines, payload)
	case kindEOF:
		c.eof = true
	case kindSynced:
		c.synced++
	}
}

func (c *Child) order(t testing.TB, kind byte, payload []byte) {
	t.Helper()
	if err := c.tell(kind, payload); err != nil {
		t.Fatal(err)
	}
}

func (c *Child) tell(kind byte, payload []byte) error {
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(payload)))
	c.send.Lock()
	defer c.send.Unlock()
	if _, err := c.conn.Write(append(head, payload...)); err != nil {
		return fmt.Errorf("cannot steer fixture process %d: %w", c.pid, err)
	}
	return nil
}

// Say is Write for goroutines that may not end the test.
func (c *Child) Say(text string) error { return c.tell(kindWrite, []byte(text)) }

// Write has the process write these bytes to its output at once.
func (c *Child) Write(t testing.TB, text string) {
	t.Helper()
	c.order(t, kindWrite, []byte(text))
}

// Exit has the process end with a status.
func (c *Child) Exit(t testing.TB, status int) {
	t.Helper()
	c.order(t, kindExit, []byte(strconv.Itoa(status)))
}

// CloseOutput has the process close its output and live on.
func (c *Child) CloseOutput(t testing.TB) {
	t.Helper()
	c.order(t, kindClose, nil)
}

// Kill ends the process the hard way.
func (c *Child) Kill(t testing.TB) {
	t.Helper()
	p, err := os.FindProcess(c.Pid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatalf("cannot kill fixture process: %v", err)
	}
}

// Pid is its process number.
func (c *Child) Pid() int {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	return c.pid
}

// Seen returns all lines the process has read so far, with their ends.
func (c *Child) Seen(t testing.TB) [][]byte {
	t.Helper()
	c.hub.mu.Lock()
	want, gone := c.synced+1, c.gone
	c.hub.mu.Unlock()
	if !gone {
		c.order(t, kindSync, nil)
		if !c.hub.wait(func() bool { return c.synced >= want || c.gone }) {
			t.Fatalf("fixture process %d does not answer its control connection", c.pid)
		}
	}
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	return append([][]byte(nil), c.lines...)
}

// Await waits until the process has read a line that holds all these texts, from line number from on, and returns it
// and the number of the next line.
func (c *Child) Await(t testing.TB, from int, texts ...string) (line []byte, next int) {
	t.Helper()
	line, next, err := c.Find(from, texts...)
	if err != nil {
		t.Fatalf("%v; it was sent:\n%s", err, clip(bytes.Join(c.Seen(t), nil)))
	}
	return line, next
}

// Find is Await for goroutines that may not end the test.
func (c *Child) Find(from int, texts ...string) (line []byte, next int, err error) {
	i := from
	if !c.hub.wait(func() bool {
		for ; i < len(c.lines); i++ {
			if holds(c.lines[i], texts) {
				line = c.lines[i]
				return true
			}
		}
		return false
	}) {
		return nil, 0, fmt.Errorf("fixture process %d was not sent a line with %q", c.Pid(), texts)
	}
	return line, i + 1, nil
}

func holds(line []byte, texts []string) bool {
	for _, text := range texts {
		if !bytes.Contains(line, []byte(text)) {
			return false
		}
	}
	return true
}

// AwaitEOF waits until the process's input has ended.
func (c *Child) AwaitEOF(t testing.TB) {
	t.Helper()
	if !c.hub.wait(func() bool { return c.eof || c.gone }) {
		t.Fatalf("the input of fixture process %d was not closed", c.pid)
	}
}

// AwaitGone waits until the process has ended.
func (c *Child) AwaitGone(t testing.TB) {
	t.Helper()
	if !c.hub.wait(func() bool { return c.gone }) {
		t.Fatalf("fixture process %d lives on", c.pid)
	}
}

func clip(b []byte) []byte { return b[:min(len(b), 4<<10)] }
