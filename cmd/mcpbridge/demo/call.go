package demo

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mcpbridge/bridge/mcp"
)

// Bounds of the arguments of countdown.
const (
	maxFrom    = 10_000
	maxDelayMs = 60_000
)

// call is a tools/call whose params have been read.
type call struct {
	*request
	args    jsontext.Value
	answers map[string]jsontext.Value // inputResponses
	state   *string                   // requestState
}

// waiting runs a tool that takes its time. ctx ends when the call is cancelled or the server stops.
type waiting func(*server, context.Context, *call) (object, *rpcError)

func (s *server) callTool(ctx context.Context, r *request) {
	c, t, failure := s.readCall(r)
	switch {
	case failure != nil:
		s.answer(r, nil, failure)
	case t.slow == nil || t.quick != nil && r.modern():
		result, failure := t.quick(s, c)
		s.answer(r, result, failure)
	default:
		s.start(ctx, c, t.slow)
	}
}

// start runs a tool in a goroutine of its own.
func (s *server) start(ctx context.Context, c *call, run waiting) {
	ctx, failure := s.begin(ctx, c.request)
	if failure != nil {
		s.answer(c.request, nil, failure)
		return
	}
	s.running.Go(func() {
		result, failure := run(s, ctx, c)
		if ctx.Err() != nil {
			c.cancel()
			return
		}
		s.settle(c.request, result, failure)
	})
}

// readCall reads the params of tools/call. inputResponses of a wrong shape are an error whatever the tool (MRT-15); in
// the legacy era there is no such member.
func (s *server) readCall(r *request) (*call, tool, *rpcError) {
	var params struct {
		Name      jsontext.Value `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
		Answers   jsontext.Value `json:"inputResponses"`
		State     jsontext.Value `json:"requestState"`
	}
	var name string
	if decode(r.params, &params) != nil || params.Name.Kind() != '"' || decode(params.Name, &name) != nil {
		return nil, tool{}, invalidParams("name must be a string")
	}
	if params.Arguments != nil && params.Arguments.Kind() != '{' {
		return nil, tool{}, invalidParams("arguments must be an object")
	}
	t, ok := s.findTool(name)
	if !ok {
		return nil, tool{}, invalidParams("unknown tool: %q", name)
	}
	c := &call{request: r, args: params.Arguments}
	if !r.modern() {
		return c, t, nil
	}
	return c, t, c.readRetry(params.Answers, params.State)
}

// badArguments is a result the model can act on from 2025-11-25 on, a protocol error before (FEA-04).
func badArguments(r *request, format string, args ...any) (object, *rpcError) {
	if r.version.AtLeast(mcp.V20251125) {
		return toolError(format, args...), nil
	}
	return nil, invalidParams(format, args...)
}

func textContent(text any) object { return object{"type": "text", "text": text} }

func textResult(text any) object { return object{"content": []object{textContent(text)}} }

func toolError(format string, args ...any) object {
	result := textResult(fmt.Sprintf(format, args...))
	result["isError"] = true
	return result
}

// echo returns the text with the spelling it came in.
func (s *server) echo(c *call) (object, *rpcError) {
	var args struct {
		Text jsontext.Value `json:"text"`
	}
	if decode(c.args, &args) != nil || args.Text.Kind() != '"' {
		return badArguments(c.request, "text must be a string")
	}
	return textResult(args.Text), nil
}

func (s *server) add(c *call) (object, *rpcError) {
	var args struct {
		A *float64 `json:"a"`
		B *float64 `json:"b"`
	}
	if decode(c.args, &args) != nil || args.A == nil || args.B == nil {
		return badArguments(c.request, "a and b must be numbers")
	}
	sum := *args.A + *args.B
	if math.IsInf(sum, 0) {
		return toolError("the sum is too large"), nil
	}
	structured := object{"sum": sum}
	line, err := encode(structured)
	if err != nil {
		return nil, errorf(mcp.CodeInternal, "%v", err)
	}
	result := textResult(string(line[:len(line)-1]))
	if c.version.StructuredContent() {
		result["structuredContent"] = structured
	}
	return result, nil
}

func (s *server) regionEcho(c *call) (object, *rpcError) {
	var args struct {
		Region *string `json:"region"`
		Text   *string `json:"text"`
	}
	if decode(c.args, &args) != nil || args.Region == nil || args.Text == nil {
		return badArguments(c.request, "region and text must be strings")
	}
	return textResult(*args.Region + ": " + *args.Text), nil
}

// touch changes the clock. The announcement comes before the answer.
func (s *server) touch(*call) (object, *rpcError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ticks++
	s.updated(clockURI)
	return textResult(fmt.Sprintf("ticks: %d", s.ticks)), nil
}

// log sends a log message if the session or the request wants one of that level (LOG-01, LOG-02).
func (s *server) log(c *call) (object, *rpcError) {
	var args struct {
		Level string         `json:"level"`
		Text  jsontext.Value `json:"text"`
	}
	if decode(c.args, &args) != nil || args.Text.Kind() != '"' {
		return badArguments(c.request, "level and text must be strings")
	}
	level := mcp.ParseLevel(args.Level)
	if level == mcp.NoLevel {
		return badArguments(c.request, "unknown level: %q", args.Level)
	}
	if c.level == mcp.NoLevel || level < c.level {
		return textResult("not sent: nobody asked for messages of level " + args.Level), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(notification(mcp.LogMessage, object{"level": args.Level, "logger": "demo", "data": args.Text}))
	return textResult("sent at level " + args.Level), nil
}

// countdown reports each step to those who gave a token (PRG-03, PRG-10).
func (s *server) countdown(ctx context.Context, c *call) (object, *rpcError) {
	var args struct {
		From    *int `json:"from"`
		DelayMs int  `json:"delayMs"`
	}
	if decode(c.args, &args) != nil || args.From == nil || *args.From < 0 || *args.From > maxFrom ||
		args.DelayMs < 0 || args.DelayMs > maxDelayMs {
		return badArguments(c.request, "from must be an integer from 0 to %d, delayMs one from 0 to %d", maxFrom, maxDelayMs)
	}
	delay := time.NewTimer(0)
	defer delay.Stop()
	for step := 1; step <= *args.From; step++ {
		delay.Reset(time.Duration(args.DelayMs) * time.Millisecond)
		select {
		case <-ctx.Done():
			return nil, nil
		case <-delay.C:
		}
		s.progress(c.request, step, *args.From)
	}
	return textResult(fmt.Sprintf("counted down from %d", *args.From)), nil
}

func (s *server) progress(r *request, step, total int) {
	if r.token == nil {
		return
	}
	params := object{"progressToken": r.token, "progress": step, "total": total}
	if r.version.AtLeast(mcp.V20250326) {
		params["message"] = fmt.Sprintf("%d to go", total-step)
	}
	s.during(r, notification(mcp.Progress, params))
}
