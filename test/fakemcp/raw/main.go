// Command raw is a hand-rolled MCP server that does as little as possible for a
// message, so that it is never what a measurement measures, and that misbehaves on
// demand. It speaks the legacy revisions.
//
//	-dual            also speak 2026-07-28
//	-junk CLASSES    print junk around each tools/call reply:
//	                 text,blank,crlf,utf8,long,scalar,object,batch,split
//	-log FILE        append "pid id method [requestId=...]" for each message received
//	-pidfile FILE    append the own pid
//	-stubborn        ignore the end of stdin and SIGTERM, SIGINT, SIGHUP
//	-http ADDR       answer over HTTP POST instead: what HTTP costs without a bridge
//
// Tools: echo {text}, sleep {ms} (four progress steps if asked), blob {bytes}, crash.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	dual := flag.Bool("dual", false, "also speak 2026-07-28")
	junk := flag.String("junk", "", "comma separated junk classes")
	logFile := flag.String("log", "", "append one line per received message to this file")
	pidFile := flag.String("pidfile", "", "append the own pid to this file")
	stubborn := flag.Bool("stubborn", false, "ignore the end of stdin and polite signals")
	httpAddr := flag.String("http", "", "serve HTTP POST at this address instead of stdio")
	flag.Parse()

	a := &answerer{dual: *dual}
	if *logFile != "" {
		a.seen = openAppend(*logFile)
	}
	if *pidFile != "" {
		fmt.Fprintln(openAppend(*pidFile), os.Getpid())
	}
	if *stubborn {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	}
	if *httpAddr != "" {
		log.Fatal(serveHTTP(*httpAddr, a))
	}
	serveStdio(a, newOutput(os.Stdout, strings.Split(*junk, ",")))
	if *stubborn {
		select {}
	}
}

func openAppend(name string) *os.File {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	return f
}
