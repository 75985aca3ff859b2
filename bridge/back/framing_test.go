package back_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"mcpbridge/bridge"
	"mcpbridge/bridge/back"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
	"mcpbridge/procman"
	"mcpbridge/test/vectors"
)

func containsValid(text, part string) bool {
	return utf8.ValidString(text) && strings.Contains(text, part)
}

// sink keeps the answer of an exchange.
type sink struct{ answer chan []byte }

func (s *sink) Notify(framing.Frame, string) {}
func (s *sink) Ask(framing.Frame)            {}
func (s *sink) Finish(a bridge.Answer)       { s.answer <- a.Frame.Bytes() }

type framingInput struct {
	Call        string
	ChildWrites string
	HexChunks   []string `json:"childWritesHexChunks"`
}

type framingExpect struct {
	FrontResult         any
	FrontError          int
	Warn                bool
	ChildReceivesAnswer *bool
	Notifications       []string
	FrontTextContains   []string
}

// The vectors of group framing whose subject is what a child writes.
func TestFramingVectors(t *testing.T) {
	ran := 0
	for _, v := range vectors.Group(t, "framing") {
		if !slices.Contains([]string{"B1", "B2", "B2-03"}, v.Face) {
			continue
		}
		ran++
		t.Run(v.ID, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playFraming(t, v) })
		})
	}
	if ran < 13 {
		t.Errorf("only %d vectors", ran)
	}
}

func playFraming(t *testing.T, v vectors.Vector) {
	var in framingInput
	var want framingExpect
	unmarshal(t, v.Input, &in)
	unmarshal(t, v.Expect, &want)
	e := mcp.Legacy
	if v.Face == "B1" {
		e = mcp.Modern
	}
	r := newRig(func(c *child) procman.Exit { return playBytes(c, v.Face, in) })
	defer r.end(t)
	c := r.mustOpen(t, e, e)
	answer := exchange(t, c, e, in.Call)
	synctest.Wait()
	checkAnswer(t, answer, want)
	if want.Warn != (r.kinds(bridge.EventViolation) > 0) && v.ID != "frm-child-modern-request" && want.FrontError == 0 {
		t.Errorf("%d violations reported, want any: %v", r.kinds(bridge.EventViolation), want.Warn)
	}
	if _, notes := r.note.heard(); !slices.Equal(notes, want.Notifications) {
		t.Errorf("notifications %v, want %v", notes, want.Notifications)
	}
	if want.ChildReceivesAnswer != nil {
		last := r.machine.child(1).methods()
		if got := last[len(last)-1] != in.Call; got != *want.ChildReceivesAnswer {
			t.Errorf("the child was sent %v", last)
		}
	}
}

// playBytes answers the handshake of that face, then the call with the vector's bytes.
func playBytes(c *child, face string, in framingInput) procman.Exit {
	return serve(func(c *child, q request) {
		switch {
		case q.Method == in.Call:
			id := string(q.ID)
			c.write(strings.ReplaceAll(in.ChildWrites, "$id", id))
			for _, chunk := range in.HexChunks {
				b, _ := hex.DecodeString(strings.ReplaceAll(chunk, "$id", hex.EncodeToString([]byte(id))))
				c.write(string(b))
			}
		case face == "B2-03" && q.Method == mcp.Initialize:
			c.result(q, fmt.Sprintf(helloAt, mcp.V20250326))
		default:
			dual(c, q)
		}
	})(c)
}

// exchange sends a request of a client of the server's own era.
func exchange(t *testing.T, c *bridge.Conn, e mcp.Era, method string) []byte {
	t.Helper()
	params := `{"name":"x","arguments":{}}`
	if e == mcp.Modern {
		params = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
	}
	m, err := framing.Scan([]byte(`{"jsonrpc":"2.0","id":"c","method":"` + method + `","params":` + params + `}`))
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{answer: make(chan []byte, 1)}
	if _, err := c.Dispatch(t.Context(), &bridge.Exchange{Message: m, Era: e, Version: c.Facts().Version, Method: method,
		Level: mcp.NoLevel, Sink: s}); err != nil {
		t.Fatal(err)
	}
	return <-s.answer
}

