// Package parked tests on the real program the calls of modern clients that a legacy server asks something in (translation 5): many
// clients at once, with retries on other connections, copies, stale states and clients that leave, and the ends of server and
// bridge between two rounds.
package parked

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpbridge/test/internal/rig"
)

const patience = 30 * time.Second

var shop *rig.Shop

func TestMain(m *testing.M) {
	code := rig.Run(m, &shop)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// town is a bridge with an asking server behind it.
type town struct {
	house  *rig.House
	tenant *rig.Tenant
	log    string
	ways   []*http.Client // ways to the bridge that share no connection
}

func newTown(t *testing.T, entry string) *town {
	t.Helper()
	w := &town{log: filepath.Join(t.TempDir(), "log")}
	w.house = shop.House(t, fmt.Sprintf(`"limits":{"processes":200,"queueWait":"30s"},"mcpServers":{"s":{"command":%q,"args":["-log",%q],"restart":{"initial":"20ms"},"maxProcesses":100%s}}`,
		shop.Build(t, "./test/fakemcp/asker"), w.log, entry))
	w.tenant = w.house.Start(t)
	for range 4 {
		c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
		w.ways = append(w.ways, c)
		t.Cleanup(c.CloseIdleConnections)
	}
	return w
}

// reply is what a request was answered with.
type reply struct {
	Status int
	Result struct {
		ResultType    string
		Content       []struct{ Text string }
		IsError       bool
		RequestState  string
		InputRequests map[string]struct {
			Params struct{ Message string }
		}
	}
	Error *struct {
		Code int
		Data struct{ Reason string }
	}
}

func (r reply) reason() string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Data.Reason
}

// ended reports whether the call has its answer.
func (r reply) ended() bool { return r.Result.ResultType == "complete" }

// expired reports whether the client was too late.
func (r reply) expired() bool {
	return r.reason() == "request_state_expired" || r.reason() == "parked_call_lost"
}

// call is one call of a client, over all its rounds.
type call struct {
	tool string
	args string
}

