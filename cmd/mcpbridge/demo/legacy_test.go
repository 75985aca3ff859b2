package demo

import (
	"strings"
	"testing"
	"testing/synctest"

	"mcpbridge/bridge/mcp"
)

func old(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
}

func oldCall(id, tool, args string) string {
	return old(id, "tools/call", `{"name":"`+tool+`","arguments":`+args+`}`)
}

func oldText(id, text string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + text + `"}]}}`
}

func start(version string) string {
	return old("1", "initialize", `{"protocolVersion":`+version+`,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
}

func started(version, title, completions string) string {
	return `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"` + version + `","capabilities":{"tools":{},"prompts":{},"resources":{"subscribe":true},"logging":{}` +
		completions + `},"serverInfo":{"name":"mcpbridge-demo",` + title + `"version":"0"},"instructions":"` + instructions + `"}}`
}

func TestHandshake(t *testing.T) {
	const titled, completions = `"title":"mcpbridge demo server",`, `,"completions":{}`
	v24, v03 := started("2024-11-05", "", ""), started("2025-03-26", "", completions)
	v06, v11 := started("2025-06-18", titled, completions), started("2025-11-25", titled, completions)
	refused := []string{fails("1", -32602)}
	runScripts(t, []script{
		{name: "VER-41 2024-11-05", in: []string{start(`"2024-11-05"`)}, out: []string{v24}},
		{name: "VER-41 2025-03-26", in: []string{start(`"2025-03-26"`)}, out: []string{v03}},
		{name: "VER-41 2025-06-18", in: []string{start(`"2025-06-18"`)}, out: []string{v06}},
		{name: "VER-41 2025-11-25", in: []string{start(`"2025-11-25"`)}, out: []string{v11}},
		{name: "VER-41 unknown", in: []string{start(`"1999-01-01"`)}, out: []string{v11}},
		{name: "VER-43 modern", in: []string{start(`"2026-07-28"`)}, out: []string{v11}},
		{name: "newest pinned", opts: Options{Newest: mcp.V20250326}, in: []string{start(`"2025-11-25"`)}, out: []string{v03}},
		{name: "older than pinned", opts: Options{Newest: mcp.V20250326}, in: []string{start(`"2024-11-05"`)}, out: []string{v24}},
		{name: "version no string", in: []string{start("1")}, out: refused},
		{name: "no capabilities", in: []string{old("1", "initialize", `{"protocolVersion":"2025-11-25","clientInfo":{}}`)}, out: refused},
		{name: "no client info", in: []string{old("1", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{}}`)}, out: refused},
		{name: "refused handshake can be repeated", in: []string{start("1"), start(`"2025-11-25"`)}, out: []string{fails("1", -32602), v11}},
		{name: "LEG-06 second", session: "2025-11-25", in: []string{start(`"2025-11-25"`)}, out: []string{fails("1", -32600)}},
		{name: "LEG-05 first something else", in: []string{old("1", "tools/list", "{}"), old("2", "no/such", "{}")}, out: []string{fails("1", -32600), fails("2", -32600)}},
		{name: "LEG-08 ping before", in: []string{ping("1")}, out: []string{pong("1")}},
		{name: "unknown method", session: "2025-11-25", in: []string{old("1", "no/such", "{}")}, out: []string{fails("1", -32601)}},
		{name: "CAN-02 initialize cannot be cancelled", in: []string{start(`"2025-11-25"`), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`}, out: []string{v11}},
	})
}

// STD-12: each message is served by its own words.
func TestBothEras(t *testing.T) {
	runScripts(t, []script{{name: "interleaved", session: "2024-11-05",
		in: []string{callReq("1", "add", `{"a":1,"b":1}`, envelope), oldCall("2", "add", `{"a":1,"b":1}`),
			old("3", "server/discover", "{}"), req("4", "ping", "", envelope), ping("5")},
		out: []string{`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"{\"sum\":2}"}],"structuredContent":{"sum":2},` + signature + `}}`,
			oldText("2", `{\"sum\":2}`), fails("3", -32602), fails("4", -32601), pong("5")}}})
}

func TestLegacyOnly(t *testing.T) {
	only := Options{LegacyOnly: true}
	discover := req("1", "server/discover", "", envelope)
	runScripts(t, []script{
		{name: "VER-23 discover before", opts: only, in: []string{discover}, out: []string{fails("1", -32601)}},
		{name: "discover after", opts: only, session: "2025-11-25", in: []string{discover}, out: []string{fails("1", -32601)}},
		{name: "LEG-05", opts: only, in: []string{req("1", "tools/list", "", envelope)}, out: []string{fails("1", -32600)}},
		{name: "envelope ignored", opts: only, session: "2025-11-25", in: []string{callReq("1", "echo", `{"text":"x"}`, envelope)}, out: []string{oldText("1", "x")}},
		{name: "listen unknown", opts: only, session: "2025-11-25", in: []string{listenReq("1", "{}")}, out: []string{fails("1", -32601)}},
	})
}

