package daemon

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"mcpbridge/bridge/back"
	"mcpbridge/bridge/mask"
	"mcpbridge/procman"
)

// No part of a secret reaches the bridge's own log, wherever it lies in what a server prints (SEC-09): overlong lines come in
// pieces, and a piece may end in the middle of one.
func TestStderrHidesSecrets(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	for at := procman.MaxStderrLine - 2*len(secret); at < procman.MaxStderrLine+2*len(secret); at += 7 {
		var out bytes.Buffer
		d := &Daemon{log: zerolog.New(&out)}
		e := &endpoint{log: d.serverLog("s", mask.New([]string{secret}))}
		hear := e.heard(back.StdioConfig{}).Spec.Stderr
		line := strings.Repeat("x", at) + secret + strings.Repeat("y", 2*procman.MaxStderrLine+1)
		for len(line) > 0 {
			n := min(len(line), procman.MaxStderrLine)
			hear(7, []byte(line[:n]))
			line = line[n:]
		}
		hear(7, []byte("and "+secret+" in the next line"))
		text := out.String()
		for n := 6; n <= len(secret); n++ {
			if strings.Contains(text, secret[:n]) || strings.Contains(text, secret[len(secret)-n:]) {
				t.Fatalf("%d bytes of the secret at %d are shown:\n%s", n, at, text)
			}
		}
		if strings.Count(text, "\n") != 2 || !strings.Contains(text, "and *** in the next line") || !strings.Contains(text, `"pid":7`) {
			t.Fatalf("log:\n%s", text)
		}
	}
}

// A gate is empty when all have left, and each wait ends once.
func TestGate(t *testing.T) {
	var g gate
	open := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	if !open(g.empty()) {
		t.Error("an unused gate is not empty")
	}
	g.enter()
	g.enter()
	one := g.empty()
	g.leave()
	if open(one) || open(g.empty()) {
		t.Error("empty with one inside")
	}
	g.leave()
	if !open(one) || !open(g.empty()) {
		t.Error("not empty when all have left")
	}
	g.enter()
	two := g.empty()
	if open(two) {
		t.Error("empty with one inside again")
	}
	g.leave()
	if !open(two) {
		t.Error("not empty when the last has left")
	}
}

// What a reload cannot change while the bridge runs is named.
func TestFixedSettings(t *testing.T) {
	got := fixed([]string{"limits.bodyBytes", "limits.sessionIdle", "allowedHosts", "log.level"})
	if strings.Join(got, " ") != "limits.sessionIdle log.level" {
		t.Errorf("%v", got)
	}
}
