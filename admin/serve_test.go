package admin_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"mcpbridge/admin"
	"mcpbridge/admin/client"
)

// trickle is a log whose lines a test sends, and that tells when its reader is gone.
type trickle struct {
	lines chan string
	gone  chan struct{}
}

func newTrickle() trickle { return trickle{make(chan string), make(chan struct{})} }

func (l trickle) Tail(int, io.Writer) error { return errors.New("not followed") }

func (l trickle) Follow(ctx context.Context, n int, w io.Writer) error {
	defer close(l.gone)
	if _, err := fmt.Fprintf(w, "last %d\n", n); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, ok := <-l.lines:
			if !ok {
				return nil
			}
			if _, err := io.WriteString(w, line+"\n"); err != nil {
				return err
			}
		}
	}
}

// follow follows the log of server "a" and returns its lines, and how it ends.
func follow(ctx context.Context, path string) (*bufio.Scanner, <-chan error) {
	r, w := io.Pipe()
	end := make(chan error, 1)
	go func() {
		err := client.Dial(path).Logs(ctx, "a", 7, true, w)
		_ = w.Close()
		end <- err
	}()
	return bufio.NewScanner(r), end
}

func expect(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	if !lines.Scan() || lines.Text() != want {
		t.Fatalf("%q, want %q", lines.Text(), want)
	}
}

// Each line goes out at once, and the reader's leaving ends the follower.
func TestFollow(t *testing.T) {
	log := newTrickle()
	path, _ := serve(t, &fake{logs: map[string]admin.LogSource{"a": log}})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	lines, end := follow(ctx, path)
	expect(t, lines, "last 7")
	for _, line := range []string{"one", "zwei", "😀"} {
		log.lines <- line
		expect(t, lines, line)
	}
	leave()
	within(t, log.gone, "the follower's end")
	if err := <-end; err != nil {
		t.Errorf("leaving is no error, but %v", err)
	}
}

// The end of the log and the end of the bridge end the answer in order.
func TestFollowEndsInOrder(t *testing.T) {
	for _, how := range []string{"log", "bridge"} {
		log := newTrickle()
		path, stop := serve(t, &fake{logs: map[string]admin.LogSource{"a": log}})
		lines, end := follow(t.Context(), path)
		expect(t, lines, "last 7")
		if how == "log" {
			close(log.lines)
		} else {
			stop()
		}
		within(t, log.gone, "the follower's end")
		if lines.Scan() {
			t.Errorf("%s: further line %q", how, lines.Text())
		}
		if err := <-end; err != nil {
			t.Errorf("%s: %v", how, err)
		}
		stop()
	}
}

// A reader that takes nothing holds up neither other callers nor the end of the bridge.
func TestSlowReader(t *testing.T) {
	gone := make(chan struct{})
	stuck := source{follow: func(_ context.Context, _ int, w io.Writer) error {
		defer close(gone)
		for {
			if _, err := io.WriteString(w, strings.Repeat("x", 1000)+"\n"); err != nil {
				return err
			}
		}
	}}
	path, stop := serve(t, &fake{logs: map[string]admin.LogSource{"a": stuck}})
	c := dial(t, path)
	if _, err := io.WriteString(c, "GET /v1/servers/a/logs?follow=1 HTTP/1.1\r\nHost: bridge\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := client.Dial(path).Status(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stop() // waits for the follower
	within(t, gone, "the follower's end")
}

// The end of the bridge is told to what is under way, which is waited for.
func TestServeWaits(t *testing.T) {
	begun, finished := make(chan struct{}), false
	path, stop := serve(t, &fake{drain: func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		finished = true
		return errors.New("cannot wait: the bridge stops")
	}})
	end := make(chan error, 1)
	go func() { end <- client.Dial(path).Drain(t.Context()) }()
	within(t, begun, "the request")
	stop()
	if !finished {
		t.Error("Serve returned before the request had ended")
	}
	if err := <-end; err == nil || err.Error() != "cannot wait: the bridge stops" {
		t.Errorf("%v", err)
	}
	if _, err := net.Dial("unix", path); err == nil {
		t.Error("somebody still listens")
	}
}

// A caller who leaves ends what it asked for.
func TestCallerLeaves(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	path, _ := serve(t, &fake{restart: func(ctx context.Context, _ string) error {
		close(begun)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}})
	ctx, leave := context.WithCancel(t.Context())
	end := make(chan error, 1)
	go func() { end <- client.Dial(path).Restart(ctx, "a") }()
	within(t, begun, "the request")
	leave()
	within(t, ended, "its end")
	if err := <-end; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A listener that breaks is an error that names the socket.
func TestServeFails(t *testing.T) {
	path := socket(t)
	l, err := admin.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := admin.Serve(t.Context(), l, &fake{}); err == nil || !strings.HasPrefix(err.Error(), "cannot answer on the control socket "+path) {
		t.Errorf("%v", err)
	}
}
