package bridge_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

const (
	changing = `{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true,"listChanged":true}}`
	toolsNew = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
)

func updatedNote(uri string) string {
	return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":` + uri + `}}`
}

// tagged is a notification as a listener of this id gets it.
func tagged(note, id string) string {
	meta := `"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}`
	if strings.Contains(note, `"params"`) {
		return strings.TrimSuffix(note, "}}") + "," + meta + "}}"
	}
	return strings.TrimSuffix(note, "}") + `,"params":{` + meta + `}}`
}

func ackOf(filter, id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":` + filter + `,"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`
}

// listening is a listen under way.
type listening struct {
	sink *sink
	l    *bridge.Listener
	err  *bridge.Error
	done chan struct{}
}

func (k *linkRig) listen(c *bridge.Conn, id, filter string) *listening {
	ex, s := exchange(`{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":` + filter + `}}`)
	ex.Era, ex.Version = mcp.Modern, mcp.V20260728
	w := &listening{sink: s, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.l, w.err = k.link.Listen(context.Background(), c, ex)
	}()
	synctest.Wait()
	return w
}

// answerAll answers what the bridge has sent with f.
func (s *server) answerAll(t *testing.T, f func(m *framing.Message) string) {
	t.Helper()
	for {
		synctest.Wait()
		select {
		case b := <-s.got:
			m, err := framing.Scan(b)
			if err != nil {
				t.Fatal(err)
			}
			if body := f(m); body != "" {
				s.say(body)
			}
		default:
			return
		}
	}
}

func agree(m *framing.Message) string { return result(idOf(m), `{}`) }

// The exchange of translation 8.2: what the server cannot tell of is left out, and so is a resource it refuses; nothing comes before
// the acknowledgement, what came meanwhile right behind it, once of each kind (SUB-03, SUB-04, SUB-05, SUB-06).
func TestListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(changing))
		c, srv := k.open(t)
		w := k.listen(c, `"s"`, `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":false,"later":1,"resourceSubscriptions":["a","none","a"]}`)
		for range 3 {
			srv.say(toolsNew)
		}
		same(t, "before the acknowledgement", w.sink.noted(), nil)
		srv.answerAll(t, func(m *framing.Message) string {
			if !m.MethodIs(mcp.ResourcesSubscribe) {
				t.Errorf("the bridge sent %s", m.Raw)
			}
			if string(m.Bytes(m.Param("uri"))) == `"none"` {
				return `{"jsonrpc":"2.0","id":` + idOf(m) + `,"error":{"code":-32002,"message":"not found"}}`
			}
			return agree(m)
		})
		<-w.done
		srv.say(updatedNote(`"a"`))
		srv.say(updatedNote(`"a/b"`)) // SUB-15
		srv.say(updatedNote(`"b"`))
		srv.say(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
		srv.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"emergency","data":1}}`)
		same(t, "notifications", w.sink.noted(), []string{ackOf(`{"toolsListChanged":true,"resourceSubscriptions":["a"]}`, `"s"`),
			tagged(toolsNew, `"s"`), tagged(updatedNote(`"a"`), `"s"`), tagged(updatedNote(`"a/b"`), `"s"`)})
		w.sink.open(t)
		w.l.End()
		same(t, "end", []string{w.sink.only(t)}, []string{`{"jsonrpc":"2.0","id":"s","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}`})
	})
}

