package demo

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// req builds a modern request; members come before the envelope.
func req(id, method, members, env string) string {
	if members != "" {
		members += ","
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + members + env + `}}`
}

func callReq(id, tool, args, env string) string {
	return req(id, "tools/call", `"name":"`+tool+`","arguments":`+args, env)
}

// okText is the modern result of a tool that returned a text.
func okText(id, text string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"complete","content":[{"type":"text","text":"` + text + `"}],` + signature + `}}`
}

func failsWith(id string, code int, data string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":` + fmt.Sprint(code) + `,"data":` + data + `}}`
}

const formOnly = `{"elicitation":{}}`

func TestModernEnvelope(t *testing.T) {
	meta := func(members string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"none","_meta":{` + members + `}}}`
	}
	version := func(v string) string { return `"io.modelcontextprotocol/protocolVersion":` + v }
	const caps = `"io.modelcontextprotocol/clientCapabilities":{}`
	refused := []string{fails("1", -32602)}
	// The prompt does not exist, so a request that passes ends with -32602 and another text; data tells 22 apart.
	runScripts(t, []script{
		{name: "META-03 no capabilities", in: []string{meta(version(`"2026-07-28"`))}, out: refused},
		{name: "META-03 no version", in: []string{meta(caps)}, out: refused},
		{name: "META-03 neither", in: []string{meta("")}, out: []string{fails("1", -32600)}},
		{name: "META-05 version no string", in: []string{meta(version("1") + "," + caps)}, out: refused},
		{name: "META-05 capabilities null", in: []string{meta(version(`"2026-07-28"`) + `,"io.modelcontextprotocol/clientCapabilities":null`)}, out: refused},
		{name: "META-05 client info no object", in: []string{meta(version(`"2026-07-28"`) + "," + caps + `,"io.modelcontextprotocol/clientInfo":[]`)}, out: refused},
		{name: "_meta no object", in: []string{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":[]}}`}, out: refused},
		{name: "LOG-03 unknown level", in: []string{meta(version(`"2026-07-28"`) + "," + caps + `,"io.modelcontextprotocol/logLevel":"loud"`)}, out: refused},
		{name: "PRG-01 token no string or integer", in: []string{req("1", "tools/list", "", envelopeWith("{}", `"progressToken":1.5`))}, out: refused},
		{name: "VER-01 unknown version", in: []string{meta(version(`"1900-01-01"`) + "," + caps)},
			out: []string{failsWith("1", -32022, `{"supported":["2026-07-28"],"requested":"1900-01-01"}`)}},
		{name: "META-13 legacy version", in: []string{meta(version(`"2025-11-25"`) + "," + caps)},
			out: []string{failsWith("1", -32022, `{"supported":["2026-07-28"],"requested":"2025-11-25"}`)}},
		{name: "HTTP-M-41 metadata before version", in: []string{meta(version(`"1900-01-01"`))}, out: refused},
		{name: "HTTP-M-41 version before method", in: []string{strings.Replace(meta(version(`"1900-01-01"`)+","+caps), "prompts/get", "no/such", 1)},
			out: []string{failsWith("1", -32022, `{"supported":["2026-07-28"],"requested":"1900-01-01"}`)}},
		{name: "META-04 client info optional", in: []string{callReq("1", "echo", `{"text":"x"}`, envelope)}, out: []string{okText("1", "x")}},
		{name: "HTTP-M-23 removed methods", in: []string{
			req("1", "initialize", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{}`, envelope),
			req("2", "ping", "", envelope), req("3", "logging/setLevel", `"level":"info"`, envelope),
			req("4", "resources/subscribe", `"uri":"demo://clock"`, envelope), req("5", "resources/unsubscribe", `"uri":"demo://clock"`, envelope),
			req("6", "no/such", "", envelope), req("7", "tasks/get", `"taskId":"x"`, envelope)},
			out: []string{fails("1", -32601), fails("2", -32601), fails("3", -32601), fails("4", -32601), fails("5", -32601), fails("6", -32601), fails("7", -32601)}},
		{name: "discover without envelope", in: []string{ping("0"), `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, `{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen"}`},
			out: []string{pong("0"), fails("1", -32602), fails("2", -32602)}},
	})
}

