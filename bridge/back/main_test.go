package back_test

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpbridge/procman"
)

// roleVar makes the test binary play a server.
const roleVar = "BACK_TEST_ROLE"

// roles are what it can play; none outlives a minute.
var roles = map[string]func(){
	"last":     func() { playLegacy("") },
	"mute":     func() { playLegacy("\n"); select {} },
	"nosuch":   playNoSuch,
	"deaf":     playDeaf,
	"stubborn": playStubborn,
}

func TestMain(m *testing.M) {
	procman.MaybeGuard()
	if role, ok := roles[os.Getenv(roleVar)]; ok {
		time.AfterFunc(time.Minute, func() { os.Exit(70) })
		role()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// playLegacy answers the handshake and one further request, whose answer ends with end.
func playLegacy(end string) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		line := in.Text()
		switch {
		case strings.Contains(line, `"initialize"`):
			fmt.Println(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`)
		case strings.Contains(line, `"id":2`):
			fmt.Print(`{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`, end)
			if end != "" {
				_ = os.Stdout.Close()
			}
			return
		}
	}
}

// playNoSuch dies like a program whose import fails, and tells a secret.
func playNoSuch() {
	fmt.Fprintln(os.Stderr, "token is "+os.Getenv("TOKEN"))
	fmt.Fprintln(os.Stderr, "ModuleNotFoundError: No module named 'nosuch'")
	os.Exit(1)
}

// playDeaf answers the handshake, then closes its input and stays.
func playDeaf() {
	in := bufio.NewReader(os.Stdin)
	_, _ = in.ReadString('\n')
	fmt.Println(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`)
	_, _ = in.ReadString('\n')
	_ = os.Stdin.Close()
	select {}
}

// playStubborn answers the handshake and takes no notice of the end of its input and of any request to end.
func playStubborn() {
	signal.Ignore()
	playLegacy("")
	select {}
}