// A filter of which nothing can be honoured is acknowledged all the same (SUB-17); one of the wrong shape is refused.
func TestListenFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{}`))
		c, srv := k.open(t)
		w := k.listen(c, "7", `{"toolsListChanged":true,"resourceSubscriptions":["a"]}`)
		same(t, "notifications", w.sink.noted(), []string{ackOf(`{}`, "7")})
		for _, bad := range []string{`[]`, `1`, `{"toolsListChanged":1}`, `{"resourceSubscriptions":{}}`, `{"resourceSubscriptions":[1]}`} {
			if w := k.listen(c, "8", bad); w.err == nil || w.err.Code != mcp.CodeInvalidParams || w.err.HTTPStatus() != 400 {
				t.Errorf("%s: %+v", bad, w.err)
			}
		}
		srv.quiet(t)
	})
}

// A server that does not confirm a subscription in time does not hold the listen up; the resource is left out, and given back.
func TestListenSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(changing))
		c, srv := k.open(t)
		w := k.listen(c, "1", `{"toolsListChanged":true,"resourceSubscriptions":["a"]}`)
		pass(5*time.Second - 1)
		same(t, "notifications", w.sink.noted(), nil)
		pass(1)
		same(t, "notifications", w.sink.noted(), []string{ackOf(`{"toolsListChanged":true}`, "1")})
		var methods []string
		srv.answerAll(t, func(m *framing.Message) string {
			methods = append(methods, m.MethodName())
			if m.MethodIs(mcp.ResourcesUnsubscribe) {
				return agree(m)
			}
			return ""
		})
		same(t, "methods", methods, []string{mcp.ResourcesSubscribe, mcp.Cancelled, mcp.ResourcesUnsubscribe})
	})
}

// The server is told of a resource once, however many hold it, and released two seconds after the last has left, if nobody has
// come back meanwhile (translation 8.2).
func TestListenCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(changing))
		c, srv := k.open(t)
		legacy := &session{}
		k.link.Attach(legacy)
		one := k.listen(c, "1", `{"resourceSubscriptions":["a"]}`)
		srv.answerAll(t, agree)
		two := k.listen(c, "2", `{"resourceSubscriptions":["a"]}`)
		if got := <-k.subscribing(c, legacy, `"a"`); got.err != nil || got.refused != nil {
			t.Fatalf("subscribe: %v", got)
		}
		srv.quiet(t)
		srv.say(updatedNote(`"a"`))
		same(t, "one", one.sink.noted()[1:], []string{tagged(updatedNote(`"a"`), "1")})
		same(t, "two", two.sink.noted()[1:], []string{tagged(updatedNote(`"a"`), "2")})
		same(t, "legacy", legacy.take(), []string{updatedNote(`"a"`)})
		k.link.Detach(one.l)
		k.link.Detach(legacy)
		k.link.Detach(two.l)
		pass(2*time.Second - 1)
		srv.quiet(t)
		three := k.listen(c, "3", `{"resourceSubscriptions":["a"]}`)
		pass(time.Minute)
		srv.quiet(t)
		k.link.Detach(three.l)
		pass(2 * time.Second)
		if m := srv.next(t); !m.MethodIs(mcp.ResourcesUnsubscribe) {
			t.Errorf("the bridge sent %s", m.Raw)
		}
	})
}

// The server ends and comes back by itself, because somebody listens: nothing closes, the resources are subscribed to again, and
// everything that may have changed is said to have (SUB-16, STD-05). One that has less to tell then ends the listen in good order.
func TestListenOutlivesServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(changing))
		c, srv := k.open(t)
		w := k.listen(c, "1", `{"toolsListChanged":true,"resourceSubscriptions":["a"]}`)
		srv.answerAll(t, agree)
		if u := k.link.Use(); !u.Busy() {
			t.Error("a link with a listener may rest")
		}
		srv.die(errDied)
		synctest.Wait()
		srv = <-k.back.servers
		srv.answerAll(t, agree)
		same(t, "notifications", w.sink.noted()[1:], []string{tagged(toolsNew, "1"), tagged(updatedNote(`"a"`), "1")})
		w.sink.open(t)
		k.back.set(func() { k.back.facts = legacyFacts(`{"tools":{"listChanged":true},"resources":{}}`) })
		srv.die(errDied)
		synctest.Wait()
		if got := w.sink.only(t); !strings.Contains(got, `"resultType":"complete"`) {
			t.Errorf("the listen ended with %s", got)
		}
	})
}

// A link that is taken away ends its listens without a result: the client listens again, where it can (SUB-11).
func TestListenLinkClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(changing))
		c, _ := k.open(t)
		w := k.listen(c, "1", `{"toolsListChanged":true}`)
		_ = k.link.Close(context.Background())
		same(t, "end", []string{w.sink.only(t)}, []string{""})
		if again := k.listen(c, "2", `{}`); again.err == nil || again.err.Reason != bridge.ReasonStopping {
			t.Errorf("a listen on a closed link: %+v", again.err)
		}
	})
}

// A link that serves one request subscribes to nothing (translation 14.2).
func TestListenSingle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{Single: true}, legacyFacts(changing))
		c, srv := k.open(t)
		w := k.listen(c, "1", `{"toolsListChanged":true,"resourceSubscriptions":["a"]}`)
		same(t, "notifications", w.sink.noted(), []string{ackOf(`{"toolsListChanged":true}`, "1")})
		srv.quiet(t)
	})
}

// The limits of listens and of what one may name, at n and n+1; one that leaves makes room.
func TestListenLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{Limits: bridge.Limits{Listeners: 2, Subscriptions: 3}}, legacyFacts(changing))
		c, srv := k.open(t)
		refused := func(w *listening) bool {
			return w.err != nil && w.err.Reason == bridge.ReasonOverload && w.err.HTTPStatus() == 429
		}
		one, two := k.listen(c, "1", `{}`), k.listen(c, "2", `{}`)
		if one.err != nil || two.err != nil || !refused(k.listen(c, "3", `{}`)) {
			t.Errorf("listens: %v, %v, and a third that is one too many", one.err, two.err)
		}
		k.link.Detach(one.l)
		k.link.Detach(two.l)
		if !refused(k.listen(c, "4", `{"resourceSubscriptions":["a","b","c","d"]}`)) {
			t.Error("four resources are taken")
		}
		w := k.listen(c, "5", `{"resourceSubscriptions":["a","b","c"]}`)
		srv.answerAll(t, agree)
		same(t, "notifications", w.sink.noted(), []string{ackOf(`{"resourceSubscriptions":["a","b","c"]}`, "5")})
	})
}