// VER-45: what a session is shown is what its revision has.
func TestLegacyToolList(t *testing.T) {
	for _, c := range []struct {
		version                     string
		annotations, titles, output bool
	}{{"2024-11-05", false, false, false}, {"2025-03-26", true, false, false}, {"2025-06-18", true, true, true}, {"2025-11-25", true, true, true}} {
		synctest.Test(t, func(t *testing.T) {
			p := connect(t, Options{})
			p.handshake(c.version, "{}")
			p.send(old("1", "tools/list", "{}"))
			line := p.next()
			has := func(text string, want bool) {
				if strings.Contains(line, text) != want {
					t.Errorf("%s: %s there: %v", c.version, text, !want)
				}
			}
			has(`"annotations":`, c.annotations)
			has(`"title":`, c.titles)
			has(`"outputSchema":`, c.output)
			has(`"x-mcp-header":"Region"`, true)
			has(`"resultType"`, false)
			has(`"ttlMs"`, false)
			has(`"_meta"`, false)
			p.close()
		})
	}
}

func TestLegacyTools(t *testing.T) {
	add := oldCall("1", "add", `{"a":2,"b":3}`)
	structured := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"sum\":5}"}],"structuredContent":{"sum":5}}}`
	isError := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"text must be a string"}],"isError":true}}`
	progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1,"total":1`
	countdown := old("1", "tools/call", `{"name":"countdown","arguments":{"from":1},"_meta":{"progressToken":7}}`)
	runScripts(t, []script{
		{name: "2024-11-05 add", session: "2024-11-05", in: []string{add}, out: []string{oldText("1", `{\"sum\":5}`)}},
		{name: "2025-03-26 add", session: "2025-03-26", in: []string{add}, out: []string{oldText("1", `{\"sum\":5}`)}},
		{name: "2025-06-18 add", session: "2025-06-18", in: []string{add}, out: []string{structured}},
		{name: "2025-11-25 add", session: "2025-11-25", in: []string{add}, out: []string{structured}},
		{name: "FEA-04 2025-06-18", session: "2025-06-18", in: []string{oldCall("1", "echo", "{}")}, out: []string{fails("1", -32602)}},
		{name: "FEA-04 2025-11-25", session: "2025-11-25", in: []string{oldCall("1", "echo", "{}")}, out: []string{isError}},
		{name: "progress 2024-11-05", session: "2024-11-05", in: []string{countdown}, out: []string{progress + `}}`, oldText("1", "counted down from 1")}},
		{name: "progress 2025-03-26", session: "2025-03-26", in: []string{countdown}, out: []string{progress + `,"message":"0 to go"}}`, oldText("1", "counted down from 1")}},
		{name: "inputResponses mean nothing", session: "2025-11-25", in: []string{old("1", "tools/call", `{"name":"echo","arguments":{"text":"x"},"inputResponses":5}`)}, out: []string{oldText("1", "x")}},
	})
}

func TestLegacyLogging(t *testing.T) {
	log := func(level string) string { return oldCall("1", "log", `{"level":"`+level+`","text":"t"}`) }
	sent := func(level string) []string {
		return []string{`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level + `","logger":"demo","data":"t"}}`, oldText("1", "sent at level "+level)}
	}
	set := func(level string) string { return old("2", "logging/setLevel", `{"level":`+level+`}`) }
	runScripts(t, []script{
		{name: "LOG-05 info before setLevel", session: "2025-11-25", in: []string{log("info")}, out: sent("info")},
		{name: "LOG-05 debug before setLevel", session: "2025-11-25", in: []string{log("debug")}, out: []string{oldText("1", "not sent: nobody asked for messages of level debug")}},
		{name: "level set", session: "2025-11-25", in: []string{set(`"debug"`), log("debug")}, out: append([]string{pong("2")}, sent("debug")...)},
		{name: "level raised", session: "2025-11-25", in: []string{set(`"error"`), log("warning")}, out: []string{pong("2"), oldText("1", "not sent: nobody asked for messages of level warning")}},
		{name: "LOG-03 unknown level", session: "2025-11-25", in: []string{set(`"loud"`), set("5")}, out: []string{fails("2", -32602), fails("2", -32602)}},
	})
}

func TestLegacySubscriptions(t *testing.T) {
	subscribe := func(method, uri string) string { return old("1", "resources/"+method, `{"uri":"`+uri+`"}`) }
	touch := oldCall("2", "touch", "{}")
	update := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"demo://clock"}}`
	runScripts(t, []script{
		{name: "subscribed", session: "2024-11-05", in: []string{subscribe("subscribe", "demo://clock"), touch}, out: []string{pong("1"), update, oldText("2", "ticks: 1")}},
		{name: "not subscribed", session: "2025-11-25", in: []string{touch}, out: []string{oldText("2", "ticks: 1")}},
		{name: "unsubscribed", session: "2025-11-25", in: []string{subscribe("subscribe", "demo://clock"), subscribe("unsubscribe", "demo://clock"), touch},
			out: []string{pong("1"), pong("1"), oldText("2", "ticks: 1")}},
		{name: "unsubscribe of nothing", session: "2025-11-25", in: []string{subscribe("unsubscribe", "demo://none")}, out: []string{pong("1")}},
		{name: "FEA-01 unknown", session: "2025-11-25", in: []string{subscribe("subscribe", "demo://none"), old("3", "resources/read", `{"uri":"demo://none"}`)},
			out: []string{failsWith("1", -32002, `{"uri":"demo://none"}`), failsWith("3", -32002, `{"uri":"demo://none"}`)}},
		{name: "read after touch", session: "2025-11-25", in: []string{touch, old("3", "resources/read", `{"uri":"demo://clock"}`)},
			out: []string{oldText("2", "ticks: 1"), `{"jsonrpc":"2.0","id":3,"result":{"contents":[{"uri":"demo://clock","mimeType":"text/plain","text":"ticks: 1"}]}}`}},
	})
}

// LEG-04: before notifications/initialized nothing is announced and nothing asked.
func TestBeforeInitialized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Options{})
		p.send(old("1", "initialize", `{"protocolVersion":"2025-11-25","capabilities":`+formOnly+`,"clientInfo":{}}`))
		p.next()
		p.send(old("2", "resources/subscribe", `{"uri":"demo://clock"}`), oldCall("3", "touch", "{}"))
		p.expect(pong("2"), oldText("3", "ticks: 1"))
		p.send(oldCall("4", "ask", `{"question":"Why?"}`))
		p.silent()
		p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		p.expect(question(`"question-1"`))
		p.close()
	})
}

func question(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"elicitation/create","params":{"message":"Why?",
		"requestedSchema":{"type":"object","properties":{"answer":{"type":"string","title":"Answer"}},"required":["answer"]}}}`
}

