package pool_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/pool"
)

// A shared link nobody uses is ended after the idle time and not before; its key gets a new one (translation 14.4). A session's
// process stays as long as its session, with or without a process of its own.
func TestIdleStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		p := newPool(t, s, pool.Config{Idle: 10 * time.Minute})
		defer running(t, p)()
		l := shared(t, p, modern(""))
		open(t, l)
		shared(t, p, modern("never opened"))
		open(t, exclusive(t, p))
		exclusive(t, p)
		time.Sleep(10*time.Minute - time.Second)
		if running, _, _ := s.counts(); running != 2 || p.Len() != 4 {
			t.Errorf("%d servers, %d links before the idle time is over", running, p.Len())
		}
		shared(t, p, modern("")) // handed out: not idle until it has been used
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		if l.Live() == nil {
			t.Error("a link was ended between being handed out and being used")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if running, _, _ := s.counts(); running != 1 || p.Len() != 2 {
			t.Errorf("%d servers, %d links after the idle time; want those of the sessions", running, p.Len())
		}
		if _, err := l.Conn(t.Context()); err == nil {
			t.Error("the ended link opens again")
		}
		if shared(t, p, modern("")) == l {
			t.Error("the ended link is handed out again")
		}
	})
}

// What keeps a shared link: a request at the server, a client that listens, a legacy session.
func TestNotIdle(t *testing.T) {
	for name, use := range map[string]func(*testing.T, *bridge.Link) (end func()){
		"request": func(t *testing.T, l *bridge.Link) func() { return call(t, l, mcp.ToolsCall) },
		"listen":  func(t *testing.T, l *bridge.Link) func() { return call(t, l, mcp.Listen) },
		"session": func(_ *testing.T, l *bridge.Link) func() {
			s := &session{}
			l.Attach(s)
			return func() { l.Detach(s) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shop{}
				p := newPool(t, s, pool.Config{Idle: time.Minute})
				defer running(t, p)()
				l := shared(t, p, modern(""))
				open(t, l)
				end := use(t, l)
				time.Sleep(time.Hour)
				if running, _, _ := s.counts(); running != 1 {
					t.Error("the link was ended while it was in use")
				}
				end()
				time.Sleep(30 * time.Second)
				if running, _, _ := s.counts(); running != 1 {
					t.Error("the idle time did not start anew")
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if running, _, _ := s.counts(); running != 0 {
					t.Error("the link was not ended after use")
				}
			})
		})
	}
}

// With a negative idle time links stay for ever; the default is 10 minutes; a kept link stays whatever the time is.
func TestIdleSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  pool.Config
		wait time.Duration
		want int
	}{
		"never":              {pool.Config{Idle: -1}, 1000 * time.Hour, 1},
		"default, before":    {pool.Config{}, 10*time.Minute - 4*time.Second, 1},
		"default, after":     {pool.Config{}, 10*time.Minute + 4*time.Second, 0},
		"kept":               {pool.Config{Keep: true}, 1000 * time.Hour, 1},
		"shorter than Run's": {pool.Config{Idle: 2 * time.Second, Yield: time.Hour}, 4 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shop{}
				p := newPool(t, s, tt.cfg)
				defer running(t, p)()
				open(t, shared(t, p, modern("")))
				time.Sleep(tt.wait)
				if running, _, _ := s.counts(); running != tt.want {
					t.Errorf("%d servers, want %d", running, tt.want)
				}
			})
		})
	}
}

// A kept shared link is opened again by itself when its server dies; that of a session or a request is not.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &shop{}, pool.Config{Keep: true})
		defer running(t, p)()
		single, _ := p.Single(modern("a"), nil)
		for i, l := range []*bridge.Link{shared(t, p, modern("a")), exclusive(t, p), single} {
			open(t, l)
			proc(t, p, l).crash()
			time.Sleep(time.Second)
			if live := l.Live() != nil; live != (i == 0) {
				t.Errorf("link %d lives: %v", i, live)
			}
		}
	})
}

// Run ends with its context, and what it keeps stays until the pool is closed.
func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		p := newPool(t, s, pool.Config{Spare: 1})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		began := time.Now()
		p.Run(ctx)
		if d := time.Since(began); d != time.Minute {
			t.Errorf("it ran %v", d)
		}
		if running, _, _ := s.counts(); running != 1 {
			t.Errorf("%d spares", running)
		}
		closePool(t, p)
	})
}