func TestDiscover(t *testing.T) {
	runScripts(t, []script{{name: "DSC-02", opts: Options{Version: "1.2"}, in: []string{req(`"d"`, "server/discover", "", envelope)},
		out: []string{`{"jsonrpc":"2.0","id":"d","result":{"resultType":"complete","supportedVersions":["2026-07-28"],
			"capabilities":{"tools":{},"prompts":{},"resources":{"subscribe":true},"logging":{},"completions":{}},
			"instructions":"` + instructions + `","ttlMs":60000,"cacheScope":"public",` + strings.Replace(signature, `"0"`, `"1.2"`, 1) + `}}`}}})
}

func TestModernLists(t *testing.T) {
	list := func(members string) string {
		return `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",` + members + `,"ttlMs":60000,"cacheScope":"public",` + signature + `}}`
	}
	runScripts(t, []script{
		{name: "resources", in: []string{req("1", "resources/list", "", envelope)}, out: []string{list(`"resources":[
			{"uri":"demo://clock","name":"clock","title":"Clock","mimeType":"text/plain","description":"Counts the calls of the tool touch."},
			{"uri":"demo://readme","name":"readme","title":"Read me","mimeType":"text/plain","description":"What this server is for."}]`)}},
		{name: "templates", in: []string{req("1", "resources/templates/list", `"cursor":null`, envelope)}, out: []string{list(`"resourceTemplates":[
			{"uriTemplate":"demo://greeting/{name}","name":"greeting","title":"Greeting","mimeType":"text/plain","description":"A greeting for a name."}]`)}},
		{name: "prompts", in: []string{req("1", "prompts/list", "", envelope)}, out: []string{list(`"prompts":[
			{"name":"greet","title":"Greet","description":"Asks for a warm greeting.","arguments":[{"name":"name","title":"Name","description":"Who is greeted.","required":true}]}]`)}},
		{name: "FEA-03 FEA-06 cursors", in: []string{req("1", "tools/list", `"cursor":"x"`, envelope), req("2", "prompts/list", `"cursor":""`, envelope),
			req("3", "resources/list", `"cursor":5`, envelope), req("4", "resources/templates/list", `"cursor":"x"`, envelope)},
			out: []string{fails("1", -32602), fails("2", -32602), fails("3", -32602), fails("4", -32602)}},
	})
}

func TestModernReads(t *testing.T) {
	read := func(uri string) string { return req("1", "resources/read", `"uri":"`+uri+`"`, envelope) }
	text := func(uri, text string, ttl int) string {
		return `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","contents":[{"uri":"` + uri + `","mimeType":"text/plain","text":"` + text +
			`"}],"ttlMs":` + fmt.Sprint(ttl) + `,"cacheScope":"public",` + signature + `}}`
	}
	missing := func(uri string) []string { return []string{failsWith("1", -32602, `{"uri":"`+uri+`"}`)} }
	runScripts(t, []script{
		{name: "clock", in: []string{read("demo://clock")}, out: []string{text("demo://clock", "ticks: 0", 0)}},
		{name: "readme", in: []string{read("demo://readme")}, out: []string{text("demo://readme", strings.ReplaceAll(readme, "\n", `\n`), 60000)}},
		{name: "greeting", in: []string{read("demo://greeting/Ada%20L")}, out: []string{text("demo://greeting/Ada%20L", "Hello, Ada L!", 60000)}},
		{name: "FEA-01", in: []string{read("demo://none")}, out: missing("demo://none")},
		{name: "greeting nobody", in: []string{read("demo://greeting/")}, out: missing("demo://greeting/")},
		{name: "greeting two segments", in: []string{read("demo://greeting/a/b")}, out: missing("demo://greeting/a/b")},
		{name: "greeting bad escape", in: []string{read("demo://greeting/%zz")}, out: missing("demo://greeting/%zz")},
		{name: "no uri", in: []string{req("1", "resources/read", "", envelope)}, out: []string{fails("1", -32602)}},
	})
}

