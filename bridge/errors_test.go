package bridge_test

import (
	"errors"
	"testing"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/framing"
)

// The wire form of an error of the bridge says whose it is (FRM-20) and whose answer (FRM-12).
func TestErrorBody(t *testing.T) {
	for name, c := range map[string]struct {
		err    *bridge.Error
		nullID bool
		want   string
	}{
		"plain":     {&bridge.Error{Code: -32601, Message: `a "b"`, ID: []byte(`"x"`)}, false, `{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"a \"b\""}}`},
		"reason":    {&bridge.Error{Code: 1, Message: "m", Reason: bridge.ReasonTimeout, ID: []byte(`0`)}, true, `{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":"m","data":{"source":"bridge","reason":"timeout"}}}`},
		"data":      {&bridge.Error{Code: 1, Message: "m", Data: []byte(`"supported":[]`)}, false, `{"jsonrpc":"2.0","error":{"code":1,"message":"m","data":{"supported":[]}}}`},
		"both":      {&bridge.Error{Code: 1, Message: "m", Reason: bridge.ReasonVersion, Data: []byte(`"a":1`)}, true, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m","data":{"source":"bridge","reason":"unsupported_version","a":1}}}`},
		"not UTF-8": {&bridge.Error{Code: 1, Message: "\xff"}, false, `{"jsonrpc":"2.0","error":{"code":1,"message":"` + "\ufffd" + `"}}`},
	} {
		got := c.err.Body(c.nullID)
		if string(got) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if m, err := framing.Scan(got); err != nil || m.Kind != framing.Error {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Copies leave the original alone; the cause is for logs, not for the wire.
func TestErrorCopies(t *testing.T) {
	base := bridge.Unavailable("down")
	e := base.WithID([]byte("1")).Because(errDied)
	if base.ID != nil || errors.Is(base, errDied) || !errors.Is(e, errDied) || string(e.ID) != "1" {
		t.Errorf("base %+v, copy %+v", base, e)
	}
	if e.Error() != "down" || e.HTTPStatus() != 503 || e.Retry == 0 || (&bridge.Error{}).HTTPStatus() != 200 || bridge.Invalid("x").HTTPStatus() != 400 {
		t.Error("status or text")
	}
}

func TestLimitDefaults(t *testing.T) {
	got := bridge.Limits{}.WithDefaults()
	want := bridge.Limits{Calls: 10_000, Timeout: 5 * time.Minute, HardTimeout: time.Hour, Start: time.Minute, Probe: 5 * time.Second,
		Queue: 64 << 20, SendWait: 10 * time.Second, Waiting: 192 << 20, Notices: 4 << 20, Ask: 10 * time.Minute, Line: 64 << 20, Listeners: 10_000, Subscriptions: 10_000}
	if got != want {
		t.Errorf("defaults %+v", got)
	}
	set := bridge.Limits{Calls: 1, Timeout: 2 * time.Hour, Start: 3, Probe: 4, Queue: 5, Line: 6, Listeners: 12, Subscriptions: 7, SendWait: 8, Waiting: 9, Notices: 10, Ask: 11}
	got = set.WithDefaults()
	if set.HardTimeout = 2 * time.Hour; got != set { // never below the timeout
		t.Errorf("kept %+v, want %+v", got, set)
	}
}
