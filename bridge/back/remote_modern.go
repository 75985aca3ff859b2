package back

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/mirror"
	"mcpbridge/framing"
)

// Limits of a header block made from a request (translation 12.3), in bytes.
const (
	maxHeaderValue = 8 << 10
	maxHeaderBlock = 32 << 10
)

// stateless is the modern Streamable HTTP transport (B3): every request is a POST of its own, with headers that repeat what
// intermediaries look at.
type stateless struct {
	*wire
	check checker
}

func newStateless(r *Remote) *stateless {
	s := &stateless{wire: newWire(r)}
	s.carry = s
	s.check = checker{wire: s.wire, wrong: func(p era.Probe) bool { return p.Verdict == era.VerdictLegacy }}
	return s
}

// request implements carrier. The first refusal that is about the bridge's own headers or version is answered by a second
// try with a new id, which is safe: a request that was refused so has not been carried out (HTTP-M-36, VER-02).
func (s *stateless) request(p *parcel) {
	<-s.ready
	var tool *bridge.ToolHeaders
	for try := 1; ; try++ {
		if p.m.MethodIs(mcp.ToolsCall) {
			tool = s.core.Tool(p.ctx, paramText(p.m, "name"), tool)
		}
		header, refused := s.header(p, tool)
		if refused != nil {
			s.conclude(p, nil, refused)
			return
		}
		m := p.m
		if try > 1 {
			m = again(p.m, try)
		}
		o := s.remote.post(s.remote.at, m.Raw)
		for name, values := range header {
			o.header[name] = values
		}
		got := s.remote.ask(p.ctx, o, m.Bytes(m.ID), s.each(p))
		if try == 1 && p.ctx.Err() == nil && s.mayRepeat(p, &got) {
			continue
		}
		s.conclude(p, got.final, got.err)
		got.finish()
		if _, bare := errors.AsType[*statusError](got.err); bare && got.status < 500 {
			s.check.doubt()
		}
		return
	}
}

// mayRepeat tells whether a request that failed so is sent once more, after a pause if need be.
func (s *stateless) mayRepeat(p *parcel, got *reply) bool {
	if got.final != nil {
		return got.final.Kind == framing.Error && ownFault(got.final, p.m.MethodIs(mcp.ToolsCall))
	}
	return s.remote.mayRepeat(p.ctx, p.m, got.err)
}

// mayRepeat waits, and tells whether a request that failed so may be sent again: one that has certainly not been carried out
// when the server asks for a short pause, others if it does no harm (STD-06, translation 11.5).
func (r *Remote) mayRepeat(ctx context.Context, m *framing.Message, err error) bool {
	pause := retryPause
	if s, ok := errors.AsType[*statusError](err); ok && s.after > 0 {
		pause = s.after
		if pause > maxRetryAfter {
			return false
		}
		if s.status == http.StatusTooManyRequests {
			return sleep(ctx, pause)
		}
	}
	return passing(err) && mcp.TraitsOf(m.MethodName()).Repeatable && sleep(ctx, pause)
}

// sleep reports whether ctx lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ownFault reports whether a server refused what only the bridge can mend: headers of arguments, or a version it lists.
func ownFault(m *framing.Message, call bool) bool {
	switch errorCode(m) {
	case mcp.CodeHeaderMismatch:
		return call
	case mcp.CodeUnsupportedProtocolVersion:
		return era.ClassifyProbe(m, mcp.ModernVersions()).Verdict == era.VerdictRetry
	}
	return false
}

// errorCode is the code of an error response, 0 if it is none that fits.
func errorCode(m *framing.Message) int {
	code, _ := framing.Lookup(m.Raw, framing.Members(m.Raw, m.Error), "code")
	n, _ := strconv.Atoi(string(m.Bytes(code)))
	return n
}

// again is a request under another id: text, so that it is none of the core's own (CON-15).
func again(m *framing.Message, try int) *framing.Message {
	return withID(m, strconv.AppendQuote(nil, string(m.Bytes(m.ID))+"."+strconv.Itoa(try)))
}

func paramText(m *framing.Message, name string) string {
	text, _ := framing.String(m.Bytes(m.Param(name)))
	return text
}

