//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"mcpbridge/test/internal/jscan"
)

// pipe is a stdio server driven over its pipes, without a bridge.
type pipe struct {
	cmd  *exec.Cmd
	in   *bufio.Reader
	send chan []byte
	big  []byte
}

// slot is one of the calls in flight.
type slot struct {
	caller *caller
	id     int64
	began  time.Time
}

// direct keeps o.callers calls in flight over one pair of pipes.
func direct(o *options) (*result, error) {
	if len(o.command) == 0 {
		return nil, errors.New("direct needs a command after --")
	}
	began := time.Now()
	p, err := startPipe(o)
	if err != nil {
		return nil, err
	}
	defer p.end()
	var t tally
	t.r.Callers, t.r.Size = o.callers, o.spec.size
	t.r.Startup = float64(time.Since(began)) / 1e6

	slots := make([]slot, o.callers)
	for i := range slots {
		slots[i] = slot{caller: newCaller(o.spec, false, i), id: int64(i)}
		p.issue(&slots[i], o.callers)
	}
	var counted, deadline time.Time
	deadline = time.Now().Add(o.warm)
	for {
		line, id, err := p.response()
		if err != nil {
			return nil, err
		}
		now := time.Now()
		s := &slots[int(id)%o.callers]
		if v := s.caller.check(line, s.id); v != good {
			t.verdict(v, line)
		} else if !counted.IsZero() {
			t.latencies = append(t.latencies, int64(now.Sub(s.began)))
		}
		if now.After(deadline) {
			if !counted.IsZero() {
				return t.finish(now.Sub(counted)), nil
			}
			counted, deadline = now, now.Add(o.duration)
		}
		p.issue(s, o.callers)
	}
}

func startPipe(o *options) (*pipe, error) {
	cmd := exec.Command(o.command[0], o.command[1:]...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start server: %w", err)
	}
	p := &pipe{cmd: cmd, in: bufio.NewReaderSize(stdout, 256<<10), send: make(chan []byte, o.callers+2)}
	go func() {
		w := bufio.NewWriterSize(stdin, 256<<10)
		for b := range p.send {
			w.Write(b)
			w.WriteByte('\n')
			if len(p.send) == 0 {
				w.Flush()
			}
		}
		stdin.Close()
	}()
	p.send <- []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcpload","version":"1"}}}`)
	p.send <- []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if _, _, err := p.response(); err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

func (p *pipe) end() {
	close(p.send)
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// issue sends the slot's next call; id modulo the number of slots names the slot.
func (p *pipe) issue(s *slot, slots int) {
	s.id += int64(slots)
	request := s.caller.next(s.id, s.id)
	s.began = time.Now()
	p.send <- request
}

// response returns the next line that is a response, valid until the next call.
func (p *pipe) response() ([]byte, int64, error) {
	for {
		line, err := p.readLine()
		if err != nil {
			return nil, 0, fmt.Errorf("cannot read from server: %w", err)
		}
		id, err := strconv.ParseInt(string(jscan.Get(line, "id")), 10, 64)
		if err == nil && jscan.Get(line[:min(len(line), 512)], "method") == nil {
			return line, id, nil
		}
	}
}

func (p *pipe) readLine() ([]byte, error) {
	line, err := p.in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	p.big = append(p.big[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = p.in.ReadSlice('\n')
		p.big = append(p.big, line...)
	}
	return p.big, err
}
