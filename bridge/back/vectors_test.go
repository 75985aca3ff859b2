package back_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge/back"
	"mcpbridge/bridge/mcp"
	"mcpbridge/procman"
	"mcpbridge/test/vectors"
)

// step is one step of a transcript with a child.
type step struct {
	BridgeSends   string
	MetaVersion   string `json:"_metaVersion"`
	ServerSends   json.RawMessage
	ServerSendRaw *string `json:"serverSendsRaw"`
	ServerExits   *int
	Timeout       bool
}

type eraExpect struct {
	Era, Version, Next, Reason, InitializeVersion string
	CrashCounted                                  *bool
}

// player acts the steps of a transcript, over all starts, and then like an ordinary server.
type player struct {
	steps []step
	after func(*child, request)
	wrong []string // what the bridge did that the transcript does not have
}

func (p *player) run(c *child) procman.Exit {
	ids := strings.NewReplacer()
	known := []string{}
	var open *request // not answered by the transcript
	for len(p.steps) > 0 {
		s := p.steps[0]
		p.steps = p.steps[1:]
		switch {
		case s.BridgeSends != "":
			r, ok := c.read()
			for ok && r.Method == mcp.Initialized && s.BridgeSends != mcp.Initialized {
				r, ok = c.read()
			}
			if !ok {
				p.wrong = append(p.wrong, "ended the server before "+s.BridgeSends)
				return procman.Exit{}
			}
			p.check(s, r)
			open = &r
			name := map[string]string{mcp.Discover: `"$probe"`, mcp.Initialize: `"$initialize"`}[s.BridgeSends]
			if name != "" {
				known = append([]string{name, string(r.ID)}, known...)
				ids = strings.NewReplacer(known...)
			}
		case s.ServerSends != nil:
			open = nil
			c.send("%s", ids.Replace(string(s.ServerSends)))
		case s.ServerSendRaw != nil:
			c.send("%s", *s.ServerSendRaw)
		case s.Timeout:
			open = nil
		case s.ServerExits != nil:
			return exits(*s.ServerExits)
		}
	}
	if open != nil {
		p.after(c, *open)
	}
	return serve(p.after)(c)
}

func (p *player) check(s step, r request) {
	if r.Method != s.BridgeSends {
		p.wrong = append(p.wrong, fmt.Sprintf("sent %s, want %s", r.Method, s.BridgeSends))
	}
	if v := metaVersion(r); s.MetaVersion != "" && v != s.MetaVersion {
		p.wrong = append(p.wrong, fmt.Sprintf("%s at version %q, want %q", r.Method, v, s.MetaVersion))
	}
}

func metaVersion(r request) string {
	var params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(r.Params, &params)
	var v string
	_ = json.Unmarshal(params.Meta[mcp.MetaProtocolVersion], &v)
	return v
}

// Every transcript of the group, from the bridge's first byte to its conclusion. A front of the modern era is the one that
// probes; a legacy front comes to the same steps once its handshake has been refused.
func TestEraVectors(t *testing.T) {
	for _, v := range vectors.Group(t, "era-stdio") {
		for _, want := range []mcp.Era{mcp.Modern, mcp.Legacy} {
			t.Run(v.ID+"/"+want.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { playVector(t, v, want) })
			})
		}
	}
}

func playVector(t *testing.T, v vectors.Vector, want mcp.Era) {
	p := player{after: dual}
	var expect eraExpect
	var config struct{ Era, CachedEra string }
	unmarshal(t, v.Steps, &p.steps)
	unmarshal(t, v.Expect, &expect)
	if v.Config != nil {
		unmarshal(t, v.Config, &config)
	}
	script := slices.Clone(p.steps)
	prefix := 0
	if want == mcp.Legacy && len(script) > 0 && script[0].BridgeSends == mcp.Discover {
		p.steps = append([]step{{BridgeSends: mcp.Initialize},
			{ServerSends: json.RawMessage(`{"jsonrpc":"2.0","id":"$initialize","error":{"code":-32601,"message":"no"}}`)}}, p.steps...)
		prefix, p.after = 1, modern
		if expect.Era == "legacy" {
			p.after = func(c *child, r request) { c.fail(r, mcp.CodeMethodNotFound) }
		}
	}
	if expect.Next == "reprobe" { // each process is asked anew: a request in the wrong era cannot happen
		p.steps = []step{{BridgeSends: mcp.Discover, MetaVersion: "2026-07-28"}, script[1]}
		prefix, want = 0, mcp.Modern
	}
	r := newRig(p.run)
	defer r.end(t)
	if config.Era == "legacy" {
		r.verdict.Pin(mcp.Legacy)
	}
	teach(t, r, config.CachedEra)
	c, err := r.open(t, want)
	if want == mcp.Legacy && prefix == 1 {
		checkLegacyFront(t, r, expect, err)
		return
	}
	synctest.Wait()
	for _, w := range p.wrong {
		t.Error(w)
	}
	sent := r.machine.methods()
	checkNext(t, r, expect, sent[min(len(sent), countSends(script)):], err)
	if err == nil && expect.Era != "" && c.Facts().Era.String() != expect.Era {
		t.Errorf("opened as %v, want %s", c.Facts().Era, expect.Era)
	}
	if err == nil && expect.Version != "" && string(c.Facts().Version) != expect.Version {
		t.Errorf("opened at %s, want %s", c.Facts().Version, expect.Version)
	}
	checkCrash(t, r, expect)
}