// header makes the headers of a request (HTTP-M-19, HTTP-M-25, HTTP-M-26, XMH-01). None of a client's own is copied, save those
// for arguments that the tool's schema does not name (HTTP-M-34).
func (s *stateless) header(p *parcel, tool *bridge.ToolHeaders) (http.Header, *bridge.Error) {
	h, method := http.Header{}, p.m.MethodName()
	version, _ := framing.String(p.m.Bytes(p.m.MetaMember(mcp.MetaProtocolVersion)))
	h.Set(mcp.HeaderProtocolVersion, version)
	h.Set(mcp.HeaderMethod, method)
	if !plainText(method) {
		return nil, s.refuse("the method's name cannot be sent in a header")
	}
	if param := mcp.TraitsOf(method).NameParam; param != "" {
		h.Set(mcp.HeaderName, mirror.Encode(paramText(p.m, param)))
	}
	if tool != nil {
		if err := s.arguments(h, p, tool); err != nil {
			return nil, err
		}
	}
	return h, s.tooLarge(h)
}

// arguments adds the headers of a call's arguments.
func (s *stateless) arguments(h http.Header, p *parcel, tool *bridge.ToolHeaders) *bridge.Error {
	if tool.Off != nil {
		return s.refuse("the tool is not offered, because its list entry cannot be used: " + tool.Off.Error())
	}
	known := map[string]bool{}
	args := p.m.Bytes(p.m.Param("arguments"))
	err := mirror.Each(tool.Params, args, func(param *mirror.Param, raw []byte) error {
		name := http.CanonicalHeaderKey(mcp.HeaderParamPrefix + param.Header)
		known[name] = true
		value, skip, err := mirror.EncodeValue(raw, param.Type)
		if err != nil {
			return fmt.Errorf("argument %q: %w", param.Path, err)
		}
		if !skip {
			h[name] = []string{value}
		}
		return nil
	})
	if err != nil {
		return s.refuse(err.Error())
	}
	for name, values := range s.core.Headers(p.id) {
		if !known[name] && !slices.ContainsFunc(values, func(v string) bool { return !plainText(v) }) {
			h[name] = values
		}
	}
	return nil
}

func plainText(text string) bool {
	for i := range len(text) {
		if text[i] < 0x20 || text[i] > 0x7e {
			return false
		}
	}
	return true
}

func (s *stateless) tooLarge(h http.Header) *bridge.Error {
	all := 0
	for name, values := range h {
		for _, v := range values {
			if len(v) > maxHeaderValue {
				return s.refuse("the header " + name + " would have " + strconv.Itoa(len(v)) + " bytes, of which " + strconv.Itoa(maxHeaderValue) + " are the most")
			}
			all += len(name) + len(v)
		}
	}
	if all > maxHeaderBlock {
		return s.refuse("the headers of this request would have " + strconv.Itoa(all) + " bytes, of which " + strconv.Itoa(maxHeaderBlock) + " are the most")
	}
	return nil
}

func (s *stateless) refuse(why string) *bridge.Error {
	return &bridge.Error{Status: 400, Code: mcp.CodeInvalidParams, Reason: bridge.ReasonMalformed,
		Message: "cannot send the request to server " + s.remote.cfg.Name + ": " + why}
}

// oneWay implements carrier. No notification of a client is defined on modern HTTP (HTTP-M-07), and no answer is ever due
// (HTTP-M-10).
func (s *stateless) oneWay(*parcel) {}

// cancel implements carrier: the closed stream is the cancellation (HTTP-M-17).
func (s *stateless) cancel(_ *parcel, request int64) { s.drop(request) }

// goodbye implements carrier.
func (s *stateless) goodbye(context.Context) {}

// checker finds out whether a server still speaks what its connection takes for granted, when it has answered as if it did not
// (VER-07, translation 11.5). The connection ends if not, so that the next message opens another.
type checker struct {
	*wire
	wrong func(era.Probe) bool

	once sync.Mutex
	last time.Time // guarded by once
}

// checkPause is the least time between two such questions.
const checkPause = 10 * time.Second

func (c *checker) doubt() {
	if !c.once.TryLock() {
		return
	}
	if time.Since(c.last) < checkPause {
		c.once.Unlock()
		return
	}
	c.last = time.Now()
	c.once.Unlock()
	c.begin(func() {
		p, err := c.remote.probe(c.ctx, mcp.LatestModern)
		if err == nil && c.wrong(p) {
			c.remote.learn(knowledge{})
			c.finish(errors.New("the server does not speak the revision any more that the connection was opened with"))
		}
	})
}
