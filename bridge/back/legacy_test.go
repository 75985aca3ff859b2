package back_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge/mcp"
	"mcpbridge/procman"
)

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(context.WithoutCancel(t.Context()), d)
}

// What a server asks or tells as soon as it hears notifications/initialized reaches the handler: nothing is lost between
// the handshake and the opening (LEG-03, LEG-04).
func TestAskedRightAfterInitialized(t *testing.T) {
	for _, direct := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(serve(func(c *child, q request) {
				legacy(c, q)
				if q.Method == mcp.Initialized {
					c.send(`{"jsonrpc":"2.0","id":"r1","method":"roots/list"}`)
					c.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				}
			}))
			r.machine.direct = direct
			defer r.end(t)
			r.mustOpen(t, mcp.Legacy, mcp.Legacy)
			synctest.Wait()
			requests, notes := r.note.heard()
			if len(requests) != 1 || len(notes) != 1 {
				t.Errorf("the handler got requests %v and notifications %v", requests, notes)
			}
		})
	}
}

// While the handshake is under way pings are answered and nothing else is; while the probe is, nothing is (LEG-04, VER-25).
func TestQuietWhileOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(serve(func(c *child, q request) {
			switch q.Method {
			case mcp.Discover, mcp.Initialize:
				c.send(`{"jsonrpc":"2.0","id":"ping of %s","method":"ping"}`, q.Method)
				c.send(`{"jsonrpc":"2.0","id":"roots","method":"roots/list"}`)
				c.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
				c.sleep(time.Second) // leaves time for a wrong answer
				legacy(c, q)
			}
		}))
		defer r.end(t)
		r.mustOpen(t, mcp.Modern, mcp.Legacy)
		synctest.Wait()
		var answers []string
		for _, q := range r.machine.child(1).requests() {
			if q.Method == "" {
				answers = append(answers, string(q.ID))
			}
		}
		if !slices.Equal(answers, []string{`"ping of initialize"`}) {
			t.Errorf("answered %v", answers)
		}
		if requests, notes := r.note.heard(); len(requests)+len(notes) > 0 {
			t.Errorf("the handler got %v and %v", requests, notes)
		}
	})
}

// An exclusive client sends notifications/initialized itself (translation 2.3).
func TestInitializedIsTheClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(serve(legacy))
		defer r.end(t)
		o := r.options(mcp.Legacy)
		o.HoldInitialized = true
		if _, err := r.Open(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := r.machine.methods(); !slices.Equal(got, []string{mcp.Initialize}) {
			t.Errorf("sent %v", got)
		}
	})
}

// A 2024-11-05 server with prompts or resources is asked whether it completes arguments, for modern clients only
// (translation 2.2, FEA-11).
func TestCompletionsProbe(t *testing.T) {
	yes := func(c *child, q request) { c.result(q, `{"completion":{"values":[]}}`) }
	odd := func(c *child, q request) { c.fail(q, mcp.CodeInvalidParams) }
	no := func(c *child, q request) { c.fail(q, mcp.CodeMethodNotFound) }
	silent := func(*child, request) {}
	for _, tc := range []struct {
		name    string
		version mcp.Version
		caps    string
		want    mcp.Era
		answer  func(*child, request)
		asks    bool
		has     bool
	}{
		{"answered", mcp.V20241105, `{"prompts":{}}`, mcp.Modern, yes, true, true},
		{"other error", mcp.V20241105, `{"resources":{}}`, mcp.Modern, odd, true, true},
		{"not found", mcp.V20241105, `{"prompts":{}}`, mcp.Modern, no, true, false},
		{"silence", mcp.V20241105, `{"prompts":{}}`, mcp.Modern, silent, true, false},
		{"neither prompts nor resources", mcp.V20241105, `{"tools":{}}`, mcp.Modern, yes, false, false},
		{"later revision", mcp.V20250326, `{"prompts":{}}`, mcp.Modern, yes, false, false},
		{"legacy front", mcp.V20241105, `{"prompts":{}}`, mcp.Legacy, yes, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(serve(func(c *child, q request) {
					switch q.Method {
					case mcp.Initialize:
						c.result(q, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"s","version":"1"}}`, tc.version, tc.caps))
					case mcp.Complete:
						tc.answer(c, q)
					default:
						legacy(c, q)
					}
				}))
				defer r.end(t)
				c := r.mustOpen(t, tc.want, mcp.Legacy)
				synctest.Wait()
				sent := r.machine.methods()
				if asks := slices.Contains(sent, mcp.Complete); asks != tc.asks {
					t.Errorf("sent %v, want completion/complete: %v", sent, tc.asks)
				}
				if tc.asks && sent[len(sent)-1] != mcp.Complete {
					t.Errorf("sent %v, want the question after initialized (LEG-04)", sent)
				}
				if got := c.Facts().Completions; got != tc.has {
					t.Errorf("completions %v, want %v", got, tc.has)
				}
			})
		})
	}
}

// The handshake's other ends: a revision nobody knows, an answer that is none, a refusal with a long text.
func TestHandshakeFailures(t *testing.T) {
	long := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"%0299d€"}}`, 0)
	for name, tc := range map[string]struct{ answer, says string }{
		"old":     {`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2023-01-01"}}`, "version not supported"},
		"modern":  {`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2026-07-28"}}`, "modern version in a handshake"},
		"no text": {`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}`, "error without a message"},
		"long":    {long, fmt.Sprintf("refused initialize: %0299d", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(serve(func(c *child, q request) { c.send("%s", tc.answer) }))
				defer r.end(t)
				r.verdict.Pin(mcp.Legacy)
				_, err := r.open(t, mcp.Legacy)
				if err == nil || !containsValid(err.Error(), tc.says) {
					t.Errorf("error %v, want %q", err, tc.says)
				}
				time.Sleep(time.Minute)
				select {
				case <-r.machine.child(1).done: // the client disconnects (VER-42)
				default:
					t.Error("the process still runs")
				}
				if state, _ := r.Status(); state != procman.Idle {
					t.Errorf("state %v", state)
				}
			})
		})
	}
}
