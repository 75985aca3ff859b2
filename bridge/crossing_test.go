package bridge_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/framing"
)

// crossing is one run: many clients with equal ids and equal tokens on one connection.
type crossing struct {
	srv  *server
	conn *bridge.Conn
	rnd  *rand.Rand
}

// traveller is one exchange on its way; mark tells it apart at the server, and nothing else does.
type traveller struct {
	mark string
	sink *sink
	err  *bridge.Error
}

// Whatever happens, every request is finished exactly once, with its own answer and none but its own notifications
// (rules 2 and 3): answers in any order, late and twice, cancels, a full queue, and the server's death at any moment.
func TestNothingCrosses(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for round := range 60 {
		x := &crossing{srv: newServer(), rnd: rand.New(rand.NewPCG(seed, uint64(round)))}
		x.conn = bridge.NewConn(x.srv, bridge.ConnConfig{Name: "srv", Handler: &handler{}, Limits: bridge.Limits{Calls: 150}})
		x.conn.Establish(legacyFacts(`{}`))
		x.run(t)
		if t.Failed() {
			t.Fatalf("seed %d, round %d", seed, round)
		}
	}
}

func (x *crossing) run(t *testing.T) {
	const clients, each = 8, 25
	seed, life, dies := x.rnd.Uint64(), x.rnd.IntN(2*clients*each), x.rnd.IntN(3) > 0
	served := make(chan struct{})
	go func() { defer close(served); x.serve(life, dies) }()
	var wg sync.WaitGroup
	all := make([][]*traveller, clients)
	for i := range clients {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() { all[i] = x.client(i, each, rnd) })
	}
	wg.Wait()
	x.srv.die(errDied) // what is still open fails now
	<-x.conn.Done()
	<-served
	for _, list := range all {
		for _, v := range list {
			v.check(t)
		}
	}
	if n := openAt(x.conn); n != 0 {
		t.Errorf("%d requests open at a dead server", n)
	}
}

// client sends requests that all have the id 1 and the token "p", and cancels some.
func (x *crossing) client(i, n int, rnd *rand.Rand) (list []*traveller) {
	s := &session{}
	for j := range n {
		v := &traveller{mark: fmt.Sprintf("%d-%d", i, j)}
		ex, out := exchange(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"mark":"` + v.mark + `"},"_meta":{"progressToken":"p"}}}`)
		ex.Session, v.sink = s, out
		ctx, stop := context.WithCancel(context.Background())
		if rnd.IntN(8) == 0 {
			stop() // the client is gone already
		}
		var ticket bridge.Ticket
		ticket, v.err = x.conn.Dispatch(ctx, ex)
		list = append(list, v)
		switch rnd.IntN(4) {
		case 0:
			if v.err == nil && ticket.Cancel([]byte(`"x"`)) {
				out.Finish(bridge.Answer{})
			}
		case 1:
			x.conn.CancelWhere([]byte("1"), nil, func(e *bridge.Exchange) bool { return e == ex })
		}
		stop()
	}
	return list
}

// serve answers what comes in any order, some of it twice, with progress before and after, until it has had its number of
// messages; then it dies, or is silent.
func (x *crossing) serve(life int, dies bool) {
	var open []*framing.Message
	for range life {
		select {
		case b := <-x.srv.got:
			if m, err := framing.Scan(b); err == nil && m.Kind == framing.Request {
				open = append(open, m)
			}
		case <-x.srv.dead:
			return
		case <-time.After(100 * time.Microsecond):
		}
		for len(open) > 0 && x.rnd.IntN(3) > 0 {
			i := x.rnd.IntN(len(open))
			x.answer(open[i])
			if x.rnd.IntN(5) > 0 { // else it is answered again later
				open = append(open[:i], open[i+1:]...)
			}
		}
		if x.rnd.IntN(10) == 0 {
			unblock := x.srv.block()
			time.AfterFunc(50*time.Microsecond, unblock)
		}
	}
	if dies {
		x.srv.die(errDied)
	}
}

func (x *crossing) answer(m *framing.Message) {
	id, args := idOf(m), string(m.Bytes(m.Param("arguments")))
	note := func(n int) {
		x.srv.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + id + `,"progress":` + strconv.Itoa(n) + `,"x":` + args + `}}`)
	}
	note(1)
	note(2)
	switch x.rnd.IntN(4) {
	case 0:
		x.srv.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":1,"message":"m","data":` + args + `}}`)
	case 1:
		x.srv.say(`[` + result(`"`+id+`"`, args) + `]`)
	case 2:
		x.srv.say(`{"jsonrpc":"2.0","id":` + id + `,"result":` + args + `,"error":{"code":1,"message":"m"}}`)
	default:
		x.srv.say(result(id, args))
	}
	note(3)
}

func (v *traveller) check(t *testing.T) {
	v.sink.mu.Lock()
	defer v.sink.mu.Unlock()
	want := 1
	if v.err != nil { // the error is the answer
		want = 0
	}
	if len(v.sink.answers) != want {
		t.Errorf("%s: %d answers, want %d (error %v)", v.mark, len(v.sink.answers), want, v.err)
		return
	}
	own := `"mark":"` + v.mark + `"`
	for _, n := range v.sink.notes {
		if !strings.Contains(n, own) || !strings.Contains(n, `"progressToken":"p"`) {
			t.Errorf("%s: got %s", v.mark, n)
		}
	}
	if want == 0 {
		return
	}
	a := string(v.sink.answers[0].Frame.Bytes())
	switch {
	case a == "": // cancelled
	case !strings.Contains(a, `"id":1,`):
		t.Errorf("%s: answer %s", v.mark, a)
	case strings.Contains(a, `"source":"bridge"`):
		if !strings.Contains(a, string(bridge.ReasonBackTerminated)) && !strings.Contains(a, string(bridge.ReasonPeerProtocolError)) {
			t.Errorf("%s: answer %s", v.mark, a)
		}
	case !strings.Contains(a, own):
		t.Errorf("%s: answer %s", v.mark, a)
	}
}
