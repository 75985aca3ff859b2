package bridge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/mirror"
	"mcpbridge/framing"
)

func mirrored(tool, header string) string {
	return `{"name":"` + tool + `","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"` + header + `"}}}}`
}

// params asks for the parameters of tool t and gives the header name of the first, "" for none.
func (k *linkRig) params(c *bridge.Conn, again bool) <-chan string {
	ch := make(chan string, 1)
	go func() { ch <- header(k.link.ToolParams(context.Background(), c, "t", again)) }()
	return ch
}

func header(p []mirror.Param) string {
	if len(p) == 0 {
		return ""
	}
	return p[0].Header
}

// serve answers the next tools/list with one page.
func serve(t *testing.T, srv *server, tools, cursor string) *framing.Message {
	t.Helper()
	m := srv.next(t)
	if !m.MethodIs(mcp.ToolsList) {
		t.Fatalf("the bridge sent %s", m.Raw)
	}
	if cursor != "" {
		cursor = `,"nextCursor":` + cursor
	}
	srv.say(result(idOf(m), `{"tools":[`+tools+`]`+cursor+`}`))
	return m
}

const toolsCaps = `{"tools":{"listChanged":true}}`

// The list is read with the first call, and not with every one (XMH-18).
func TestCatalogIsCached(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(toolsCaps))
	c, srv := k.open(t)
	got := k.params(c, false)
	serve(t, srv, mirrored("t", "H"), "")
	if h := <-got; h != "H" {
		t.Errorf("header %q", h)
	}
	for range 10 {
		if h := <-k.params(c, false); h != "H" {
			t.Errorf("header %q", h)
		}
	}
	srv.quiet(t)
	srv.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	got = k.params(c, false)
	serve(t, srv, mirrored("t", "New"), "")
	if h := <-got; h != "New" {
		t.Errorf("header %q after a change", h)
	}
}

// A mismatch asks for a newer list, at most once a second (XMH-18).
func TestCatalogAfterAMismatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(toolsCaps))
		c, srv := k.open(t)
		got := k.params(c, false)
		serve(t, srv, mirrored("t", "H"), "")
		<-got
		pass(time.Second - 1)
		if h := <-k.params(c, true); h != "H" {
			t.Errorf("header %q", h)
		}
		srv.quiet(t)
		pass(1)
		got = k.params(c, true)
		serve(t, srv, mirrored("t", "New"), "")
		if h := <-got; h != "New" {
			t.Errorf("header %q", h)
		}
		<-k.params(c, true)
		srv.quiet(t)
	})
}

// Concurrent callers wait for one fetch; one that leaves does not end it.
func TestCatalogOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(toolsCaps))
		c, srv := k.open(t)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan string, 1)
		go func() { left <- header(k.link.ToolParams(ctx, c, "t", false)) }()
		synctest.Wait() // it fetches
		var all []<-chan string
		for range 20 {
			all = append(all, k.params(c, false))
		}
		leave()
		synctest.Wait()
		serve(t, srv, mirrored("t", "H"), "")
		for _, ch := range all {
			if h := <-ch; h != "H" {
				t.Errorf("header %q", h)
			}
		}
		<-left
		srv.quiet(t)
	})
}

// A change in the middle of a fetch makes the next call fetch again.
func TestCatalogChangesWhileFetched(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(toolsCaps))
	c, srv := k.open(t)
	got := k.params(c, false)
	m := srv.next(t)
	srv.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	srv.say(result(idOf(m), `{"tools":[`+mirrored("t", "Old")+`]}`))
	<-got
	got = k.params(c, false)
	serve(t, srv, mirrored("t", "New"), "")
	if h := <-got; h != "New" {
		t.Errorf("header %q", h)
	}
}