func (c call) body(id int, state string, answers map[string]any) string {
	more := ""
	if state != "" {
		more += fmt.Sprintf(`,"requestState":%q`, state)
	}
	if answers != nil {
		b, _ := json.Marshal(answers) // maps of texts
		more += `,"inputResponses":` + string(b)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`,
		id, c.tool, c.args, more)
}

// post sends one round over some connection.
func (w *town) post(ctx context.Context, c call, id int, state string, answers map[string]any) (r reply, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, w.house.URL("s"), strings.NewReader(c.body(id, state, answers)))
	if err != nil {
		return r, err
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": c.tool} {
		q.Header.Set(k, v)
	}
	resp, err := w.ways[rand.IntN(len(w.ways))].Do(q)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return r, err
	}
	if i := bytes.LastIndex(b, []byte("data: ")); i >= 0 {
		b, _, _ = bytes.Cut(b[i+len("data: "):], []byte("\n"))
	}
	r.Status = resp.StatusCode
	return r, json.Unmarshal(b, &r)
}

// must is post for a round that nothing disturbs.
func (w *town) must(t *testing.T, c call, id int, state string, answers map[string]any) reply {
	t.Helper()
	r, err := w.post(t.Context(), c, id, state, answers)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// answers are the right ones to what a client was asked: each question says which value it wants.
func (r reply) answers() map[string]any {
	out := map[string]any{}
	for key, q := range r.Result.InputRequests {
		out[key] = map[string]any{"action": "accept", "content": map[string]string{"value": q.Params.Message}}
	}
	return out
}

func (r reply) asks() bool { return r.Result.ResultType == "input_required" }

// lines counts what the server did by kind and call.
func (w *town) lines(t *testing.T) map[string]map[string]int {
	t.Helper()
	text, err := os.ReadFile(w.log)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		f := strings.Fields(line)
		if out[f[1]] == nil {
			out[f[1]] = map[string]int{}
		}
		out[f[1]][f[2]]++
		if f[1] == "answer" && f[4] != f[2]+"/"+f[3] {
			t.Errorf("question %s/%s was given the answer %s", f[2], f[3], f[4])
		}
	}
	return out
}

// state is what `status` tells.
func (w *town) state(t *testing.T) (parked, goroutines int) {
	t.Helper()
	out, errOut, code := w.house.Run(t, "status", "--json")
	var s struct {
		Bridge  struct{ Goroutines int }
		Servers []struct{ Parked int }
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 || len(s.Servers) != 1 {
		t.Fatalf("status: %v, %s %s", err, out, errOut)
	}
	return s.Servers[0].Parked, s.Bridge.Goroutines
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !cond(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// visitor is one client that makes calls one after the other and plays all tricks.
type visitor struct {
	*town
	number int
	rand   *rand.Rand
	id     int

	mu       sync.Mutex
	problems []string
	left     map[string]bool // calls it did not see to their end
}

func (v *visitor) problem(format string, a ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.problems = append(v.problems, fmt.Sprintf(format, a...))
}

const callsEach = 3

func (v *visitor) run(ctx context.Context) {
	for n := range callsEach {
		name := fmt.Sprintf("c%d-%d", v.number, n)
		c := call{"steps", fmt.Sprintf(`{"call":%q,"n":3}`, name)}
		if v.rand.IntN(3) == 0 {
			c = call{"both", fmt.Sprintf(`{"call":%q}`, name)}
		}
		v.carry(ctx, name, c)
	}
}

// carry sees a call through, with disturbances.
func (v *visitor) carry(ctx context.Context, name string, c call) {
	r := v.send(ctx, c, "", nil)
	stale := ""
	for round := 0; r.asks() && round < 20; round++ {
		switch v.rand.IntN(12) {
		case 0: // goes for good; the call ends with its TTL
			v.left[name] = true
			return
		case 1: // a state that is none
			if bad := v.send(ctx, c, r.Result.RequestState[:len(r.Result.RequestState)-2]+"AA", r.answers()); bad.reason() != "request_state_invalid" {
				v.problem("%s: a forged state got %+v", name, bad)
			}
		case 2: // the state of another request
			other := c
			other.args = strings.Replace(c.args, name, name+"x", 1)
			if bad := v.send(ctx, other, r.Result.RequestState, r.answers()); bad.reason() != "request_state_mismatch" && !bad.expired() {
				v.problem("%s: the state of another request got %+v", name, bad)
			}
		case 3: // one that was used before
			if stale != "" {
				if old := v.send(ctx, c, stale, r.answers()); old.expired() {
					v.left[name] = true
					return
				} else if old.ended() { // what was asked here was another call's, and this one has its answer
					r = old
					continue
				} else if !old.asks() {
					v.problem("%s: a stale state got %+v", name, old)
				} else {
					r = old
				}
			}
		case 4: // no answers yet
			if again := v.send(ctx, c, r.Result.RequestState, nil); again.expired() {
				v.left[name] = true
				return
			} else if again.ended() {
				r = again
				continue
			} else if !again.asks() {
				v.problem("%s: a retry without answers got %+v", name, again)
			} else {
				r = again
			}
		case 5: // leaves while it waits: at the latest the cancellation of the call ends it
			gone, leave := context.WithTimeout(ctx, time.Duration(v.rand.IntN(3))*time.Millisecond)
			_, err := v.post(gone, c, v.next(), r.Result.RequestState, r.answers())
			leave()
			if err != nil {
				v.left[name] = true
				return
			}
			stale = r.Result.RequestState
			r = v.send(ctx, c, stale, nil) // where the answer went nobody knows: it is told again
			continue
		}
		stale = r.Result.RequestState
		r = v.twice(ctx, name, c, r)
	}
	if r.expired() { // the machine was slower than the time to answer
		v.left[name] = true
		return
	}
	if text := "done " + name; len(r.Result.Content) != 1 || r.Result.Content[0].Text != text || r.Result.IsError {
		v.problem("%s ended with %+v %+v", name, r.Result, r.Error)
	}
}

// twice sends a retry, sometimes two copies of it at the same time.
func (v *visitor) twice(ctx context.Context, name string, c call, r reply) reply {
	if v.rand.IntN(3) > 0 {
		return v.send(ctx, c, r.Result.RequestState, r.answers())
	}
	var copied reply
	var wg sync.WaitGroup
	id := v.next()
	wg.Go(func() {
		var err error
		if copied, err = v.post(ctx, c, id, r.Result.RequestState, r.answers()); err != nil {
			v.problem("%s: %v", name, err)
		}
	})
	first := v.send(ctx, c, r.Result.RequestState, r.answers())
	wg.Wait()
	if first.asks() != copied.asks() && first.Error == nil && copied.Error == nil && !copied.asks() {
		return copied // the copy was later, and has the newer news
	}
	return first
}

func (v *visitor) next() int { v.id++; return v.id }

func (v *visitor) send(ctx context.Context, c call, state string, answers map[string]any) reply {
	r, err := v.post(ctx, c, v.next(), state, answers)
	if err != nil {
		v.problem("%s: %v", c.args, err)
	}
	return r
}

// 64 modern clients with calls that ask three times in a row or twice at once, on one process and on many, with every disturbance:
// each tool ran exactly once, every answer reached its own question, and nothing is left after the TTL.
func TestManyClients(t *testing.T) {
	const clients, ttl = 64, "5s"
	for name, entry := range map[string]string{
		"one process":    `,"ask":{"ttl":"` + ttl + `","perPrincipal":1000,"perLink":1000}`,
		"many processes": `,"isolation":"request","ask":{"ttl":"` + ttl + `","perPrincipal":1000}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t, entry)
			if r := w.must(t, call{"none", `{"call":"first"}`}, 1, "", nil); r.Error != nil {
				t.Fatalf("%+v", r.Error)
			}
			_, before := w.state(t)
			ctx, stop := context.WithTimeout(t.Context(), 2*patience)
			defer stop()
			var wg sync.WaitGroup
			list := make([]*visitor, clients)
			for i := range list {
				v := &visitor{town: w, number: i, rand: rand.New(rand.NewPCG(rand.Uint64(), 1)), left: map[string]bool{}}
				list[i] = v
				wg.Go(func() { v.run(ctx) })
			}
			wg.Wait()
			eventually(t, "no call is parked", func() bool { parked, _ := w.state(t); return parked == 0 })
			ran, left := w.lines(t), map[string]bool{}
			for _, v := range list {
				for _, p := range v.problems {
					t.Error(p)
				}
				maps.Copy(left, v.left)
			}
			delete(ran["run"], "first")
			if len(ran["run"]) != clients*callsEach {
				t.Errorf("%d calls ran, want %d", len(ran["run"]), clients*callsEach)
			}
			for call, n := range ran["run"] {
				if n != 1 {
					t.Errorf("call %s ran %d times", call, n)
				}
				if ran["done"][call] != 1 && !left[call] {
					t.Errorf("call %s was not finished, though its client stayed", call)
				}
			}
			for call := range ran["failed"] {
				if !left[call] {
					t.Errorf("call %s failed", call)
				}
			}
			if len(ran["stray"]) > 0 {
				t.Errorf("the server got answers to nothing: %v", slices.Collect(maps.Keys(ran["stray"])))
			}
			for _, c := range w.ways {
				c.CloseIdleConnections()
			}
			eventually(t, "goroutines are back", func() bool { _, now := w.state(t); return now <= before+8 })
			if len(left) > clients*callsEach/2 {
				t.Errorf("%d calls were not seen to their end, which is more than leave by themselves", len(left))
			}
			t.Logf("%d of %d calls were left by their clients", len(left), clients*callsEach)
		})
	}
}

