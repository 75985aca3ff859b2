//go:build linux

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

const (
	readyLimit = 20 * time.Second
	stopLimit  = 3 * time.Second
	retryPause = time.Millisecond
	settleTime = 1500 * time.Millisecond
)

// cold starts a command that serves o.url and measures exec to the first good call.
func cold(o *options) (*result, error) {
	if len(o.command) == 0 {
		return nil, errors.New("cold needs a command after --")
	}
	cmd := exec.Command(o.command[0], o.command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start bridge: %w", err)
	}
	took, err := untilGood(o, began)
	tree := processTree(cmd.Process.Pid)
	stopGently(cmd)
	killLeft(tree)
	if err != nil {
		return nil, err
	}
	return &result{OK: 1, Cold: float64(took) / 1e6}, nil
}

func stopGently(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	select {
	case <-exited:
	case <-time.After(stopLimit):
	}
}

func untilGood(o *options, began time.Time) (time.Duration, error) {
	for {
		err := firstCall(o)
		took := time.Since(began)
		if err == nil {
			return took, nil
		}
		if took > readyLimit {
			return 0, fmt.Errorf("no good call in %v: %w", readyLimit, err)
		}
		time.Sleep(retryPause)
	}
}

func firstCall(o *options) error {
	c, err := newConn(o.url, o.modern)
	if err != nil {
		return err
	}
	defer c.close()
	return c.openAndCall(o, 0)
}

// openAndCall opens a session and makes one call.
func (c *conn) openAndCall(o *options, number int) error {
	if err := c.open(5 * time.Second); err != nil {
		return err
	}
	maker := newCaller(o.spec, o.modern, number)
	m, err := c.roundTrip("tools/call", o.spec.tool, maker.next(1, 1), 5*time.Second)
	if err != nil {
		return err
	}
	if maker.check(m, 1) != good {
		return fmt.Errorf("bad answer: %.150s", m)
	}
	return nil
}

// openSessions opens legacy sessions, makes one call in each, and reports memory
// while all stay open.
func openSessions(o *options) (*result, error) {
	r := &result{}
	for i := range o.sessions {
		c, err := newConn(o.url, o.modern)
		if err != nil {
			return nil, err
		}
		defer c.close()
		if err := c.openAndCall(o, i); err != nil {
			return nil, fmt.Errorf("cannot use session %d: %w", i, err)
		}
		r.OK++
	}
	time.Sleep(settleTime)
	r.setProcess(startSampler(o.pid).end())
	return r, nil
}