// All pages are read, with the cursor as the server gave it; one that repeats ends the reading.
func TestCatalogPages(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(toolsCaps))
	c, srv := k.open(t)
	got := k.params(c, false)
	serve(t, srv, mirrored("x", "X"), `"c\n"`)
	if m := serve(t, srv, mirrored("t", "H"), `""`); string(m.Bytes(m.Params)) != `{"cursor":"c\n"}` {
		t.Errorf("second page asked for with %s", m.Raw)
	}
	if m := serve(t, srv, "", `null`); string(m.Bytes(m.Params)) != `{"cursor":""}` {
		t.Errorf("third page asked for with %s", m.Raw)
	}
	if h := <-got; h != "H" {
		t.Errorf("header %q", h)
	}

	srv.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	got = k.params(c, false)
	serve(t, srv, mirrored("t", "H"), `"same"`)
	serve(t, srv, "", `"same"`)
	if h := <-got; h != "" {
		t.Errorf("header %q of a list that has no end", h)
	}
	srv.quiet(t)
}

// A list of 1,000 pages is read, a longer one given up (rule 4).
func TestCatalogPageLimit(t *testing.T) {
	for pages, want := range map[int]string{1000: "H", 1001: ""} {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(toolsCaps))
		c, srv := k.open(t)
		got := k.params(c, false)
		serve(t, srv, mirrored("t", "H"), `"0"`)
		for i := 1; i < min(pages, 1000); i++ {
			cursor := fmt.Sprintf("%q", fmt.Sprint(i))
			if i == pages-1 {
				cursor = ""
			}
			serve(t, srv, "", cursor)
		}
		if h := <-got; h != want {
			t.Errorf("%d pages: header %q, want %q", pages, h, want)
		}
		srv.quiet(t)
	}
}

// A list that cannot be read counts as empty until the next change: the server decides by itself.
func TestCatalogFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{Limits: bridge.Limits{Start: minute}}, legacyFacts(toolsCaps))
		c, srv := k.open(t)
		start := time.Now()
		if h := <-k.params(c, false); h != "" || time.Since(start) != minute { // it keeps silent
			t.Errorf("header %q after %v", h, time.Since(start))
		}
		<-k.params(c, false)
		if n := len(srv.got); n != 2 { // the request and its cancellation
			t.Errorf("%d messages sent", n)
		}
		if k.ev.count(bridge.EventTool) != 1 {
			t.Error("not reported")
		}
	})
	k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(`{}`)) // no tools
	c, srv := k.open(t)
	if h := <-k.params(c, false); h != "" {
		t.Errorf("header %q", h)
	}
	srv.quiet(t)
}

// Whoever waits for a server's list while that server ends gets the list of the next one, not nothing.
func TestCatalogOfTheNextServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newLinkRig(t, bridge.LinkConfig{}, legacyFacts(toolsCaps))
		c1, srv1 := k.open(t)
		old := k.params(c1, false)
		srv1.next(t)
		k2 := newServer() // a second connection, as after a restart
		c2 := bridge.NewConn(k2, bridge.ConnConfig{Name: "srv", Handler: k.link})
		c2.Establish(legacyFacts(toolsCaps))
		got := k.params(c2, false)
		synctest.Wait()
		srv1.die(errDied)
		<-old
		serve(t, k2, mirrored("t", "H"), "")
		if h := <-got; h != "H" {
			t.Errorf("header %q", h)
		}
		_ = c2.Close(context.Background())
	})
}