func checkAnswer(t *testing.T, raw []byte, want framingExpect) {
	t.Helper()
	var got struct {
		ID     string
		Result map[string]any
		Error  *struct{ Code int }
	}
	if err := json.Unmarshal(raw, &got); err != nil || got.ID != "c" {
		t.Fatalf("answer %s: %v", raw, err)
	}
	switch {
	case want.FrontError != 0:
		if got.Error == nil || got.Error.Code != want.FrontError {
			t.Errorf("answer %s, want error %d", raw, want.FrontError)
		}
	case want.FrontResult != nil:
		for k, v := range want.FrontResult.(map[string]any) {
			if !reflect.DeepEqual(got.Result[k], v) {
				t.Errorf("answer %s, want %s: %v", raw, k, v)
			}
		}
	}
	for _, part := range want.FrontTextContains {
		if !strings.Contains(string(raw), part) {
			t.Errorf("answer %s without %s", raw, part)
		}
	}
}

// Bytes that arrive in the middle of characters, banners, CRLF and lines that are too long do no harm to what follows
// (cases 1, 3, 5, FRM-07).
func TestOutputOfManyKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(serve(func(c *child, q request) {
			if q.Method != mcp.ToolsList {
				legacy(c, q)
				return
			}
			c.write("Server started\r\n{\n  message: 'x'\n}\n\n\"str\"\n\x1b[31mred\x1b[0m\n\xff\n" + strings.Repeat("x", 5000) + "\n")
			text := fmt.Sprintf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"tools\":[],\"t\":\"— 读 🎉\"}}\r\n\r\n", q.ID)
			for i := range len(text) {
				c.write(text[i : i+1])
			}
		}), limitLine)
		defer r.end(t)
		c := r.mustOpen(t, mcp.Legacy, mcp.Legacy)
		if got := exchange(t, c, mcp.Legacy, mcp.ToolsList); !strings.Contains(string(got), `"t":"— 读 🎉"`) {
			t.Errorf("answer %s", got)
		}
		if n := r.kinds(bridge.EventJunk); n != 8 {
			t.Errorf("%d junk lines reported, want 8", n)
		}
		for _, q := range r.machine.child(1).requests() {
			if strings.Contains(q.Line, "\r") {
				t.Errorf("the child was sent a carriage return: %q", q.Line)
			}
		}
	})
}

func limitLine(cfg *back.StdioConfig) { cfg.Limits.Line = 4096 }

// The longest line is taken; of one byte more the call fails it was the answer to, and the server stays (FRM-07, rule 3).
func TestLineLimit(t *testing.T) {
	for _, over := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(serve(func(c *child, q request) {
				switch q.Method {
				case mcp.ToolsList:
					frame := `{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":{"tools":[],"x":"%s"}}`
					c.write(fmt.Sprintf(frame, strings.Repeat("x", 4096-len(frame)+2+over)) + "\n")
				case mcp.PromptsList:
					c.result(q, `{"prompts":[]}`)
				default:
					legacy(c, q)
				}
			}), limitLine)
			defer r.end(t)
			c := r.mustOpen(t, mcp.Legacy, mcp.Legacy)
			got := exchange(t, c, mcp.Legacy, mcp.ToolsList)
			if failed := strings.Contains(string(got), `"error":{"code":-32603`); failed != (over == 1) {
				t.Errorf("%d bytes over the limit: answer %.200s", over, got)
			}
			if got := exchange(t, c, mcp.Legacy, mcp.PromptsList); !strings.Contains(string(got), `"prompts":[]`) {
				t.Errorf("%d bytes over the limit: the next answer is %s", over, got)
			}
		})
	}
}