func TestAskLegacy(t *testing.T) {
	ask := oldCall("1", "ask", `{"question":"Why?"}`)
	failed := func(text string) string {
		return `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + text + `"}],"isError":true}}`
	}
	unable := failed("The client cannot be asked: it did not declare elicitation.")
	runScripts(t, []script{
		{name: "undeclared", session: "2025-11-25", in: []string{ask}, out: []string{unable}},
		{name: "url only", session: "2025-11-25", caps: `{"elicitation":{"url":{}}}`, in: []string{ask}, out: []string{unable}},
		{name: "before 2025-06-18", session: "2025-03-26", caps: formOnly, in: []string{ask}, out: []string{unable}},
		{name: "2025-06-18 knows no modes", session: "2025-06-18", caps: `{"elicitation":{"url":{}}}`, in: []string{ask}, out: []string{question(`"question-1"`)}},
	})
	for _, c := range []struct{ name, answer, want string }{
		{"accept", `"result":{"action":"accept","content":{"answer":"Because"}}`, oldText("1", "Because")},
		{"decline", `"result":{"action":"decline"}`, oldText("1", "The user declined to answer.")},
		{"cancel", `"result":{"action":"cancel"}`, oldText("1", "The user dismissed the question.")},
		{"no answer in content", `"result":{"action":"accept","content":{}}`, failed("The answer does not fit the form: answer must be a string.")},
		{"unknown action", `"result":{"action":"maybe"}`, failed("The client's answer was not valid.")},
		{"error", `"error":{"code":-32601,"message":"no forms"}`, failed("The client could not ask: no forms (-32601)")},
		{"FRM-13 both", `"result":{"action":"decline"},"error":{"code":1,"message":"x"}`, failed("The client's answer was not valid.")},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := connect(t, Options{})
				p.handshake("2025-11-25", formOnly)
				p.send(ask)
				p.expect(question(`"question-1"`))
				p.send(ping("5"))
				p.expect(pong("5"))
				p.send(`{"jsonrpc":"2.0","id":"question-2",`+c.answer+`}`, `{"jsonrpc":"2.0","id":"question-1",`+c.answer+`}`)
				p.expect(c.want)
				p.send(`{"jsonrpc":"2.0","id":"question-1",` + c.answer + `}`) // once only
				p.silent()
				p.close()
			})
		})
	}
}

// A cancelled call withdraws its question and is not answered, even when the client answers late.
func TestAskCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Options{})
		p.handshake("2025-11-25", formOnly)
		p.send(oldCall("1", "ask", `{"question":"Why?"}`))
		p.expect(question(`"question-1"`))
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		p.expect(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"question-1","reason":"the call was cancelled"}}`)
		p.send(`{"jsonrpc":"2.0","id":"question-1","result":{"action":"decline"}}`)
		p.silent()
		p.send(oldCall("1", "ask", `{"question":"Why?"}`)) // FRM-10: a new id for the next question
		p.expect(question(`"question-2"`))
		p.close()
	})
}