func TestPromptsAndCompletion(t *testing.T) {
	complete := func(ref, argument string) string {
		return req("1", "completion/complete", `"ref":`+ref+`,"argument":`+argument, envelope)
	}
	values := func(list string, n int) []string {
		return []string{fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","completion":{"values":[%s],"total":%d,"hasMore":false},%s}}`, list, n, signature)}
	}
	const prompt, template = `{"type":"ref/prompt","name":"greet"}`, `{"type":"ref/resource","uri":"demo://greeting/{name}"}`
	refused := []string{fails("1", -32602)}
	runScripts(t, []script{
		{name: "get", in: []string{req("1", "prompts/get", `"name":"greet","arguments":{"name":"Ada"}`, envelope)},
			out: []string{`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","description":"A greeting for Ada","messages":[{"role":"user","content":{"type":"text","text":"Greet Ada warmly, in one sentence."}}],` + signature + `}}`}},
		{name: "FEA-03 unknown", in: []string{req("1", "prompts/get", `"name":"none"`, envelope)}, out: refused},
		{name: "FEA-03 argument missing", in: []string{req("1", "prompts/get", `"name":"greet"`, envelope)}, out: refused},
		{name: "argument no string", in: []string{req("1", "prompts/get", `"name":"greet","arguments":{"name":1}`, envelope)}, out: refused},
		{name: "complete prompt", in: []string{complete(prompt, `{"name":"name","value":"a"}`)}, out: values(`"Ada","Alan"`, 2)},
		{name: "complete template", in: []string{complete(template, `{"name":"name","value":"Gr"}`)}, out: values(`"Grace"`, 1)},
		{name: "complete nothing", in: []string{complete(prompt, `{"name":"name","value":"zz"}`)}, out: values("", 0)},
		{name: "complete other argument", in: []string{complete(prompt, `{"name":"other","value":""}`)}, out: refused},
		{name: "complete other prompt", in: []string{complete(`{"type":"ref/prompt","name":"x"}`, `{"name":"name","value":""}`)}, out: refused},
		{name: "complete without value", in: []string{complete(prompt, `{"name":"name"}`)}, out: refused},
	})
}

func TestModernTools(t *testing.T) {
	isError := func(text string) string {
		return `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","isError":true,"content":[{"type":"text","text":"` + text + `"}],` + signature + `}}`
	}
	runScripts(t, []script{
		{name: "add", in: []string{callReq("1", "add", `{"a":1.5,"b":2}`, envelope)}, out: []string{
			`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"{\"sum\":3.5}"}],"structuredContent":{"sum":3.5},` + signature + `}}`}},
		{name: "add overflow", in: []string{callReq("1", "add", `{"a":1.7e308,"b":1.7e308}`, envelope)}, out: []string{isError("the sum is too large")}},
		{name: "FEA-04 add", in: []string{callReq("1", "add", `{"a":"1","b":2}`, envelope)}, out: []string{isError("a and b must be numbers")}},
		{name: "FEA-04 echo", in: []string{callReq("1", "echo", `{}`, envelope)}, out: []string{isError("text must be a string")}},
		{name: "region_echo", in: []string{callReq("1", "region_echo", `{"region":"eu","text":"x"}`, envelope)}, out: []string{okText("1", "eu: x")}},
		{name: "FEA-03 unknown tool", in: []string{callReq("1", "none", `{}`, envelope)}, out: []string{fails("1", -32602)}},
		{name: "no name", in: []string{req("1", "tools/call", `"arguments":{}`, envelope)}, out: []string{fails("1", -32602)}},
		{name: "arguments no object", in: []string{callReq("1", "echo", `[]`, envelope)}, out: []string{fails("1", -32602)}},
		{name: "LOG-01 no level asked", in: []string{callReq("1", "log", `{"level":"error","text":"t"}`, envelope)},
			out: []string{okText("1", "not sent: nobody asked for messages of level error")}},
		{name: "LOG-02 level asked", in: []string{callReq("1", "log", `{"level":"warning","text":"t"}`, envelopeWith("{}", `"io.modelcontextprotocol/logLevel":"warning"`))},
			out: []string{`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"demo","data":"t"}}`, okText("1", "sent at level warning")}},
		{name: "LOG-02 level below", in: []string{callReq("1", "log", `{"level":"notice","text":"t"}`, envelopeWith("{}", `"io.modelcontextprotocol/logLevel":"warning"`))},
			out: []string{okText("1", "not sent: nobody asked for messages of level notice")}},
		{name: "log unknown level", in: []string{callReq("1", "log", `{"level":"loud","text":"t"}`, envelope)}, out: []string{isError(`unknown level: \"loud\"`)}},
	})
}

func TestCountdown(t *testing.T) {
	progress := func(token string, n, total int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":%d,"message":"%d to go"}}`, token, n, total, total-n)
	}
	runScripts(t, []script{
		{name: "PRG-01 string token", in: []string{callReq("1", "countdown", `{"from":2,"delayMs":10}`, envelopeWith("{}", `"progressToken":"p"`))},
			out: []string{progress(`"p"`, 1, 2), progress(`"p"`, 2, 2), okText("1", "counted down from 2")}},
		{name: "PRG-01 integer token", in: []string{callReq("1", "countdown", `{"from":1}`, envelopeWith("{}", `"progressToken":0`))},
			out: []string{progress("0", 1, 1), okText("1", "counted down from 1")}},
		{name: "PRG-10 no token", in: []string{callReq("1", "countdown", `{"from":2}`, envelope)}, out: []string{okText("1", "counted down from 2")}},
		{name: "zero", in: []string{callReq("1", "countdown", `{"from":0}`, envelope)}, out: []string{okText("1", "counted down from 0")}},
		{name: "limit n", in: []string{callReq("1", "countdown", `{"from":10000,"delayMs":60000}`, envelope)}, out: []string{okText("1", "counted down from 10000")}},
	})
	for _, args := range []string{`{"from":10001}`, `{"from":-1}`, `{"from":1.5}`, `{"from":1,"delayMs":60001}`, `{"from":1,"delayMs":-1}`, `{}`} {
		synctest.Test(t, func(t *testing.T) {
			p := connect(t, Options{})
			p.send(callReq("1", "countdown", args, envelope))
			if line := p.next(); !strings.Contains(line, `"isError":true`) {
				t.Errorf("%s: %s", args, line)
			}
			p.close()
		})
	}
}

// A waiting call blocks nobody; its id is taken; a cancel ends it without an answer and frees the id.
func TestConcurrencyAndCancel(t *testing.T) {
	slow := callReq("1", "countdown", `{"from":1,"delayMs":1000}`, envelopeWith("{}", `"progressToken":"p"`))
	cancel := func(id string) string {
		return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"user"}}`
	}
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Options{})
		p.send(slow, callReq(`"1"`, "echo", `{"text":"x"}`, envelope))
		p.expect(okText(`"1"`, "x"))
		p.send(req("1", "tools/list", "", envelope)) // FRM-09
		p.expect(fails("1", -32600))
		p.send(cancel(`"1"`)) // another id
		p.silent()
		p.send(cancel("1"), slow) // the id is free again
		if line := p.next(); !strings.Contains(line, `"progress":1`) {
			t.Errorf("got %s", line)
		}
		p.expect(okText("1", "counted down from 1"))
		p.silent()
		p.close()
	})
}

func TestCallLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Options{})
		for n := range MaxCalls {
			p.send(callReq(fmt.Sprint(n), "countdown", `{"from":1,"delayMs":1000}`, envelope))
		}
		p.silent()
		p.send(callReq(`"one more"`, "countdown", `{"from":1}`, envelope))
		p.expect(fails(`"one more"`, -32603))
		for range MaxCalls {
			if line := p.next(); !strings.Contains(line, "counted down from 1") {
				t.Fatalf("got %s", line)
			}
		}
		p.close()
	})
}

func TestAskModern(t *testing.T) {
	const question = `{"question":"Why?"}`
	ask := func(id, extra, caps string) string {
		if extra != "" {
			extra = "," + extra
		}
		return req(id, "tools/call", `"name":"ask","arguments":`+question+extra, envelopeWith(caps))
	}
	state := `"requestState":"` + stateOf("Why?") + `"`
	answer := func(body string) string { return `"inputResponses":{"answer":` + body + `}` }
	inputRequired := `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"answer":{"method":"elicitation/create","params":{
		"mode":"form","message":"Why?","requestedSchema":{"type":"object","properties":{"answer":{"type":"string","title":"Answer"}},"required":["answer"]}}}},` + state + `,` + signature + `}}`
	noForms := failsWith("1", -32021, `{"requiredCapabilities":{"elicitation":{"form":{}}}}`)
	runScripts(t, []script{
		{name: "META-09 undeclared", in: []string{ask("1", "", "{}")}, out: []string{noForms}},
		{name: "MRT-09 url only", in: []string{ask("1", "", `{"elicitation":{"url":{}}}`)}, out: []string{noForms}},
		{name: "CLF-01 empty means form", in: []string{ask("1", "", formOnly)}, out: []string{inputRequired}},
		{name: "form and url", in: []string{ask("1", "", `{"elicitation":{"form":{},"url":{}}}`)}, out: []string{inputRequired}},
		{name: "META-06 nothing is remembered", in: []string{ask("1", "", formOnly), ask("1", "", "{}")}, out: []string{inputRequired, noForms}},
		{name: "retry", in: []string{ask("2", answer(`{"action":"accept","content":{"answer":"Because"}}`)+","+state, formOnly)}, out: []string{okText("2", "Because")}},
		{name: "MRT-22 answer without state", in: []string{ask("2", answer(`{"action":"accept","content":{"answer":"B"}}`), formOnly)}, out: []string{okText("2", "B")}},
		{name: "decline", in: []string{ask("2", answer(`{"action":"decline"}`)+","+state, formOnly)}, out: []string{okText("2", "The user declined to answer.")}},
		{name: "cancel", in: []string{ask("2", answer(`{"action":"cancel"}`)+","+state, formOnly)}, out: []string{okText("2", "The user dismissed the question.")}},
		{name: "MRT-16 extra keys", in: []string{ask("2", `"inputResponses":{"answer":{"action":"cancel"},"x":{}}`, formOnly)}, out: []string{okText("2", "The user dismissed the question.")}},
		{name: "MRT-17 answer missing", in: []string{ask("1", `"inputResponses":{},`+state, formOnly)}, out: []string{inputRequired}},
		{name: "CLF-08 answer does not fit", in: []string{ask("1", answer(`{"action":"accept","content":{"answer":5}}`)+","+state, formOnly)}, out: []string{inputRequired}},
		{name: "MRT-15 no object", in: []string{ask("1", `"inputResponses":[]`, formOnly)}, out: []string{fails("1", -32602)}},
		{name: "MRT-15 answer no object", in: []string{ask("1", answer(`5`), formOnly)}, out: []string{fails("1", -32602)}},
		{name: "MRT-15 unknown action", in: []string{ask("1", answer(`{"action":"maybe"}`), formOnly)}, out: []string{fails("1", -32602)}},
		{name: "MRT-06 tampered state", in: []string{ask("1", answer(`{"action":"cancel"}`)+`,"requestState":"demo1.x"`, formOnly)}, out: []string{fails("1", -32602)}},
		{name: "state no string", in: []string{ask("1", `"requestState":5`, formOnly)}, out: []string{fails("1", -32602)}},
		{name: "no question", in: []string{callReq("1", "ask", "{}", envelopeWith(formOnly))}, out: []string{
			`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","isError":true,"content":[{"type":"text","text":"question must be a string"}],` + signature + `}}`}},
	})
}