// The server is killed between two rounds: the client is told so, and the tool does not run again.
func TestServerKilled(t *testing.T) {
	w := newTown(t, "")
	c := call{"steps", `{"call":"k","n":2}`}
	r := w.must(t, c, 1, "", nil)
	text, err := os.ReadFile(w.log)
	if err != nil || !r.asks() {
		t.Fatalf("%v, %+v", err, r)
	}
	pid, _, _ := strings.Cut(string(text), " ")
	n, _ := strconv.Atoi(pid)
	p, err := os.FindProcess(n)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end is noticed", func() bool { parked, _ := w.state(t); return parked == 0 })
	for id := range 2 {
		if again := w.must(t, c, id+2, r.Result.RequestState, r.answers()); again.reason() != "back_terminated" || again.Status != 200 {
			t.Errorf("the retry got %d %+v", again.Status, again.Error)
		}
	}
	if ran := w.lines(t)["run"]["k"]; ran != 1 {
		t.Errorf("the tool ran %d times", ran)
	}
	if fresh := w.must(t, call{"none", `{"call":"n"}`}, 9, "", nil); fresh.Error != nil {
		t.Errorf("a new call: %+v", fresh.Error)
	}
}

// The bridge is killed between two rounds: the next one knows the state for its own, says that the call is lost, and runs nothing.
func TestBridgeKilled(t *testing.T) {
	w := newTown(t, "")
	c := call{"steps", `{"call":"k","n":2}`}
	r := w.must(t, c, 1, "", nil)
	if !r.asks() {
		t.Fatalf("%+v", r)
	}
	w.tenant.Kill(t)
	w.house.Start(t)
	if again := w.must(t, c, 2, r.Result.RequestState, r.answers()); again.reason() != "parked_call_lost" || again.Status != 400 {
		t.Errorf("the retry got %d %+v", again.Status, again.Error)
	}
	if forged := w.must(t, c, 3, r.Result.RequestState+"A", r.answers()); forged.reason() != "request_state_invalid" {
		t.Errorf("a forged state got %+v", forged.Error)
	}
	if ran := w.lines(t)["run"]["k"]; ran != 1 {
		t.Errorf("the tool ran %d times", ran)
	}
}