func unmarshal(t *testing.T, raw []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatalf("vector: %v", err)
	}
}

// teach gives the verdict a memory, by opening a server of that era.
func teach(t *testing.T, r *rig, e string) {
	t.Helper()
	if e == "" {
		return
	}
	answer := map[string]func(*child, request){"legacy": legacy, "modern": modern}[e]
	other := newRig(serve(answer), func(cfg *back.StdioConfig) { cfg.Verdict = r.verdict })
	defer other.end(t)
	if _, err := other.open(t, mcp.Modern); err != nil {
		t.Fatal(err)
	}
}

func countSends(steps []step) (n int) {
	for _, s := range steps {
		if s.BridgeSends != "" {
			n++
		}
	}
	return n
}

// checkNext judges what the bridge did after the steps.
func checkNext(t *testing.T, r *rig, want eraExpect, rest []string, err error) {
	t.Helper()
	var next string
	switch want.Next {
	case "serve":
		rest = slices.DeleteFunc(rest, func(m string) bool { return m == mcp.Initialized })
		if err != nil || len(rest) > 0 {
			t.Errorf("after the transcript: sent %v, error %v; want nothing", rest, err)
		}
		return
	case "initialize", "restart-and-initialize", "reprobe":
		next = mcp.Initialize
	case "retry-discover-once":
		next = mcp.Discover
	case "error", "error-surface":
		if err == nil || len(rest) > 0 {
			t.Fatalf("after the transcript: sent %v, error %v; want an error and nothing sent", rest, err)
		}
		reason := map[string]string{"": "x", "server exits": "exited with status 1"}[want.Reason]
		if reason == "" {
			reason = want.Reason
		}
		if !strings.Contains(err.Error(), reason) {
			t.Errorf("error %q does not say %q", err, reason)
		}
		return
	default:
		t.Fatalf("unknown next step %q", want.Next)
	}
	if err != nil || len(rest) == 0 || rest[0] != next {
		t.Fatalf("after the transcript: sent %v, error %v; want %s", rest, err, next)
	}
	if want.InitializeVersion != "" {
		if got := lastOffer(r); got != want.InitializeVersion {
			t.Errorf("initialize offers %s, want %s", got, want.InitializeVersion)
		}
	}
}

func lastOffer(r *rig) (v string) {
	for n := range r.machine.starts() {
		for _, q := range r.machine.child(n + 1).requests() {
			if q.Method == mcp.Initialize {
				v = offered(q)
			}
		}
	}
	return v
}

// checkCrash judges whether an end counts: a crash delays the next start.
func checkCrash(t *testing.T, r *rig, want eraExpect) {
	t.Helper()
	if want.CrashCounted == nil {
		return
	}
	state, status := r.Status()
	if got := state == procman.Backoff; got != *want.CrashCounted {
		t.Errorf("state %v after the transcript, crash counted: %v", state, *want.CrashCounted)
	}
	if status.Restarts != 0 {
		t.Errorf("%d restarts counted, the end on the probe is none", status.Restarts)
	}
}

// checkLegacyFront judges a server that has refused a client's handshake: only a modern one can be opened then, and
// whatever its probe says, there is no second handshake on its account.
func checkLegacyFront(t *testing.T, r *rig, want eraExpect, err error) {
	t.Helper()
	opens := want.Era == "modern" && want.Next != "error-surface"
	if (err == nil) != opens {
		t.Errorf("error %v, want an open connection: %v", err, opens)
	}
	sent := r.machine.methods()
	if len(sent) < 2 || sent[0] != mcp.Initialize || sent[1] != mcp.Discover {
		t.Errorf("sent %v, want initialize first, then server/discover", sent)
	}
	if n := strings.Count(strings.Join(sent, " "), mcp.Initialize+" "); n != 1 {
		t.Errorf("%d handshakes in %v, want one", n, sent)
	}
}

// A verdict lasts an hour and no longer (VER-07).
func TestVerdictAge(t *testing.T) {
	for _, tc := range []struct {
		age   time.Duration
		first string
	}{{time.Hour - time.Millisecond, mcp.Initialize}, {time.Hour, mcp.Discover}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(serve(legacy))
			defer r.end(t)
			r.mustOpen(t, mcp.Modern, mcp.Legacy)
			synctest.Wait()
			_ = r.Halt(t.Context())
			time.Sleep(tc.age)
			r.mustOpen(t, mcp.Modern, mcp.Legacy)
			synctest.Wait()
			if got := r.machine.child(2).methods()[0]; got != tc.first {
				t.Errorf("after %v the first question is %s, want %s", tc.age, got, tc.first)
			}
		})
	}
}