func listenReq(id, filter string) string {
	return req(id, "subscriptions/listen", `"notifications":`+filter, envelope)
}

func ack(id, honoured string) string {
	return `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":` + honoured +
		`,"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`
}

func updated(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"demo://clock","_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`
}

func TestListen(t *testing.T) {
	const clock = `{"resourceSubscriptions":["demo://clock"]}`
	touch := callReq("9", "touch", "{}", envelope)
	refused := []string{fails("1", -32602)}
	runScripts(t, []script{
		{name: "SUB-01 no filter", in: []string{req("1", "subscriptions/listen", "", envelope)}, out: refused},
		{name: "SUB-01 filter no object", in: []string{listenReq("1", "[]")}, out: refused},
		{name: "SUB-01 flag no boolean", in: []string{listenReq("1", `{"toolsListChanged":1}`)}, out: refused},
		{name: "SUB-01 uri no string", in: []string{listenReq("1", `{"resourceSubscriptions":[1]}`)}, out: refused},
		{name: "SUB-04 SUB-17 nothing honoured", in: []string{listenReq(`"a"`, `{"toolsListChanged":true,"resourceSubscriptions":["demo://none"]}`), touch},
			out: []string{ack(`"a"`, "{}"), okText("9", "ticks: 1")}},
		{name: "SUB-02 other resource", in: []string{listenReq("1", `{"resourceSubscriptions":["demo://readme"]}`), touch},
			out: []string{ack("1", `{"resourceSubscriptions":["demo://readme"]}`), okText("9", "ticks: 1")}},
		{name: "SUB-05 id 0", in: []string{listenReq("0", clock), touch}, out: []string{ack("0", clock), updated("0"), okText("9", "ticks: 1")}},
		{name: "same uri twice", in: []string{listenReq(`"s"`, `{"resourceSubscriptions":["demo://clock","demo://clock"]}`), touch},
			out: []string{ack(`"s"`, clock), updated(`"s"`), okText("9", "ticks: 1")}},
		{name: "SUB-08 cancelled", in: []string{listenReq(`"s"`, clock), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}`, touch},
			out: []string{ack(`"s"`, clock), okText("9", "ticks: 1")}},
		{name: "FRM-09 id in use", in: []string{listenReq("1", clock), listenReq("1", clock)}, out: []string{ack("1", clock), fails("1", -32600)}},
	})
}

// Two listens each get a copy of their own, and a proper end when the server is told to stop (SUB-07, SUB-09, SUB-10).
func TestListenEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Options{})
		p.send(listenReq("1", `{"resourceSubscriptions":["demo://clock"]}`), listenReq(`"1"`, `{"resourceSubscriptions":["demo://clock"]}`))
		p.next()
		p.next()
		p.send(callReq("9", "touch", "{}", envelope))
		if both := p.next() + p.next(); !strings.Contains(both, `subscriptionId":1`) || !strings.Contains(both, `subscriptionId":"1"`) {
			t.Errorf("updates %s", both)
		}
		p.next()
		p.stop()
		rest := map[string][]string{}
		for range 4 {
			line := p.next()
			key := `"1"`
			if strings.Contains(line, `"id":1,`) || strings.Contains(line, `"requestId":1}`) {
				key = "1"
			}
			rest[key] = append(rest[key], line)
		}
		for key, lines := range rest {
			result := `{"jsonrpc":"2.0","id":` + key + `,"result":{"resultType":"complete",` +
				strings.Replace(signature, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/subscriptionId":`+key+`,`, 1) + `}}`
			same(t, lines[0], result)
			same(t, lines[1], `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+key+`,"reason":"server is shutting down"}}`)
		}
		p.close()
	})
}

func TestListenLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Options{})
		for n := range MaxListens {
			p.send(listenReq(fmt.Sprint(n), "{}"))
			p.expect(ack(fmt.Sprint(n), "{}"))
		}
		p.send(listenReq("64", "{}"))
		p.expect(fails("64", -32603))
		p.close()
	})
}

func TestModernOnly(t *testing.T) {
	only := Options{ModernOnly: true}
	runScripts(t, []script{
		{name: "VER-44 initialize", opts: only, in: []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{}}}`},
			out: []string{failsWith("1", -32022, `{"supported":["2026-07-28"],"requested":"2025-11-25"}`)}},
		{name: "META-03 no envelope", opts: only, in: []string{ping("1"), `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`}, out: []string{fails("1", -32602), fails("2", -32602)}},
		{name: "modern", opts: only, in: []string{callReq("1", "echo", `{"text":"x"}`, envelope)}, out: []string{okText("1", "x")}},
	})
}

// A server that is told to stop ends though its input is still open, and answers no call any more.
func TestStopWithOpenCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Options{})
		p.send(callReq("1", "countdown", `{"from":1,"delayMs":60000}`, envelope))
		p.silent()
		p.stop()
		if err := <-p.done; err != nil || context.Cause(t.Context()) != nil {
			t.Errorf("Serve: %v", err)
		}
		p.done <- nil
		p.close()
	})
}
