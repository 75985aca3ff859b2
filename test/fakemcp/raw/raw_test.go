package main

import (
	"bytes"
	"strings"
	"testing"
)

func replies(t *testing.T, a *answerer, junk string, lines ...string) string {
	t.Helper()
	var b bytes.Buffer
	out := newOutput(&b, strings.Split(junk, ","))
	for _, l := range lines {
		a.handle([]byte(l), out)
	}
	out.flush()
	return b.String()
}

func TestEras(t *testing.T) {
	const modernList = `{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	for _, c := range []struct {
		name string
		dual bool
		in   string
		want string
	}{
		{"legacy ignores the envelope", false, modernList, `{"jsonrpc":"2.0","id":"a","result":{"tools":` + toolList + `}}`},
		{"dual answers it", true, modernList, `{"jsonrpc":"2.0","id":"a","result":{"tools":` + toolList + `,"ttlMs":1000,"cacheScope":"public","resultType":"complete"}}`},
		{"legacy does not discover", false, `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, `{"jsonrpc":"2.0","id":1,"error":` + unknownMethod + `}`},
		{"dual discovers", true, `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, `{"jsonrpc":"2.0","id":1,"result":` + discovered + `}`},
		{"echo keeps the spelling", false, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"\u00e9\/"}}}`, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\u00e9\/"}]}}`},
		{"unknown tool", false, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"no"}}`, `{"jsonrpc":"2.0","id":1,"error":` + unknownTool + `}`},
		{"notification", false, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, ``},
	} {
		want := c.want
		if want != "" {
			want += "\n"
		}
		if got := replies(t, &answerer{dual: c.dual}, "", c.in); got != want {
			t.Errorf("%s:\n got %s want %s", c.name, got, want)
		}
	}
}

func TestBlobHasTheAskedSize(t *testing.T) {
	a := &answerer{}
	for _, n := range []string{"0", "3", "70000", "3"} {
		got := replies(t, a, "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"blob","arguments":{"bytes":`+n+`}}}`)
		if want := map[string]int{"0": 0, "3": 3, "70000": 70000}[n]; strings.Count(got, "b")-strings.Count(`"jsonrpc":`, "b") != want {
			t.Errorf("blob of %s has %d bytes", n, strings.Count(got, "b"))
		}
	}
}

func TestJunkSurroundsCallsOnly(t *testing.T) {
	const ping, call = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}`
	const pong, echo = `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"x"}]}}`
	for class, junk := range junkBefore {
		if got, want := replies(t, &answerer{}, class, ping, call), pong+"\n"+junk+echo+"\n"; got != want {
			t.Errorf("%s: got %.200q", class, got)
		}
	}
	if got, want := replies(t, &answerer{}, "split,crlf", call), echo+"\r\n"; got != want {
		t.Errorf("split: got %q, want %q", got, want)
	}
}