// A modern server is listened to before its list is read, so that no change falls between; once (SUB-02).
func TestCatalogWatchesModernServers(t *testing.T) {
	k := newLinkRig(t, bridge.LinkConfig{}, modernFacts(toolsCaps))
	c, srv := k.open(t)
	got := k.params(c, false)
	listen := srv.next(t)
	if !listen.MethodIs(mcp.Listen) || string(listen.Bytes(listen.Param("notifications"))) != `{"toolsListChanged":true}` ||
		!listen.MetaMember(mcp.MetaProtocolVersion).OK() {
		t.Fatalf("the bridge sent %s", listen.Raw)
	}
	if m := serve(t, srv, mirrored("t", "H"), ""); !m.MetaMember(mcp.MetaClientCapabilities).OK() {
		t.Errorf("no envelope: %s", m.Raw)
	}
	<-got
	srv.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"` + mcp.MetaSubscriptionID + `":` + idOf(listen) + `}}}`)
	got = k.params(c, false)
	serve(t, srv, mirrored("t", "New"), "")
	if h := <-got; h != "New" {
		t.Errorf("header %q", h)
	}
	if k.ev.count(bridge.EventDropped) != 0 {
		t.Error("the change was reported as dropped")
	}
	if k.link.Use().Busy() {
		t.Error("the bridge's own listen keeps the link from being idle")
	}

	silent := newLinkRig(t, bridge.LinkConfig{}, modernFacts(`{"tools":{}}`))
	c, srv = silent.open(t)
	got = silent.params(c, false)
	serve(t, srv, mirrored("t", "H"), "") // nothing to listen to
	<-got
}

// The operator's annotations are added to what clients see and to what headers are checked against; invalid annotations
// of the server are taken off, the tool stays (design decision 11, XMH-12).
func TestMirrorRules(t *testing.T) {
	tool := func(schema string) string { return `{"name":"t","z":1.0,"inputSchema":` + schema + `,"y":{}}` }
	for name, c := range map[string]struct {
		rules      bridge.MirrorRules
		tool, want string
		header     string
		reports    bool
	}{
		"none":    {nil, tool(`{"type":"object"}`), tool(`{"type":"object"}`), "", false},
		"valid":   {nil, mirrored("t", "H"), mirrored("t", "H"), "H", false},
		"invalid": {nil, mirrored("t", "b d"), `{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`, "", true},
		"added": {bridge.MirrorRules{"t": {"a": "Mine"}}, tool(`{"type":"object","properties":{"a":{"type":"string"}}}`),
			tool(`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Mine"}}}`), "Mine", false},
		"other tool": {bridge.MirrorRules{"u": {"a": "Mine"}}, mirrored("t", "H"), mirrored("t", "H"), "H", false},
		"no such":    {bridge.MirrorRules{"t": {"b": "Mine"}}, mirrored("t", "H"), mirrored("t", "H"), "H", true},
		"no schema":  {bridge.MirrorRules{"t": {"a": "Mine"}}, `{"name":"t"}`, `{"name":"t"}`, "", false},
		"no object":  {bridge.MirrorRules{"t": {"a": "Mine"}}, `7`, `7`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newLinkRig(t, bridge.LinkConfig{Mirror: c.rules}, legacyFacts(toolsCaps))
			conn, srv := k.open(t)
			ex, out := exchange(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
			_, id := dispatch(t, conn, srv, ex)
			srv.say(result(id, `{"tools":[`+c.tool+`]}`))
			if got, want := out.answer(t), result(`"l"`, `{"tools":[`+c.want+`]}`); got != want {
				t.Errorf("the client sees\n%s, want\n%s", got, want)
			}
			if got := k.ev.count(bridge.EventTool) > 0; got != c.reports {
				t.Errorf("reported: %v", got)
			}
			got := k.params(conn, false)
			serve(t, srv, c.tool, "")
			if h := <-got; h != c.header {
				t.Errorf("checked against %q, want %q", h, c.header)
			}
		})
	}
}

// A tools/list result that is none does no harm.
func TestCatalogOfNonsense(t *testing.T) {
	for _, body := range []string{`{}`, `{"tools":7}`, `{"tools":{}}`, `[]`, `{"tools":[1,null,"x",{"name":7}],"nextCursor":null}`} {
		k := newLinkRig(t, bridge.LinkConfig{Mirror: bridge.MirrorRules{"t": {"a": "A"}}}, legacyFacts(toolsCaps))
		c, srv := k.open(t)
		got := k.params(c, false)
		m := srv.next(t)
		srv.say(result(idOf(m), body))
		if h := <-got; h != "" {
			t.Errorf("%s: header %q", body, h)
		}
	}
	if !strings.Contains(string(bridge.OwnParams(mcp.V20260728, "")), `"io.modelcontextprotocol/clientCapabilities":{}}`) {
		t.Error("own params lack the envelope")
	}
}
