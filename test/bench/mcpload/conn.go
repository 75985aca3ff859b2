//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"mcpbridge/test/internal/jscan"
)

// conn is one HTTP/1.1 keep-alive connection that speaks MCP.
type conn struct {
	host, path    string
	modern        bool
	session       string
	notifications int
	reconnects    int

	c    net.Conn
	r    *bufio.Reader
	head []byte // request head, reused
	body []byte // response body, reused
}

// errNoResponse: an event stream ended without the response.
var errNoResponse = errors.New("stream ended without the response")

// statusError is an HTTP answer that carries no JSON-RPC response.
type statusError struct {
	status int
	body   string
}

func (e *statusError) Error() string { return fmt.Sprintf("HTTP %d %s", e.status, e.body) }

func newConn(endpoint string, modern bool) (*conn, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("cannot parse endpoint: %w", err)
	}
	return &conn{host: u.Host, path: u.RequestURI(), modern: modern}, nil
}

func (c *conn) close() {
	if c.c != nil {
		c.c.Close()
		c.c = nil
	}
}

func (c *conn) dial() error {
	if c.c != nil {
		return nil
	}
	n, err := net.DialTimeout("tcp", c.host, 5*time.Second)
	if err != nil {
		return err
	}
	c.c = n
	if c.r == nil {
		c.r = bufio.NewReaderSize(n, 64<<10)
	} else {
		c.r.Reset(n)
	}
	return nil
}

// open runs the legacy handshake; a modern connection needs none.
func (c *conn) open(timeout time.Duration) error {
	if c.modern {
		return nil
	}
	c.session = ""
	m, err := c.roundTrip("initialize", "", []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcpload","version":"1"}}}`), timeout)
	if err != nil {
		return fmt.Errorf("cannot initialize: %w", err)
	}
	if jscan.Get(m, "result") == nil {
		return fmt.Errorf("cannot initialize: %.200s", m)
	}
	_, err = c.roundTrip("notifications/initialized", "", []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), timeout)
	return err
}

// roundTrip posts a message and returns the response message, valid until the next
// call; nil for 202. A keep-alive connection that the server closed while idle is
// opened again once.
func (c *conn) roundTrip(method, name string, message []byte, timeout time.Duration) ([]byte, error) {
	kept := c.c != nil
	m, begun, err := c.try(method, name, message, timeout)
	if err == nil || begun || !kept || !closedIdle(err) {
		return m, err
	}
	c.reconnects++
	m, _, err = c.try(method, name, message, timeout)
	return m, err
}

func closedIdle(err error) bool {
	return errors.Is(err, io.EOF) || strings.Contains(err.Error(), "reset by peer") || strings.Contains(err.Error(), "broken pipe")
}

// try is one attempt; begun says that the head of a response had arrived.
func (c *conn) try(method, name string, message []byte, timeout time.Duration) (m []byte, begun bool, err error) {
	if err := c.send(method, name, message); err != nil {
		c.close()
		return nil, false, err
	}
	if err := c.c.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, false, err
	}
	h, err := c.readHead()
	if err != nil {
		c.close()
		return nil, false, err
	}
	if h.session != "" {
		c.session = h.session
	}
	b, err := c.readBody(h)
	if err != nil {
		c.close()
		return nil, true, fmt.Errorf("connection lost in the response: %w", err)
	}
	if h.close {
		c.close()
	}
	m, err = c.message(h, b)
	return m, true, err
}

func (c *conn) message(h responseHead, b []byte) ([]byte, error) {
	switch {
	case h.status == 202:
		return nil, nil
	case h.status != 200:
		return nil, &statusError{h.status, string(b[:min(len(b), 160)])}
	case h.events:
		return c.pickResponse(b)
	}
	return b, nil
}

func (c *conn) send(method, name string, message []byte) error {
	if err := c.dial(); err != nil {
		return err
	}
	h := append(c.head[:0], "POST "...)
	h = append(h, c.path...)
	h = append(h, " HTTP/1.1\r\nHost: "...)
	h = append(h, c.host...)
	h = append(h, "\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: "...)
	h = strconv.AppendInt(h, int64(len(message)), 10)
	h = append(h, "\r\n"...)
	h = c.protocolHeaders(h, method, name)
	h = append(h, "\r\n"...)
	if len(message) <= 32<<10 { // one segment's worth: one write
		h = append(h, message...)
		message = nil
	}
	c.head = h
	if _, err := c.c.Write(h); err != nil || message == nil {
		return err
	}
	_, err := c.c.Write(message)
	return err
}

func (c *conn) protocolHeaders(h []byte, method, name string) []byte {
	add := func(key, value string) {
		if value != "" {
			h = append(append(append(append(h, key...), ": "...), value...), "\r\n"...)
		}
	}
	if c.modern {
		add("MCP-Protocol-Version", "2026-07-28")
		add("Mcp-Method", method)
		add("Mcp-Name", name)
		return h
	}
	if method != "initialize" {
		add("MCP-Protocol-Version", "2025-11-25")
	}
	add("Mcp-Session-Id", c.session)
	return h
}

// pickResponse returns the data of the event that is no notification.
func (c *conn) pickResponse(b []byte) ([]byte, error) {
	var response []byte
	for line := range bytes.Lines(b) {
		data, isData := bytes.CutPrefix(line, []byte("data:"))
		data = bytes.TrimSpace(data)
		if !isData || len(data) == 0 {
			continue
		}
		// A response has no method; notifications and requests name it early.
		if jscan.Get(data[:min(len(data), 4096)], "method") != nil {
			c.notifications++
			continue
		}
		response = data
	}
	if response == nil {
		return nil, errNoResponse
	}
	return response, nil
}
